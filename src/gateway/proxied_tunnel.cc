#include "weir/base/assert.h"

#include "forward_head.h"
#include "gateway_loop.h"
#include "http/websocket_frames.h"
#include "proxied_request.h"

// A proxied request after both sides have agreed on a tunnel: bytes of WebSocket frames in both
// directions, until a side ends it, or the gateway drains.

namespace weir::inline v0::gateway {
namespace {

std::string_view value_of(const http::HeaderList& headers, std::string_view name) noexcept {
  for (const http::HeaderView& field : headers) {
    if (http::equals_ignore_case(field.name, name)) return field.value;
  }
  return {};
}

constexpr std::size_t kToClient = 0;  // in kTunnelWays
constexpr std::size_t kToUpstream = 1;

}  // namespace

// An HTTP/2 client would read any 2xx as agreement, although the endpoint has only sent a page.
bool ProxiedRequest::is_proper_switch(const upstream::ResponseHead& head) const noexcept {
  const bool in_http2 = !tunnel_.key.empty();
  if (!head.tunnel) return !in_http2 || head.status < 200 || head.status >= 300;
  const http::HeaderView* protocol = head.headers.find(http::FieldId::kUpgrade);
  const bool agreed = protocol != nullptr && !head.headers.repeats(http::FieldId::kUpgrade) &&
                      http::equals_ignore_case(protocol->value, "websocket");
  return agreed && (!in_http2 || tunnel_.key.accepts(value_of(head.headers, kWebSocketAccept)));
}

void ProxiedRequest::begin_tunnel() {
  tunnel_.stands = true;
  to_.counters.tunnels_opened.add();
  to_.counters.duration.observe(to_seconds(home_.now() - received_at_));  // of the handshake
  home_.tunnels().push_back(*this);
  stream_->resume();
  if (home_.draining()) go_away();
}

void ProxiedRequest::end_tunnel(TunnelEnd by) noexcept {
  if (!tunnel_.stands) return;
  if (tunnel_.leaving) {
    tunnel_.ended = TunnelEnd::kDrain;
  } else if (!tunnel_.ended || by == TunnelEnd::kIdle) {
    tunnel_.ended = by;
  }
  to_.counters.tunnels_ended[static_cast<std::size_t>(*tunnel_.ended)].add();
  home_.tunnels().remove(*this);
}

void ProxiedRequest::pass_to_upstream(std::string_view bytes, bool last) {
  const std::string_view piece = tunnel_.to_upstream.may_pass(bytes);
  tunnel_.to_upstream.passed(piece);
  tunnel_.to_upstream.dropped(bytes.substr(piece.size()));
  to_.counters.tunnel_bytes[kToUpstream].add(piece.size());
  if (last && !tunnel_.ended) tunnel_.ended = TunnelEnd::kClient;
  if ((!piece.empty() || last) && !call_.send_body(piece, last)) stream_->pause();
  if (tunnel_.leaving) say_goodbye();
  charge();
}

std::size_t ProxiedRequest::pass_to_client(std::string_view bytes) {
  const std::string_view piece = tunnel_.to_client.may_pass(bytes);
  const std::size_t taken = piece.empty() ? 0 : stream_->send_data(piece, false);
  tunnel_.to_client.passed(piece.substr(0, taken));
  to_.counters.tunnel_bytes[kToClient].add(taken);
  const bool all = taken == piece.size();
  if (all) tunnel_.to_client.dropped(bytes.substr(taken));
  untaken_ = all ? 0 : bytes.size() - taken;
  if (tunnel_.leaving) say_goodbye();
  charge();  // may end the request
  return all ? bytes.size() : taken;
}

// ---- the end of the gateway

void ProxiedRequest::go_away() noexcept {
  tunnel_.leaving = true;
  tunnel_.to_client.leave();
  tunnel_.to_upstream.leave();
  say_goodbye();
}

/// Sends each Close frame that is due, as far as there is room, and ends the client's side when it
/// has answered: then it waits for that (RFC 6455 §7.1.1).
void ProxiedRequest::say_goodbye() noexcept {
  if (tunnel_.to_client.close_due() && !response_ended_) {
    const std::string_view rest = http::kGoingAway.substr(tunnel_.goodbye_bytes);
    tunnel_.goodbye_bytes =
        static_cast<std::uint8_t>(tunnel_.goodbye_bytes + stream_->send_data(rest, false));
    if (tunnel_.goodbye_bytes == http::kGoingAway.size()) tunnel_.to_client.told();
  }
  if (tunnel_.to_upstream.close_due() && call_.takes_body() && !request_ended_) {
    const auto frame = http::masked_going_away(static_cast<std::uint32_t>(home_.rng().next_u64()));
    tunnel_.to_upstream.told();
    if (!call_.send_body({frame.data(), frame.size()}, false)) stream_->pause();
  }
  const bool answered = tunnel_.to_client.ended() && tunnel_.to_upstream.closed_by_sender();
  if (!answered || response_ended_) return;
  response_ended_ = true;
  static_cast<void>(stream_->send_data({}, true));
}

void ProxiedRequest::cut_tunnel() noexcept {
  call_.cancel();
  stream_->reset();  // on_abort follows
}

}  // namespace weir::inline v0::gateway
