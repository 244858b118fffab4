#include "h2_stream.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "weir/base/assert.h"
#include "weir/experimental/http/grpc.h"

#include "client_connection.h"
#include "h2_wire.h"

// After a call into events_ the stream may be in use by somebody else: such calls come last, or the
// identity of events_ is checked.

namespace weir::inline v0::upstream {
namespace {

policy::Processed processed_of(http::h2::Processed processed) noexcept {
  switch (processed) {
    case http::h2::Processed::kNo:
      return policy::Processed::kNo;
    case http::h2::Processed::kMaybe:
      return policy::Processed::kMaybe;
    case http::h2::Processed::kYes:
      break;
  }
  return policy::Processed::kYes;
}

UpstreamFailure reset_by_peer(http::h2::ErrorCode code) noexcept {
  switch (code) {
    case http::h2::ErrorCode::kRefusedStream:
      return UpstreamFailure::kRefusedStream;
    case http::h2::ErrorCode::kEnhanceYourCalm:
      return UpstreamFailure::kCalmDown;
    case http::h2::ErrorCode::kHttp11Required:
      return UpstreamFailure::kHttp11Required;
    default:
      return UpstreamFailure::kStreamReset;
  }
}

std::string_view digits(std::array<char, 20>& out, std::uint64_t value) noexcept {
  const char* end = std::to_chars(out.data(), out.data() + out.size(), value).ptr;
  return {out.data(), static_cast<std::size_t>(end - out.data())};
}

}  // namespace

H2Stream::~H2Stream() {
  WEIR_ASSERT(events_ == nullptr && !held_.attached());
}

// ---- the request

void H2Stream::start(const RequestHead& head, const AttemptFields& fields,
                     ClientStreamEvents& events) noexcept {
  WEIR_ASSERT(state_ == State::kTaken);
  state_ = State::kOpen;
  events_ = &events;
  id_ = 0;
  sent_mark_ = 0;
  got_head_ = response_end_ = draining_ = false;
  ended_ = head.framing == RequestFraming::kNone;
  progress_at_ = wire_.now();
  if (head.http2_only) wire_.note_grpc();
  std::array<char, 20> attempt;
  std::array<char, 20> time_left;
  H2Wire::FieldList list = wire_.field_list();
  head.for_each_field(
      [&](std::string_view name, std::string_view value) { list.add(name, value); });
  if (fields.attempt > 1) list.add("x-weir-attempt", digits(attempt, fields.attempt));
  if (fields.time_left_ms) list.add("x-weir-deadline-ms", digits(time_left, *fields.time_left_ms));
  const http::GrpcTimeoutText grpc_timeout(fields.grpc_timeout.value_or(Duration(0)));
  if (fields.grpc_timeout) list.add("grpc-timeout", grpc_timeout.view());
  const Result<http::h2::StreamId, UpstreamFailure> opened =
      head.upgrade || list.overflowed()
          ? Result<http::h2::StreamId, UpstreamFailure>(unexpected(
                head.upgrade ? UpstreamFailure::kHttp11Required : UpstreamFailure::kNoBuffer))
          : wire_.open({.method = head.method_text(),
                        .scheme = wire_.scheme(),
                        .authority = head.authority(),
                        .path = head.path(),
                        .fields = list.fields(),
                        .end = ended_},
                       *this);
  if (!opened) {
    not_started_ = opened.error();
    return wire_.fail_later(*this);
  }
  id_ = *opened;
  sent_mark_ = wire_.put_bytes();
  wire_.flush_later();
  wait();
}

void H2Stream::decline() noexcept {
  WEIR_ASSERT(state_ == State::kTaken);
  wire_.free(*this);
}

void H2Stream::wait() noexcept {
  wire_.wait_for_progress(*this);
}

bool H2Stream::request_sent() const noexcept {
  return id_ != 0 && ended_ && wire_.sent_bytes() >= sent_mark_ && !wire_.has_frames();
}

std::size_t H2Stream::send(std::string_view bytes, bool last) noexcept {
  if (id_ == 0 || ended_ || state_ != State::kOpen) return 0;
  std::size_t accepted = 0;
  while (!bytes.empty() || last) {
    const std::size_t n = wire_.put_data(id_, bytes, last);
    if (n == H2Wire::kNoRoom) break;
    accepted += n;
    bytes.remove_prefix(n);
    progress_at_ = wire_.now();
    if (bytes.empty() && last) {
      ended_ = true;
      break;
    }
  }
  sent_mark_ = wire_.put_bytes();
  wire_.flush_later();
  if (!bytes.empty() || ended_ || last) wait();
  return accepted;
}

std::size_t H2Stream::send_trailers(std::string_view lines) noexcept {
  if (id_ == 0 || ended_ || state_ != State::kOpen) return 0;
  H2Wire::FieldList list = wire_.field_list();
  for (std::string_view rest = lines; !rest.empty();) {
    const std::size_t end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, end);
    const std::size_t colon = line.find(": ");
    list.add(line.substr(0, colon), line.substr(colon + 2));
    rest.remove_prefix(end + 2);
  }
  if (!wire_.put_trailers(id_, list)) {
    wait();
    return 0;
  }
  ended_ = true;
  sent_mark_ = wire_.put_bytes();
  wire_.flush_later();
  wait();
  return lines.size();
}

