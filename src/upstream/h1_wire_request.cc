#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "weir/base/assert.h"
#include "weir/experimental/http/h1/serializer.h"

#include "client_connection.h"
#include "h1_wire.h"

// The request: head, body, trailers.

namespace weir::inline v0::upstream {

void H1Wire::start(const RequestHead& head, const AttemptFields& fields,
                   ClientStreamEvents& events) noexcept {
  WEIR_ASSERT(state_ == State::kIdle && events_ == nullptr);
  state_ = State::kHead;
  events_ = &events;
  head_ = &head;
  ++generation_;
  ++requests_;
  parser_.begin({.method = head.method, .upgrade_sent = head.upgrade});
  head_sent_ = head_bytes_ = 0;
  chunk_left_ = 0;
  frame_begin_ = frame_end_ = 0;
  ended_ = head.framing == RequestFraming::kNone && !head.upgrade;
  trailers_begun_ = tunnel_ = keep_alive_ = held_last_ = paused_ = false;
  write_broken_ = wrote_some_ = want_write_ = heard_some_ = false;
  held_ = {};
  progress_at_ = connection_.now();
  write_tail(fields);
  static_cast<void>(flush());
}

void H1Wire::decline() noexcept {
  WEIR_ASSERT(idle());
  connection_.on_stream_over(true);
}

void H1Wire::write_tail(const AttemptFields& fields) noexcept {
  char* at = tail_.data();
  char* const end = tail_.data() + tail_.size();
  const auto put = [&](std::string_view text) { at += text.copy(at, text.size()); };
  const auto field = [&](std::string_view name, std::uint64_t value) {
    put(name);
    at = std::to_chars(at, end, value).ptr;
    put("\r\n");
  };
  if (fields.attempt > 1) field("x-weir-attempt: ", fields.attempt);
  if (fields.time_left_ms) field("x-weir-deadline-ms: ", *fields.time_left_ms);
  put("\r\n");
  tail_size_ = static_cast<std::uint8_t>(at - tail_.data());
}

std::size_t H1Wire::unflushed() const noexcept {
  return head_->size + tail_size_ - head_sent_ + (frame_end_ - frame_begin_);
}

void H1Wire::queue_frame(std::string_view rest) noexcept {
  WEIR_ASSERT(frame_begin_ == frame_end_ && rest.size() <= frame_.size());
  frame_begin_ = 0;
  frame_end_ = static_cast<std::uint8_t>(rest.copy(frame_.data(), rest.size()));
}

/// Sends what is left of head and framing. True: nothing is left.
bool H1Wire::flush() noexcept {
  while (unflushed() > 0) {
    if (write_broken_) return false;
    const std::uint32_t in_text = std::min(head_sent_, head_->size);
    const std::uint32_t in_tail = head_sent_ - in_text;
    const std::array<std::string_view, 3> pieces = {
        std::string_view(head_->text + in_text, head_->size - in_text),
        std::string_view(tail_.data() + in_tail, tail_size_ - in_tail),
        std::string_view(frame_.data() + frame_begin_,
                         static_cast<std::size_t>(frame_end_ - frame_begin_))};
    const std::size_t done = write(pieces);
    if (done == 0) return false;
    const std::size_t of_head = std::min(done, pieces[0].size() + pieces[1].size());
    head_sent_ += static_cast<std::uint32_t>(of_head);
    frame_begin_ = static_cast<std::uint8_t>(frame_begin_ + (done - of_head));
  }
  frame_begin_ = frame_end_ = 0;
  want_write_ = false;
  end_request();
  connection_.update_watch();
  return true;
}

/// Writes what the kernel accepts; 0 if nothing.
std::size_t H1Wire::write(std::span<const std::string_view> pieces) noexcept {
  std::array<io::ConstBuffer, 4> gather;
  std::size_t count = 0;
  std::size_t wanted = 0;
  for (const std::string_view piece : pieces) {
    if (piece.empty()) continue;
    gather[count++] = {reinterpret_cast<const std::byte*>(piece.data()), piece.size()};
    wanted += piece.size();
  }
  if (count == 0) return 0;
  std::array<std::byte, 1024> joined;  // a copy of so little costs less than a gathered write
  if (count > 1 && wanted <= joined.size()) {
    std::byte* at = joined.data();
    for (std::size_t i = 0; i < count; ++i) {
      at = std::copy_n(gather[i].data, gather[i].size, at);
    }
    gather[0] = {joined.data(), wanted};
    count = 1;
  }
  const io::IoResult written = connection_.transport().write({gather.data(), count});
  const std::size_t done = written ? *written : 0;
  // After an error, reading shows the cause, or an early response.
  if (!written && written.error() != io::IoError::kAgain) write_broken_ = true;
  if (done > 0) {
    wrote_some_ = true;
    progress_at_ = connection_.now();
  }
  want_write_ = done < wanted && !write_broken_;
  connection_.update_watch();
  return done;
}

std::size_t H1Wire::send(std::string_view bytes, bool last) noexcept {
  std::size_t accepted = 0;
  for (;;) {
    if (ended_ || !flush() || (bytes.empty() && !last)) return accepted;
    std::array<char, http::h1::kChunkHeadRoom> size_line;
    std::array<std::string_view, 4> pieces{};
    const bool chunked = head_->framing == RequestFraming::kChunked && !tunnel_;
    if (chunked && chunk_left_ == 0 && !bytes.empty()) {
      chunk_left_ = bytes.size();
      const auto size = static_cast<std::uint32_t>(bytes.size());
      pieces[0] = {size_line.data(), http::h1::write_chunk_head(size_line, size)};
    }
    pieces[1] = chunked ? bytes.substr(0, static_cast<std::size_t>(chunk_left_)) : bytes;
    const bool all = pieces[1].size() == bytes.size();
    if (chunked) {
      const bool closes_chunk = !bytes.empty() && pieces[1].size() == chunk_left_;
      if (closes_chunk) pieces[2] = "\r\n";
      if (all && last) pieces[3] = http::h1::kLastChunk;
    }
    std::size_t done = write(pieces);
    const std::size_t of_prefix = std::min(done, pieces[0].size());
    const std::size_t of_payload = std::min(done - of_prefix, pieces[1].size());
    if (of_prefix < pieces[0].size()) queue_frame(pieces[0].substr(of_prefix));
    if (chunked) chunk_left_ -= of_payload;
    accepted += of_payload;
    bytes.remove_prefix(of_payload);
    if (of_payload < pieces[1].size() || of_prefix < pieces[0].size()) return accepted;
    done -= of_prefix + of_payload;
    std::array<char, 8> rest;
    const std::size_t n = pieces[2].copy(rest.data(), 2);
    const std::string_view suffix(rest.data(), n + pieces[3].copy(rest.data() + n, 5));
    if (done < suffix.size()) queue_frame(suffix.substr(done));
    if (all && last) {
      ended_ = true;
      end_request();
      return accepted;
    }
    if (bytes.empty()) return accepted;
  }
}

std::size_t H1Wire::send_trailers(std::string_view lines) noexcept {
  WEIR_ASSERT(head_->framing == RequestFraming::kChunked && chunk_left_ == 0);
  if (ended_ || !flush()) return 0;
  const std::string_view begin = std::exchange(trailers_begun_, true) ? "" : "0\r\n";
  const std::array<std::string_view, 3> pieces = {begin, lines, "\r\n"};
  std::size_t done = write(pieces);
  if (done < begin.size()) {
    queue_frame(begin.substr(done));
    return 0;
  }
  done -= begin.size();
  if (done < lines.size()) return done;
  if (done < lines.size() + 2) queue_frame(pieces[2].substr(done - lines.size()));
  ended_ = true;
  return lines.size();
}

// The client ended its side of a tunnel: so do we, after its last byte.
void H1Wire::end_request() noexcept {
  if (tunnel_ && ended_ && unflushed() == 0) connection_.transport().shutdown_write();
}

void H1Wire::on_writable() noexcept {
  if (events_ == nullptr || head_ == nullptr) return;
  progress_at_ = connection_.now();
  if (flush()) events_->on_stream_writable();
}

}  // namespace weir::inline v0::upstream
