#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "weir/base/number_text.h"
#include "weir/experimental/http/response_framing.h"

#include "connection.h"
#include "h2/h2_session.h"
#include "h2/h2_stream.h"
#include "shard.h"

namespace weir::inline v0::inline server {
namespace {

constexpr std::size_t kFieldsMax = 160;
constexpr std::size_t kFrameOverhead = 256;      // frame header, :status, date, content-length
constexpr std::size_t kCodedFieldOverhead = 12;  // lengths of name and value, however coded

std::size_t head_bytes_estimate(const ResponseHead& head) {
  std::size_t size = kFrameOverhead;
  for (const ResponseField& field : head.fields) {
    size += field.name.size() + field.value.size() + kCodedFieldOverhead;
  }
  return size;
}

std::string_view text_of(const WriteBuffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data) + buffer.begin, buffer.pending()};
}

}  // namespace

SendResult H2Stream::blocked() {
  blocked_on_output_ = true;
  session_.wait_for_turn(*this);
  session_.touch();
  return SendResult::kBlocked;
}

/// Gives the head to the codec, which holds it until there is room in the output.
SendResult H2Stream::submit(const ResponseHead& head, bool end) {
  std::array<http::h2::Field, kFieldsMax> fields;
  if (head.fields.size() + 2 > fields.size()) return SendResult::kInvalid;
  std::size_t size = 0;
  for (const ResponseField& field : head.fields) fields[size++] = {field.name, field.value};
  const NumberText length(head.content_length.value_or(0));
  if (head.content_length && !http::never_has_body(head.status)) {
    fields[size++] = {"content-length", length.view()};
  }
  if (!head.dated && head.status >= 200) {
    fields[size++] = {"date", session_.shard().date(session_.now())};
  }
  http::h2::Session& wire = session_.wire();
  const http::h2::ResponseStart start = {head.status, std::span(fields.data(), size), end};
  http::h2::SubmitStatus done = wire.submit_head(wire_id_, start);
  if (done == http::h2::SubmitStatus::kBlocked && session_.put_frames(session_.now())) {
    done = wire.submit_head(wire_id_, start);
  }
  switch (done) {
    case http::h2::SubmitStatus::kOk:
      ++session_.shard().counters().responses[head.status / 100];
      session_.touch();
      return SendResult::kSent;
    case http::h2::SubmitStatus::kBlocked:
      return blocked();
    case http::h2::SubmitStatus::kBadField:
      return SendResult::kInvalid;
    case http::h2::SubmitStatus::kClosed:
    case http::h2::SubmitStatus::kNoMemory:
      break;
  }
  session_.touch();
  return SendResult::kClosed;
}

SendResult H2Stream::inform(const ResponseHead& head) {
  if (head.status == 100 && request_ == Request::kExpect) enter(Request::kBody);
  return submit(head, false);
}

SendResult H2Stream::send_headers(const ResponseHead& head, bool last) {
  if (wire_ == Wire::kOver || response_ != Response::kNone) return SendResult::kClosed;
  if (head.status < 100 || head.status > 599 || head.status == 101) return SendResult::kInvalid;
  if (head.status < 200) return inform(head);
  const http::ResponsePlan plan = http::plan_response({.method = method_,
                                                       .status = head.status,
                                                       .length = head.content_length,
                                                       .open_ended = http::OpenEnded::kFrames,
                                                       .last = last});
  if (last && !may_be_whole(plan)) return SendResult::kInvalid;
  using enum http::ResponseFraming;
  if (plan.framing == kTunnel && !reserve_tunnel()) return SendResult::kInvalid;
  const bool ends = last || !plan.body_follows;
  const SendResult result = submit(head, ends);
  if (result != SendResult::kSent) return result;
  enter(Response::kOpen);
  if (ends) enter(Wire::kEnded);
  const bool bodiless = method_ == http::Method::kHead || plan.framing == kNone;
  framing_ = bodiless                  ? Framing::kNone
             : plan.framing == kTunnel ? Framing::kTunnel
             : plan.framing == kLength ? Framing::kLength
                                       : Framing::kOpen;
  response_length_ = plan.length;
  if (framing_ == Framing::kTunnel) begin_tunnel();
  if (last) end_response();
  return SendResult::kSent;
}