void H2Stream::on_progress() {
  if (events_ == nullptr) return;
  progress_at_ = wire_.now();
  if (ended_ && !request_sent()) return wait();
  events_->on_stream_writable();
}

// ---- the response

void H2Stream::on_head(const http::h2::ResponseHead& head) {
  if (events_ == nullptr) return;
  progress_at_ = wire_.now();
  ResponseHead neutral{.headers = head.headers,
                       .body = {.kind = http::h1::BodyKind::kUntilClose},
                       .status = head.status,
                       .http10 = false,
                       .informational = head.informational,
                       .tunnel = false,
                       .protocol = WireProtocol::kHttp2};
  if (head.body_length) {
    neutral.body = {.kind = *head.body_length == 0 && head.end ? http::h1::BodyKind::kNone
                                                               : http::h1::BodyKind::kLength,
                    .length = *head.body_length};
  }
  if (!head.informational) {
    got_head_ = true;
    response_end_ = head.end;
  }
  ClientStreamEvents* const events = events_;
  const bool taken = events->on_stream_head(neutral);
  if (events_ != events) return;  // cancelled meanwhile
  if (!taken && !head.informational) {
    if (hold() && held_.put_head(neutral)) return;
    return fail(UpstreamFailure::kNoBuffer, http::h2::Processed::kYes);
  }
  if (response_end_) finish();
}

void H2Stream::on_body(const http::BodyChunk& chunk) {
  if (events_ == nullptr) {
    wire_.connection().note_discarded(chunk.text().size());
    return wire_.grant(id_, chunk.text().size());
  }
  progress_at_ = wire_.now();
  response_end_ = response_end_ || chunk.last();
  std::string_view bytes = chunk.text();
  if (!held_.attached() && !bytes.empty()) {
    ClientStreamEvents* const events = events_;
    std::size_t taken = events->on_stream_body(bytes);
    if (events_ != events) return;
    if (taken < bytes.size()) taken += events->keep_body(bytes.substr(taken));
    wire_.grant(id_, taken);
    bytes.remove_prefix(taken);
  }
  if (!bytes.empty()) {
    if (!held_.attached() && !hold()) {
      return fail(UpstreamFailure::kNoBuffer, http::h2::Processed::kYes);
    }
    held_.put_body(bytes);
  }
  if (response_end_ && !held_.attached()) finish();
}

void H2Stream::on_trailers(const http::HeaderList& trailers) {
  if (events_ == nullptr) return;
  bool taken = false;
  if (!held_.attached()) {
    ClientStreamEvents* const events = events_;
    taken = events->on_stream_trailers(trailers);
    if (events_ != events) return;
    taken = taken || events->keep_trailers(trailers);
  }
  if (taken) return;
  if ((held_.attached() || hold()) && held_.put_trailers(trailers)) return;
  fail(UpstreamFailure::kNoBuffer, http::h2::Processed::kYes);
}

bool H2Stream::hold() noexcept {
  char* block = wire_.connection().acquire_region();
  if (block == nullptr) return false;
  held_.attach(block, wire_.held_shape());
  return true;
}

void H2Stream::drop_held() noexcept {
  if (!held_.attached()) return;
  wire_.connection().note_discarded(held_.body().size());
  wire_.connection().release_region(held_.detach());
}

void H2Stream::resume() noexcept {
  if (!held_.attached() || events_ == nullptr) return;
  progress_at_ = wire_.now();
  ClientStreamEvents* const events = events_;
  if (held_.has_head()) {
    if (!events->on_stream_head(held_.head(wire_.connection().field_storage()))) return;
    if (events_ != events) return;
    held_.drop_fields();
  }
  while (!held_.body().empty()) {
    const std::string_view bytes = held_.body();
    std::size_t taken = events->on_stream_body(bytes);
    if (events_ != events) return;
    if (taken < bytes.size()) taken += events->keep_body(bytes.substr(taken));
    held_.consume(taken);
    wire_.grant(id_, taken);
    if (taken < bytes.size()) return;
  }
  if (held_.has_trailers()) {
    const http::HeaderList trailers = held_.trailers(wire_.connection().field_storage());
    const bool taken = events->on_stream_trailers(trailers);
    if (events_ != events || (!taken && !events->keep_trailers(trailers))) return;
    held_.drop_fields();
  }
  drop_held();
  if (response_end_) finish();
}

