#include "client_call.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/siphash.h"
#include "weir/experimental/http/method.h"

#include "client_loop.h"
#include "policy/overload_retry.h"
#include "request_text.h"
#include "upstream/dispatcher.h"
#include "upstream/endpoint.h"

// end() destroys this object: calls of it come last.

namespace weir::inline v0::inline client {
namespace {

using upstream::UpstreamFailure;

/// Clients and gateways agree on it.
constexpr SipKey kSharedKey{};

ClientErrorKind kind_of(UpstreamFailure failure) noexcept {
  switch (failure) {
    case UpstreamFailure::kNone:
    case UpstreamFailure::kNoEndpoint:
      return ClientErrorKind::kNoEndpoint;
    case UpstreamFailure::kNoConnection:
      return ClientErrorKind::kNoConnection;
    case UpstreamFailure::kNoBuffer:
      return ClientErrorKind::kNoBuffer;
    case UpstreamFailure::kConnectRefused:
    case UpstreamFailure::kConnectTimeout:
    case UpstreamFailure::kConnectFailed:
    case UpstreamFailure::kTlsFailed:
      return ClientErrorKind::kConnectFailed;
    case UpstreamFailure::kClosedEarly:
    case UpstreamFailure::kRefusedStream:
    case UpstreamFailure::kStreamReset:
    case UpstreamFailure::kCalmDown:
    case UpstreamFailure::kHttp11Required:
    case UpstreamFailure::kHttp2Required:
    case UpstreamFailure::kTruncated:
      return ClientErrorKind::kConnectionLost;
    case UpstreamFailure::kFirstByteTimeout:
    case UpstreamFailure::kOverallTimeout:
    case UpstreamFailure::kStalled:
    case UpstreamFailure::kHung:
      return ClientErrorKind::kTimeout;
    case UpstreamFailure::kDeadline:
      return ClientErrorKind::kDeadline;
    case UpstreamFailure::kBadResponse:
      return ClientErrorKind::kBadResponse;
  }
  return ClientErrorKind::kBadResponse;
}

bool is_own_bound(ClientErrorKind kind) noexcept {
  return kind == ClientErrorKind::kNoConnection || kind == ClientErrorKind::kNoBuffer;
}

}  // namespace

ClientCall::ClientCall(ClientLoop& home, ClientRequest request, Client::OnAnswer on_answer,
                       TimePoint deadline)
    : home_(home),
      request_(std::move(request)),
      on_answer_(std::move(on_answer)),
      deadline_(deadline),
      arrival_(io::Callback<>::to<&ClientCall::arrive>(*this)),
      timer_(io::Timer::Fired::to<&ClientCall::on_timer>(*this)),
      call_(*this) {}

ClientCall::~ClientCall() = default;

// ---- before it is sent

void ClientCall::arrive() {
  if (home_.closing()) return end(unexpected(ClientError{.kind = ClientErrorKind::kClosed}));
  queue();
}

void ClientCall::queue() {
  if (deadline_ <= home_.loop().now()) {
    return end(unexpected(ClientError{.kind = ClientErrorKind::kDeadline}));
  }
  state_ = State::kQueued;
  home_.loop().arm(timer_, deadline_);
  home_.add_queued(*this);
}

void ClientCall::on_timer(TimePoint) {
  home_.remove(*this);
  queue();  // the back-off is over, or the deadline is reached
}

void ClientCall::begin() {
  home_.loop().cancel(timer_);
  state_ = State::kUnderWay;
  collector_.clear();
  const Result<void, UpstreamFailure> started = start();
  if (started) return;
  attempt_over();
  const ClientErrorKind why = kind_of(started.error());
  is_own_bound(why) ? refused(why, false) : end(unexpected(ClientError{.kind = why}));
}

Result<void, UpstreamFailure> ClientCall::start() {
  upstream::Dispatcher& dispatcher = home_.dispatcher();
  const bool critical = request_.priority == Priority::kCritical;
  opened_ = dispatcher.open(call_, critical ? io::Access::kCritical : io::Access::kOrdinary);
  if (!opened_) return unexpected(UpstreamFailure::kNoBuffer);
  const upstream::RequestHead head = write_head(call_.space(), request_, home_.authority());
  call_.commit(head);
  const std::string_view path(request_.path);
  const std::string_view key =
      request_.hash_key.empty() ? path.substr(0, path.find('?')) : request_.hash_key;
  const bool read = head.method == http::Method::kGet || head.method == http::Method::kHead;
  const Result<void, UpstreamFailure> started = call_.start({.deadline = deadline_,
                                                             .priority = request_.priority,
                                                             .caller_attempt = attempts_ + 1,
                                                             .forwards_deadline = true,
                                                             .idempotent = request_.idempotent,
                                                             .hedge = request_.hedge && read,
                                                             .repeats = attempts_ > 0,
                                                             .hash = siphash64(kSharedKey, key)});
  if (!started) return started;
  body_passed_ = request_.body.empty();
  if (!body_passed_) pass_body();
  return {};
}

// Before the head is sent no body is accepted.
void ClientCall::pass_body() {
  if (!call_.send_body({}, false)) return;
  body_passed_ = true;
  static_cast<void>(call_.send_body(request_.body, true));
}

void ClientCall::on_upstream_writable() {
  if (!body_passed_) pass_body();
}

// ---- the answer

bool ClientCall::on_upstream_head(const upstream::ResponseHead& head) {
  if (!collector_.take_head(head, home_.response_body_max())) too_large();
  return true;
}

std::size_t ClientCall::on_upstream_body(std::string_view bytes) {
  if (!collector_.take_body(bytes, home_.response_body_max())) too_large();
  return bytes.size();
}

void ClientCall::too_large() {
  call_.cancel();
  attempt_over();
  end(unexpected(ClientError{.kind = ClientErrorKind::kResponseTooLarge}));
}

void ClientCall::on_upstream_complete() {
  attempt_over();
  home_.note_answer(collector_.overloaded());
  if (collector_.overloaded() && back_off(true)) return;
  ClientResponse& response = collector_.response();
  response.endpoint = call_.endpoint()->label();
  response.attempts = attempts_;
  response.hedged = hedged_;
  end(std::move(response));
}

void ClientCall::on_upstream_failed(UpstreamFailure failure) {
  attempt_over();
  const ClientErrorKind why = kind_of(failure);
  if (is_own_bound(why)) return refused(why, false);
  end(unexpected(ClientError{.kind = why}));
}

/// The call has ended: it has no place in flight any more.
void ClientCall::attempt_over() noexcept {
  const std::uint32_t made = opened_ ? call_.attempts() : 0;
  attempts_ += made;
  hedged_ = hedged_ || (opened_ && call_.hedged());
  if (made > 0) token_.spent();
  token_ = {};
  home_.remove(*this);
}

// ---- once more

void ClientCall::refused(ClientErrorKind why, bool sent) {
  if (back_off(sent)) return;
  end(unexpected(ClientError{.kind = why, .retry_after = home_.advice()}));
}

/// `sent`: it was refused by an endpoint, not by us.
bool ClientCall::back_off(bool sent) {
  if (home_.closing()) return false;
  const bool idempotent =
      request_.idempotent || http::is_idempotent(http::method_of(request_.method));
  const policy::OverloadRetry retry =
      policy::retry_overloaded({.idempotent = idempotent,
                                .processed = sent && !collector_.unprocessed(),
                                .attempts = std::max(attempts_, retries_ + 1),
                                .retries = retries_,
                                .pushback = collector_.pushback(),
                                .deadline_left = deadline_ - home_.loop().now()},
                               {}, home_.rng());
  if (!retry.again() || (sent && !take_token())) return false;
  ++retries_;
  home_.note_retry();
  state_ = State::kBackOff;
  home_.add_backing_off(*this);
  home_.loop().arm(timer_, home_.loop().now() + retry.wait);
  return true;
}

/// From the shared budget and that of the endpoint that refused; a set that has lost the endpoint
/// has no budget for it, and it has no more requests to protect.
bool ClientCall::take_token() {
  upstream::Upstream& upstream = home_.dispatcher().upstream();
  const std::shared_ptr<const upstream::EndpointSet> set = upstream.endpoints();
  for (const upstream::EndpointSet::Member& member : set->members) {
    if (member.endpoint.get() != call_.endpoint()) continue;
    return token_.take({.shared = upstream.budget(), .destination = member.endpoint->budget()}) ==
           control::BudgetVerdict::kTaken;
  }
  return upstream.budget().try_take();
}

// ---- the end

void ClientCall::cancel(ClientErrorKind why) {
  if (state_ == State::kUnderWay) {
    call_.cancel();
    attempt_over();
  } else {
    home_.remove(*this);
  }
  end(unexpected(ClientError{.kind = why}));
}

void ClientCall::end(Client::Answer answer) {
  home_.loop().cancel(timer_);
  const Client::OnAnswer on_answer = std::move(on_answer_);
  home_.release(*this, answer.has_value());
  if (on_answer) on_answer(std::move(answer));
}

}  // namespace weir::inline v0::inline client
