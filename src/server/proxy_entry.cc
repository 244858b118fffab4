#include "proxy_entry.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include "canned_responses.h"
#include "connection.h"
#include "http/h2/frame.h"
#include "shard.h"

namespace weir::inline v0::inline server {
namespace {

using Kind = http::ProxyHeader::Kind;

ProxyResult result_of(http::ProxyFault fault) noexcept {
  switch (fault) {
    case http::ProxyFault::kMissing:
      return ProxyResult::kMissing;
    case http::ProxyFault::kTooLong:
      return ProxyResult::kTooLong;
    default:
      return ProxyResult::kMalformed;
  }
}

ProxyResult result_of(const http::ProxyHeader& header) noexcept {
  if (header.kind == Kind::kLocal) return ProxyResult::kLocal;
  if (header.kind == Kind::kUnknown) return ProxyResult::kUnknown;
  return header.version == 1 ? ProxyResult::kVersion1 : ProxyResult::kVersion2;
}

io::Address address_of(const http::ProxyHeader::Endpoint& end) noexcept {
  return {.ip = end.ip.bytes,
          .scope = 0,
          .port = end.port,
          .family = end.ip.v6 ? io::Family::kV6 : io::Family::kV4};
}

/// Whether the bytes could be the start of HTTP/2 with prior knowledge.
bool looks_like_http2(std::span<const std::byte> bytes) noexcept {
  const std::string_view begun(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return begun.starts_with(http::h2::kClientPreface.substr(0, std::string_view("PRI ").size()));
}

}  // namespace

bool ProxyEntry::advance(TimePoint) {
  const auto parsed = http::parse_proxy_header(connection_.input().decrypted());
  if (!parsed) {
    refuse(result_of(parsed.error()), name_of(parsed.error()));
    return false;
  }
  if (!*parsed) return false;
  take(**parsed);
  return true;
}

/// What follows the header stays in the input: it belongs to the client.
void ProxyEntry::take(const http::ProxyHeader& header) {
  connection_.input().consume_decrypted(header.size);
  over(result_of(header));
  Connection::Sender sender{.address = connection_.peer(),
                            .unknown = header.kind == Kind::kUnknown};
  if (header.kind == Kind::kAddress) sender.address = address_of(header.source);
  if (header.kind == Kind::kUnix) sender.address = {.family = io::Family::kUnix};
  const bool announced = header.kind == Kind::kAddress || header.kind == Kind::kUnix;
  const bool room =
      !announced || connection_.shard().shared().connections.announce(connection_, sender.address);
  if (!room) return refuse_source(sender.address);
  connection_.end_proxy_header(sender);
}

/// As at accept: 503 in cleartext, a reset with TLS, whose client cannot read a 503.
void ProxyEntry::refuse_source(const io::Address& source) {
  connection_.shard().counters().count(RefuseReason::kSource);
  if (connection_.tls()) {
    connection_.reset_on_close();
    return connection_.fail(CloseReason::kSource);
  }
  connection_.end_proxy_header({.address = source});
  static constexpr auto kGoaway = http::h2::refusal_frames();
  const std::string_view goaway(reinterpret_cast<const char*>(kGoaway.data()), kGoaway.size());
  const bool http2 = looks_like_http2(connection_.input().decrypted());
  if (!connection_.output().append_view(http2 ? goaway : canned_close(503))) {
    return connection_.fail(CloseReason::kSource);
  }
  connection_.input().consume_decrypted(connection_.input().decrypted().size());
  connection_.finish({.reason = CloseReason::kSource, .linger = true});
}

void ProxyEntry::refuse(ProxyResult result, std::string_view why) {
  over(result);
  const ProxySenders& senders = connection_.shard().shared().proxy_senders;
  if (senders.on_refused) {
    senders.on_refused({.sender = connection_.peer(), .result = result, .why = why});
  }
  connection_.fail(CloseReason::kProxyHeader);
}

/// Counts the result once.
void ProxyEntry::over(ProxyResult result) noexcept {
  if (over_) return;
  over_ = true;
  connection_.shard().counters().count(result);
}

/// Health checks of load balancers connect and leave.
void ProxyEntry::on_end_of_input(TimePoint) {
  over(ProxyResult::kAborted);
  const bool silent = connection_.input().empty();
  connection_.fail(silent ? CloseReason::kClient : CloseReason::kProxyHeader);
}

TimePoint ProxyEntry::deadline() const noexcept {
  if (over_) return TimePoint::max();
  const ServerConfig& config = connection_.shard().config();
  return connection_.opened_at() +
         (connection_.tls() ? config.tls.handshake_timeout : config.header_timeout);
}

void ProxyEntry::on_deadline(TimePoint) {
  refuse(ProxyResult::kTimeout, "late");
}

void ProxyEntry::on_drain() {
  if (!over_ && connection_.shard().closes_idle()) connection_.fail(CloseReason::kShutdown);
}

void ProxyEntry::end_streams(CloseReason reason) {
  const bool left = reason == CloseReason::kClient || reason == CloseReason::kClientAbort ||
                    reason == CloseReason::kReadError;
  over(left ? ProxyResult::kAborted : ProxyResult::kSacrificed);
}

}  // namespace weir::inline v0::inline server
