#include "request_text.h"

#include <algorithm>
#include <cstdint>

#include "weir/base/ascii.h"
#include "weir/base/assert.h"
#include "weir/experimental/http/field.h"
#include "weir/experimental/http/h1/serializer.h"
#include "weir/experimental/http/method.h"

namespace weir::inline v0::inline client {
namespace {

using http::FieldId;

constexpr std::size_t kHeadersMax = 100;  // HTTP/2 connections have room for 128 with ours

/// Fields that the client writes, or that have a meaning for one connection only.
bool is_ours(FieldId id) noexcept {
  switch (id) {
    case FieldId::kHost:
    case FieldId::kContentLength:
    case FieldId::kExpect:
    case FieldId::kXWeirPriority:
    case FieldId::kXWeirAttempt:
    case FieldId::kXWeirDeadlineMs:
      return true;
    default:
      return http::is_hop_by_hop(id);
  }
}

bool may_send(const ClientHeader& header) noexcept {
  return http::is_valid_field_name(header.name) && http::is_valid_field_value(header.value) &&
         !is_ours(http::field_id(header.name));
}

/// Visible ASCII. A fragment ("#") stays with its owner.
bool is_path(std::string_view path) noexcept {
  return path.starts_with('/') && std::none_of(path.begin(), path.end(), [](char c) {
           return c <= ' ' || c >= 0x7F || c == '#';
         });
}

bool wants_length(http::Method method) noexcept {
  return method == http::Method::kPost || method == http::Method::kPut ||
         method == http::Method::kPatch;
}

}  // namespace

std::optional<ClientErrorKind> objection_to(const ClientRequest& request,
                                            const ClientConfig& config) noexcept {
  std::size_t bytes = request.method.size() + request.path.size();
  for (const ClientHeader& header : request.headers) {
    constexpr std::size_t kAround = 4;  // ": " and the end of the line
    bytes += header.name.size() + header.value.size() + kAround;
  }
  if (bytes > config.request_head_max || request.headers.size() > kHeadersMax) {
    return ClientErrorKind::kHeadTooLarge;
  }
  if (request.body.size() > config.request_body_max) return ClientErrorKind::kBodyTooLarge;
  const bool valid = http::is_valid_field_name(request.method) &&  // both are tokens
                     http::method_of(request.method) != http::Method::kConnect &&
                     is_path(request.path) &&
                     std::all_of(request.headers.begin(), request.headers.end(), may_send);
  if (!valid) return ClientErrorKind::kBadRequest;
  return std::nullopt;
}

std::size_t head_room(std::string_view authority) noexcept {
  constexpr std::size_t kOurs = 256;  // start line, host, priority, length, the end
  return kOurs + authority.size();
}

upstream::RequestHead write_head(std::span<char> out, const ClientRequest& request,
                                 std::string_view authority) noexcept {
  const http::Method method = http::method_of(request.method);
  http::h1::HeadWriter writer(out);
  writer.request(request.method, request.path);
  const std::size_t host_at = writer.size();
  writer.field("host", authority);
  const std::size_t fields_begin = writer.size();
  for (const ClientHeader& header : request.headers) writer.field(header.name, header.value);
  if (request.priority != Priority::kNormal) {
    writer.field("x-weir-priority", name_of(request.priority));
  }
  const bool has_body = !request.body.empty();
  if (has_body || wants_length(method)) writer.content_length(request.body.size());
  const std::size_t fields_end = writer.size();
  const Result<std::size_t, http::h1::WriteError> size = writer.end();
  WEIR_ASSERT(size.has_value());         // objection_to() has checked it
  constexpr std::size_t kHostColon = 6;  // "host: "
  constexpr std::size_t kEmptyLine = 2;
  return {
      .text = out.data(),
      .method_size = static_cast<std::uint32_t>(request.method.size()),
      .path_size = static_cast<std::uint32_t>(request.path.size()),
      .authority_begin = static_cast<std::uint32_t>(host_at + kHostColon),
      .authority_size = static_cast<std::uint32_t>(authority.size()),
      .fields_begin = static_cast<std::uint32_t>(fields_begin),
      .fields_end = static_cast<std::uint32_t>(fields_end),
      .size = static_cast<std::uint32_t>(*size - kEmptyLine),
      .method = method,
      .framing = has_body ? upstream::RequestFraming::kLength : upstream::RequestFraming::kNone};
}

}  // namespace weir::inline v0::inline client