std::size_t H2Stream::send_data(std::string_view bytes, bool last) {
  if (response_ != Response::kOpen) return 0;
  if (framing_ == Framing::kNone) {
    if (last) end_response();
    return bytes.size();
  }
  const std::uint64_t announced = response_length_ - body_sent_;
  const bool announces = framing_ == Framing::kLength;
  if (announces && (bytes.size() > announced || (last && bytes.size() < announced))) {
    reset();  // not as announced: it must not look complete
    return 0;
  }
  const TimePoint now = session_.now();
  std::string_view piece = bytes;
  // If other streams are ready: one frame at a time, and only in this stream's turn.
  if (session_.others_wait()) piece = piece.substr(0, http::h2::kFramePayloadMax);
  std::size_t taken = 0;
  if (wire_ == Wire::kOpen) {
    const bool whole = piece.size() == bytes.size();
    const bool fills = announces && piece.size() == announced;
    const bool end = (last && whole) || fills;
    H2Session::Put put{.bytes = 0, .stop = H2Session::PutStop::kRoom};
    if (piece.empty() && !end) return 0;
    if (!session_.must_queue(*this)) put = session_.put_data(*this, piece, end, now);
    taken = put.bytes;
    body_sent_ += taken;
    write_guard_.add(taken, now, write_rule(session_.shard().config()));
    if (framing_ == Framing::kTunnel && taken > 0) tunnel_active_ = now;
    if (put.stop != H2Session::PutStop::kAll && bytes.empty()) {
      enter(Wire::kEndDue);
    } else if (put.stop == H2Session::PutStop::kAll && end) {
      enter(Wire::kEnded);
    }
    if (taken < bytes.size() || wire_ == Wire::kEndDue) {
      blocked_on_output_ = taken < bytes.size();
      if (put.stop == H2Session::PutStop::kWindow) {
        session_.wait_for_window(*this);
      } else {
        session_.wait_for_turn(*this);
      }
    }
  }
  if (paused_) session_.wait_for_drain(*this);
  if (last && taken == bytes.size()) end_response();
  session_.touch();
  return taken;
}

SendResult H2Stream::send_trailers(std::span<const ResponseField> fields) {
  if (response_ != Response::kOpen || framing_ == Framing::kTunnel) return SendResult::kClosed;
  if (framing_ == Framing::kNone || wire_ >= Wire::kEnded) {
    end_response();
    return SendResult::kSent;
  }
  if (framing_ == Framing::kLength) {
    reset();  // fewer bytes than announced
    return SendResult::kClosed;
  }
  std::array<http::h2::Field, kFieldsMax> copies;
  if (fields.size() > copies.size()) return SendResult::kInvalid;
  for (std::size_t i = 0; i < fields.size(); ++i) copies[i] = {fields[i].name, fields[i].value};
  const std::span<const http::h2::Field> list(copies.data(), fields.size());
  http::h2::Session& wire = session_.wire();
  http::h2::SubmitStatus done = wire.submit_trailers(wire_id_, list);
  if (done == http::h2::SubmitStatus::kBlocked && session_.put_frames(session_.now())) {
    done = wire.submit_trailers(wire_id_, list);
  }
  if (done == http::h2::SubmitStatus::kBlocked) return blocked();
  if (done == http::h2::SubmitStatus::kBadField) return SendResult::kInvalid;
  if (done != http::h2::SubmitStatus::kOk) return SendResult::kClosed;
  enter(Wire::kEnded);
  end_response();
  session_.touch();
  return SendResult::kSent;
}

SendResult H2Stream::send_response(const ResponseHead& head, std::string_view body, BodyLife life) {
  if (wire_ == Wire::kOver || response_ != Response::kNone) return SendResult::kClosed;
  if (head.status < 200 || head.status > 599) return SendResult::kInvalid;
  ResponseHead whole = head;
  whole.content_length = body.size();
  const bool bodiless = method_ == http::Method::kHead || http::never_has_body(head.status);
  const std::string_view payload = bodiless ? std::string_view{} : body;
  const bool at_once =
      payload.empty() || (!session_.must_queue(*this) &&
                          session_.reserve(*this, head_bytes_estimate(head), payload.size()));
  if (!at_once && !keep_tail(payload, life)) {
    LoopShard& shard = session_.shard();
    const std::size_t most =
        std::size_t{shard.shared().write_quota} * shard.config().tcp_write_buffer_size;
    if (payload.size() > most) return SendResult::kInvalid;
    if (session_.connection().output().blocked()) return blocked();  // the pool's queue decides
    blocked_on_output_ = true;
    session_.wait_for_window(*this);  // or the quota: checked when either changes
    session_.touch();
    return SendResult::kBlocked;
  }
  if (!at_once) session_.connection().output().forgive();  // blocked streams ask again
  const SendResult result = submit(whole, payload.empty());
  if (result != SendResult::kSent) {
    drop_tail();
    return result;
  }
  enter(Response::kOpen);
  if (at_once && !payload.empty()) {
    const H2Session::Put put = session_.put_data(*this, payload, true, session_.now());
    body_sent_ = put.bytes;
    if (put.stop != H2Session::PutStop::kAll) {  // the session ended: no partial response
      reset();
      return SendResult::kSent;
    }
  }
  if (at_once) enter(Wire::kEnded);
  end_response();
  if (tail_pending()) session_.wait_for_turn(*this);
  return SendResult::kSent;
}

