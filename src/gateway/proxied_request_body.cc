#include <array>

#include "weir/base/assert.h"

#include "forward_head.h"
#include "gateway_loop.h"
#include "proxied_request.h"
#include "route_table.h"

// The body of a proxied request: received first, or forwarded as it comes; and the bytes that are
// charged for it and for the response.

namespace weir::inline v0::gateway {
namespace {

/// Charges this many bytes to a ticket or a permit.
template <class Holder>
Result<void, Reason> resize(Holder& holder, std::uint64_t wanted) noexcept {
  if (wanted > holder.bytes()) return holder.try_grow(wanted - holder.bytes());
  holder.shrink(holder.bytes() - wanted);
  return {};
}

}  // namespace

// ---- received first

/// gRPC is a conversation, and so are streams and tunnels: they are forwarded as they come.
bool ProxiedRequest::may_receive_first(const ServerRequest& request,
                                       const Route& route) const noexcept {
  const std::uint64_t length = request.body_length.value_or(0);
  const std::uint64_t most = home_.core().sizes.buffer_request_max;
  return length > 0 && length <= route.config.buffer_request_max.value_or(most) && !upgrade_ &&
         !stream_route_ && !grpc();
}

Reason ProxiedRequest::take_ticket(const AdmissionRequest& ask) {
  Result<Ticket, Reason> ticket = home_.core().controller.take_ticket(ask, asked_at_);
  if (!ticket) return ticket.error();
  ticket_ = std::move(*ticket);
  return Reason::kAdmitted;
}

void ProxiedRequest::receive_first(std::uint64_t length) {
  const std::uint64_t block = to_.dispatcher.memory().buffers.block_bytes();
  received_first_bytes_ = (length + block - 1) / block * block;  // what it keeps others from using
  while (!call_.buffer_body(length, start_)) {
    if (!home_.make_room_for(*this)) return use_ticket();  // forwarded as it comes
  }
  received_first_ = true;
  state_ = State::kReceiving;
  reading_since_ = home_.now();
  home_.received_first().add(*this);
}

void ProxiedRequest::receive(const http::BodyChunk& chunk) {
  call_.add_to_buffer(chunk.text());
  if (!charge() || !chunk.last()) return;
  request_ended_ = true;
  end_upload();
  state_ = State::kJudged;
  asked_at_ = home_.now();
  use_ticket();
}

/// The second part of admission, then on. This object may be destroyed when it returns.
void ProxiedRequest::use_ticket() {
  Ticket ticket = std::move(ticket_);
  if (note_.taken) note_limit();
  const Reason reason =
      may_ask() ? settle(home_.core().controller.enter(std::move(ticket), waiter_, asked_at_))
                : settle({.reason = Reason::kOverload});
  reason == Reason::kAdmitted ? proceed() : refuse(reason);
}

// ---- forwarded as it comes

void ProxiedRequest::on_headers(ServerStream&, const ServerRequest&) {
  WEIR_ASSERT(false);  // only the front handler receives heads
}

void ProxiedRequest::on_body(ServerStream& stream, const http::BodyChunk& chunk) {
  if (state_ == State::kReceiving) return receive(chunk);
  if (!call_.active() || request_ended_) return;
  if (max_body_ > 0 && stream.body_bytes_received() > max_body_ && !call_.tunnel()) {
    if (stream.response_started()) return stream.reset();
    return refuse(GatewayRefusal::kBodyTooLarge);
  }
  request_ended_ = chunk.last();
  if (tunnel_.stands) return pass_to_upstream(chunk.text(), chunk.last());
  if (request_ended_) end_upload();
  if (!call_.send_body(chunk.text(), chunk.last())) stream.pause();
  charge();
}

void ProxiedRequest::on_trailers(ServerStream& stream, const http::HeaderList& trailers) {
  // With a Content-Length there is no room for trailers; the end of the body follows.
  if (state_ == State::kReceiving || !call_.active() || request_ended_) return;
  request_ended_ = true;
  end_upload();
  std::array<http::HeaderView, http::HttpLimits::kHeaderCountCap> kept;
  std::size_t count = 0;
  for (const http::HeaderView& field : trailers) {
    if (may_forward_trailer(field)) kept[count++] = field;
  }
  if (!call_.send_trailers({kept.data(), count})) stream.pause();
  charge();
}

void ProxiedRequest::end_upload() noexcept {
  home_.uploads().remove(*this);
  home_.received_first().remove(*this);
}

bool ProxiedRequest::yield_if_slow(const SlowUploadRule& rule) {
  const bool is_read = state_ == State::kReceiving || call_.under_way();
  if (!is_read) return false;  // so the client is not slow
  if (judge_upload(upload_state(), rule) != UploadVerdict::kTooSlow) return false;
  yield_place();
  return true;
}

void ProxiedRequest::yield_place() {
  slow_ = EndedBy::kClient;
  record(policy::DecisionEnd::kRefused, GatewayRefusal::kSlowBody);
  finish_permit(Outcome::kError);  // no sample: a slow client says nothing about the service
  refuse(GatewayRefusal::kSlowBody);
}

UploadState ProxiedRequest::upload_state() const noexcept {
  return {.priority = priority_,
          .since = home_.now() - reading_since_,
          .received_bytes = stream_->body_bytes_received(),
          .held_bytes = state_ == State::kReceiving ? 0 : call_.unsent_bytes(),
          .response_started = stream_->response_started()};
}

bool ProxiedRequest::waits_for_its_client() const noexcept {
  return call_.under_way() && priority_ != Priority::kCritical && call_.unsent_bytes() == 0 &&
         !stream_->response_started();
}

void ProxiedRequest::on_upstream_blocked() {
  stream_->pause();
}

void ProxiedRequest::on_upstream_writable() {
  if (state_ == State::kLingering) return;
  if (tunnel_.leaving) say_goodbye();
  const bool waits = (upgrade_ && !tunnel_.stands) || !call_.takes_body();
  if (charge() && !waits) stream_->resume();
}

// A request that waits for an endpoint occupies nothing of the service: others may have its units
// until there is one. Then all that were held go by the limit.
void ProxiedRequest::on_upstream_held() {
  if (!permit_.streaming()) permit_.give_units_back(home_.now());
}

bool ProxiedRequest::may_leave_hold() {
  if (!permit_.try_take_units()) return false;
  begin_stream();
  return true;
}

// ---- bytes

std::uint64_t ProxiedRequest::bytes_to_charge() const noexcept {
  const std::uint64_t untaken = std::max<std::uint64_t>(untaken_, call_.kept_bytes());
  const std::uint64_t response = stream_->unsent_bytes() + untaken;
  if (!announced_) return response + (call_.active() ? call_.held_bytes() : 0);
  const std::uint64_t received = stream_->body_bytes_received();
  return response + (request_ended_ ? received : std::max(received, reserved_));
}

bool ProxiedRequest::charge() noexcept {
  Result<void, Reason> charged;
  if (ticket_) charged = resize(ticket_, bytes_to_charge());
  if (permit_) charged = resize(permit_, bytes_to_charge());
  if (!charged) over_budget(charged.error());
  return charged.has_value();
}

void ProxiedRequest::over_budget(Reason reason) {
  if (priority_ == Priority::kCritical) home_.count_critical_shed();
  if (!stream_->response_started()) return refuse(reason);
  cut_ = reason;
  call_.cancel();
  stream_->reset();
}

}  // namespace weir::inline v0::gateway
