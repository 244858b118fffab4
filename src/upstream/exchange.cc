#include "upstream/exchange.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "weir/base/assert.h"
#include "weir/experimental/http/h1/serializer.h"

#include "upstream/connection.h"
#include "upstream/pool.h"

namespace weir::inline v0::upstream {

Exchange::~Exchange() {
  WEIR_ASSERT(pool_ == nullptr && buffer_ == nullptr);
}

std::span<char> Exchange::space() noexcept {
  return {buffer_ + end_, pool_->memory_.requests.block_bytes() - end_};
}

void Exchange::commit(std::size_t head_bytes, std::size_t time_left_at) noexcept {
  head_bytes_ = static_cast<std::uint32_t>(head_bytes);
  time_left_at_ = static_cast<std::uint32_t>(time_left_at);
  end_ = head_bytes_;
}

// Right-aligned: white space before a field value is not part of it.
void Exchange::write_time_left(TimePoint now) noexcept {
  if (time_left_at_ == 0) return;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(plan_.caller_deadline - now).count();
  auto rest = static_cast<std::uint64_t>(std::max<std::int64_t>(left, 0));
  for (std::size_t i = kTimeLeftDigits; i-- > 0; rest /= 10) {
    const bool blank = rest == 0 && i + 1 < kTimeLeftDigits;
    buffer_[time_left_at_ + i] = blank ? ' ' : static_cast<char>('0' + rest % 10);
  }
}

void Exchange::append(std::string_view bytes) noexcept {
  if (bytes.empty()) return;
  if (bytes.size() > space().size() && begin_ == end_) begin_ = end_ = 0;
  WEIR_ASSERT(bytes.size() <= space().size());
  std::memcpy(buffer_ + end_, bytes.data(), bytes.size());
  end_ += static_cast<std::uint32_t>(bytes.size());
}

void Exchange::release_buffer() noexcept {
  if (buffer_ == nullptr) return;
  pool_->memory_.requests.release(pool_->loop_index_, reinterpret_cast<std::byte*>(buffer_));
  buffer_ = nullptr;
  begin_ = end_ = 0;
}

// A request that is sent, and whose response has begun, is never sent again.
void Exchange::release_sent_buffer() noexcept {
  if (request_complete_ && response_started_ && begin_ == end_ && !tunnel_) release_buffer();
}

bool Exchange::send_body(std::string_view bytes, bool last) noexcept {
  WEIR_ASSERT(active() && !owes_writable_);
  const bool chunked = plan_.framing == RequestFraming::kChunked && !tunnel_;
  if (!bytes.empty() || (chunked && last)) body_given_ = true;
  std::array<char, http::h1::kChunkHeadRoom> size_line;
  std::array<std::string_view, 4> pieces{};
  if (chunked && !bytes.empty()) {
    const std::size_t n =
        http::h1::write_chunk_head(size_line, static_cast<std::uint32_t>(bytes.size()));
    pieces = {std::string_view(size_line.data(), n), bytes, "\r\n", {}};
  } else {
    pieces[1] = bytes;
  }
  if (last) {
    request_complete_ = true;
    if (chunked) pieces[3] = http::h1::kLastChunk;
  }
  std::size_t written = 0;
  if (connection_ != nullptr && begin_ == end_) {
    std::array<io::ConstBuffer, 4> gather{};
    std::size_t count = 0;
    for (const std::string_view piece : pieces) {
      if (piece.empty()) continue;
      gather[count++] = {reinterpret_cast<const std::byte*>(piece.data()), piece.size()};
    }
    if (count > 0) written = connection_->write_through(std::span(gather.data(), count));
  }
  for (const std::string_view piece : pieces) {
    const std::size_t done = std::min(written, piece.size());
    append(piece.substr(done));
    written -= done;
  }
  if (last && connection_ != nullptr) connection_->request_ended();
  owes_writable_ = begin_ != end_;
  return !owes_writable_;
}

bool Exchange::send_trailers(std::span<const http::HeaderView> trailers) noexcept {
  if (plan_.framing != RequestFraming::kChunked || trailers.empty()) return send_body({}, true);
  request_complete_ = body_given_ = true;
  if (begin_ == end_) begin_ = end_ = 0;
  const Result<std::size_t, http::h1::WriteError> written =
      http::h1::write_last_chunk(space(), trailers);
  if (written) {
    end_ += static_cast<std::uint32_t>(*written);
  } else {
    append(http::h1::kLastChunk);  // trailers are optional; the end of the body is not
  }
  owes_writable_ = connection_ == nullptr || !connection_->flush();
  if (connection_ != nullptr) connection_->request_ended();
  return !owes_writable_;
}

void Exchange::resume() noexcept {
  if (connection_ != nullptr) connection_->resume();
}

void Exchange::cancel() noexcept {
  if (pool_ == nullptr) return;
  UpstreamConnection* connection = connection_;
  if (connection == nullptr) {
    pool_->stop_waiting(*this);
    pool_->detach(*this);
    return;
  }
  connection->abandon();
}

void Exchange::lift_deadlines() noexcept {
  plan_.deadline = TimePoint::max();
  plan_.patient = true;
  if (connection_ != nullptr) connection_->rearm();
}

}  // namespace weir::inline v0::upstream
