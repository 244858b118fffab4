#include "response_collector.h"

#include <algorithm>
#include <string>
#include <utility>

#include "weir/policy/reason.h"

#include "upstream/pushback.h"

namespace weir::inline v0::inline client {
namespace {

constexpr std::size_t kBodyBytesFirst = 4096;

}  // namespace

bool ResponseCollector::overloaded() const noexcept {
  return response_.status == 503 || response_.status == 429;
}

bool ResponseCollector::take_head(const upstream::ResponseHead& head, std::size_t body_max) {
  clear();
  response_.status = static_cast<std::uint16_t>(head.status);
  for (const http::HeaderView& field : head.headers) {
    if (field.hop_by_hop) continue;
    response_.headers.push_back({std::string(field.name), std::string(field.value)});
  }
  if (overloaded()) {
    pushback_ = upstream::pushback_of(head);
    if (pushback_) response_.retry_after = pushback_->wait;
    unprocessed_ =
        policy::reason_named(head.headers.value(http::FieldId::kXWeirReason)).has_value();
  }
  if (head.body.kind != http::h1::BodyKind::kLength) return true;
  if (head.body.length > body_max) return false;
  response_.body.reserve(static_cast<std::size_t>(head.body.length));
  return true;
}

bool ResponseCollector::take_body(std::string_view bytes, std::size_t body_max) {
  std::string& body = response_.body;
  if (bytes.size() > body_max - body.size()) return false;
  if (body.size() + bytes.size() > body.capacity()) grow(body.size() + bytes.size(), body_max);
  body.append(bytes);
  return true;
}

// reserve() may allocate more than it is asked for, if the string has memory already.
void ResponseCollector::grow(std::size_t bytes_needed, std::size_t body_max) {
  std::string larger;
  larger.reserve(std::clamp(std::max(response_.body.capacity() * 2, kBodyBytesFirst), bytes_needed,
                            std::max(bytes_needed, body_max)));
  larger.append(response_.body);
  response_.body = std::move(larger);
}

}  // namespace weir::inline v0::inline client