// ---- ends

// The rest of a request that the endpoint did not wait for is not sent.
void H2Stream::finish() {
  ClientStreamEvents* events = std::exchange(events_, nullptr);
  close(http::h2::ErrorCode::kNoError);
  events->on_stream_complete();
}

void H2Stream::fail(UpstreamFailure failure, http::h2::Processed processed) {
  ClientStreamEvents* events = std::exchange(events_, nullptr);
  const StreamFailure told{.failure = failure,
                           .processed = processed_of(processed),
                           .written = processed != http::h2::Processed::kNo,
                           .reused = wire_.requests() > 1};
  close(http::h2::ErrorCode::kCancel);
  if (events != nullptr) events->on_stream_failed(told);
}

void H2Stream::close(http::h2::ErrorCode code) noexcept {
  drop_held();
  if (waiting_hook.linked()) wire_.stop_waiting(*this);
  if (state_ != State::kOpen) return;
  state_ = State::kClosing;
  if (id_ == 0) return wire_.free(*this);
  if (!ended_ || !response_end_) wire_.reset(id_, code);  // on_end() follows in any case
}

void H2Stream::cancel() noexcept {
  if (events_ == nullptr) return;
  events_ = nullptr;
  if (failed_hook.linked()) wire_.stop_failing(*this);
  close(http::h2::ErrorCode::kCancel);
}

policy::LoserEnd H2Stream::lose() noexcept {
  const bool all_here = ended_ && response_end_;
  if (events_ == nullptr || all_here || id_ == 0) {
    cancel();  // there is nothing to reset
    return policy::LoserEnd::kDrain;
  }
  if (!ended_ || wire_.end_of_loser() == policy::LoserEnd::kReset) {
    cancel();
    return policy::LoserEnd::kReset;
  }
  events_ = nullptr;
  const std::size_t unread = held_.attached() ? held_.body().size() : 0;
  drop_held();
  if (waiting_hook.linked()) wire_.stop_waiting(*this);
  state_ = State::kClosing;
  draining_ = true;
  progress_at_ = wire_.now();
  wire_.note_drain();
  wire_.grant(id_, unread);
  return policy::LoserEnd::kDrain;
}

void H2Stream::stop_draining() noexcept {
  draining_ = false;
  wire_.reset(id_, http::h2::ErrorCode::kCancel);
}

void H2Stream::on_not_started() {
  ClientStreamEvents* events = std::exchange(events_, nullptr);
  const UpstreamFailure failure = not_started_;
  state_ = State::kClosing;
  wire_.free(*this);
  events->on_stream_failed(
      {.failure = failure, .processed = policy::Processed::kNo, .written = false, .reused = false});
}

void H2Stream::on_end(http::h2::StreamEnd end, http::h2::ErrorCode code,
                      http::h2::Processed processed) {
  // A response that is complete stays so; its owner may still have to take it.
  const bool complete = end == http::h2::StreamEnd::kDone || response_end_;
  if (events_ != nullptr && !complete) {
    const UpstreamFailure failure = end == http::h2::StreamEnd::kPeerReset ? reset_by_peer(code)
                                    : code == http::h2::ErrorCode::kRefusedStream
                                        ? UpstreamFailure::kRefusedStream
                                        : UpstreamFailure::kBadResponse;
    ClientStreamEvents* events = std::exchange(events_, nullptr);
    drop_held();
    if (waiting_hook.linked()) wire_.stop_waiting(*this);
    state_ = State::kClosing;
    const StreamFailure told{
        .failure = failure,
        .processed = processed_of(processed),
        .written = end == http::h2::StreamEnd::kPeerReset || processed != http::h2::Processed::kNo,
        .reused = wire_.requests() > 1};
    wire_.free(*this);
    events->on_stream_failed(told);
    return;
  }
  id_ = 0;
  draining_ = false;
  if (events_ == nullptr) wire_.free(*this);  // otherwise its owner has to take what is held
}

void H2Stream::on_lost(http::h2::Processed processed) {
  if (events_ == nullptr) return;
  ClientStreamEvents* events = std::exchange(events_, nullptr);
  drop_held();
  if (waiting_hook.linked()) wire_.stop_waiting(*this);
  if (failed_hook.linked()) wire_.stop_failing(*this);
  state_ = State::kClosing;
  // The codec forgets a stream whose response is complete, and then says that nothing was
  // processed.
  const policy::Processed known = got_head_ ? policy::Processed::kYes : processed_of(processed);
  events->on_stream_failed(
      {.failure = got_head_ ? UpstreamFailure::kTruncated : UpstreamFailure::kClosedEarly,
       .processed = known,
       .written = known != policy::Processed::kNo,
       .reused = wire_.requests() > 1});
}

}  // namespace weir::inline v0::upstream