/// Keeps a body that cannot be sent at once. Bytes that are valid as long as the stream are not
/// copied.
bool H2Stream::keep_tail(std::string_view body, BodyLife life) {
  if (life == BodyLife::kStream || (arena() != nullptr && arena()->owns(body.data()))) {
    tail_ = body;
    return true;
  }
  if (arena() != nullptr) {
    tail_ = arena()->copy(body);
    if (!tail_.empty()) return true;
  }
  WriteBuffer* last = nullptr;
  const std::size_t whole = body.size();
  while (!body.empty()) {
    WriteBuffer* buffer = session_.hold(access_);
    if (buffer == nullptr) {
      drop_tail();
      // If the pool had none, the connection is blocked until it gets all buffers it needs.
      if (!session_.at_quota()) {
        static_cast<void>(session_.connection().output().reserve(whole, access_));
      }
      return false;
    }
    (last == nullptr ? held_ : last->next) = buffer;
    last = buffer;
    const std::size_t size = std::min<std::size_t>(body.size(), buffer->room());
    std::memcpy(buffer->space().data(), body.data(), size);
    buffer->end += static_cast<std::uint32_t>(size);
    body.remove_prefix(size);
  }
  return true;
}

void H2Stream::drop_tail() noexcept {
  tail_ = {};
  while (held_ != nullptr) session_.unpark(std::exchange(held_, held_->next));
}

H2Stream::Turn H2Stream::send_tail(TimePoint now) {
  const std::string_view rest = held_ != nullptr ? text_of(*held_) : tail_;
  const std::string_view piece = rest.substr(0, http::h2::kFramePayloadMax);
  const bool last = piece.size() == rest.size() && (held_ == nullptr || held_->next == nullptr);
  const H2Session::Put put = session_.put_data(*this, piece, last, now);
  body_sent_ += put.bytes;
  write_guard_.add(put.bytes, now, write_rule(session_.shard().config()));
  if (wire_ == Wire::kOver) return Turn::kOver;  // that was the last frame; the tail is dropped
  if (held_ == nullptr) {
    tail_.remove_prefix(put.bytes);
  } else {
    held_->begin += static_cast<std::uint32_t>(put.bytes);
    if (held_->pending() == 0) {
      session_.unpark(std::exchange(held_, held_->next));
      session_.retry_blocked();  // for streams that are blocked on a buffer
    }
  }
  if (put.stop == H2Session::PutStop::kWindow) return Turn::kBlocked;
  if (put.stop == H2Session::PutStop::kRoom) return Turn::kNoRoom;
  if (last) enter(Wire::kEnded);
  return last ? Turn::kOver : Turn::kAgain;
}

H2Stream::Turn H2Stream::take_turn(TimePoint now) {
  if (wire_ == Wire::kRefusalDue) return say_503() ? Turn::kOver : Turn::kNoRoom;
  if (tail_pending()) return send_tail(now);
  if (wire_ == Wire::kEndDue) {
    const H2Session::Put put = session_.put_data(*this, {}, true, now);
    if (put.stop == H2Session::PutStop::kWindow) return Turn::kBlocked;
    if (put.stop == H2Session::PutStop::kRoom) return Turn::kNoRoom;
    enter(Wire::kEnded);
    return Turn::kOver;
  }
  if (!blocked_on_output_) return Turn::kOver;
  if (response_ == Response::kOpen && session_.wire().window(wire_id_) == 0) return Turn::kBlocked;
  blocked_on_output_ = false;
  handler_->on_writable(*this);  // it queues again if it is still blocked
  return Turn::kOver;
}

void H2Stream::send_503() {
  if (wire_ == Wire::kOver || response_ != Response::kNone) return;
  LoopCounters& counters = session_.shard().counters();
  counters.count(RefuseReason::kOverload503);
  if (access_ == io::Access::kCritical) ++counters.critical_shed;
  enter(Response::kOpen);
  if (!say_503()) {
    enter(Wire::kRefusalDue);
    session_.wait_for_turn(*this);
  }
  end_response();
  session_.touch();
}

/// False if there is no room: retry later.
bool H2Stream::say_503() {
  static constexpr std::array<http::h2::Field, 3> kFields = {
      {{"content-length", "0"}, {"retry-after", "1"}, {"x-weir-reason", "no_place"}}};
  const http::h2::SubmitStatus done =
      session_.wire().submit_head(wire_id_, {.status = 503, .fields = kFields, .end = true});
  if (done == http::h2::SubmitStatus::kBlocked) return false;
  enter(Wire::kEnded);
  if (done == http::h2::SubmitStatus::kOk) ++session_.shard().counters().responses[5];
  return true;
}

/// The handler has sent all of the response. The unsent rest is sent in turn.
void H2Stream::end_response() noexcept {
  enter(Response::kDone);
  blocked_on_output_ = false;
  if (wire_ == Wire::kOver) session_.add_finished(*this);
}

std::size_t H2Stream::unsent_bytes() const noexcept {
  return std::min<std::uint64_t>(body_sent_, session_.connection().output().pending());
}

std::size_t H2Stream::writable_bytes() const noexcept {
  if (wire_ == Wire::kOver || !wants_events()) return 0;
  const std::size_t room = session_.connection().output().room();
  const std::size_t frames = room / http::h2::kFramePayloadMax + 2;
  const std::size_t lost = frames * http::h2::kFrameHeaderBytes;
  const std::size_t window = session_.wire().window(wire_id_);
  return room <= lost ? 0 : std::min(window, room - lost);
}

}  // namespace weir::inline v0::inline server
