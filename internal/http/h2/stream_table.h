#pragma once

#include <cstddef>
#include <cstdint>

#include "http/h2/frame.h"

namespace weir::inline v0::http::h2 {

/// The state of one stream, on either side of the connection.
struct Stream {
  static constexpr std::uint64_t kNoLength = ~std::uint64_t{0};

  StreamId id = 0;
  std::uint32_t end_code = 0;                // of the RST_STREAM that ended it
  void* user = nullptr;                      // the owner's pointer
  std::uint64_t content_length = kNoLength;  // of the peer's message
  std::uint64_t framed = 0;                  // body bytes in frames whose header has arrived
  std::uint64_t received = 0;                // body bytes received
  std::uint64_t granted = 0;                 // body bytes that the owner accepts
  std::uint64_t announced = 0;               // body bytes that the peer is allowed to send
  std::int64_t window = 0;                   // flow-controlled bytes that the peer may send now
  std::uint16_t next_told = 0;               // list of streams whose end is not reported yet
  std::uint8_t informational = 0;            // client: 1xx heads received
  bool open : 1 = false;                     // the protocol's state: frames may still follow
  bool held : 1 = false;                     // the owner's state: not released yet
  bool peer_ended : 1 = false;               // END_STREAM was received
  bool we_ended : 1 = false;                 // END_STREAM was sent
  bool answering : 1 = false;                // a response head was submitted, or received
  bool final_head : 1 = false;               // our head was submitted, and it was not a 1xx
  bool deferred : 1 = false;                 // the codec stopped sending until there is data
  bool trailers : 1 = false;                 // trailers were submitted: no more data
  bool discarding : 1 = false;               // its body is discarded
  bool has_head : 1 = false;                 // the peer's head is complete, and it was not a 1xx
  bool reset_by_us : 1 = false;
  bool reset_by_peer : 1 = false;
  bool told : 1 = false;     // its end was reported to the owner
  bool lingers : 1 = false;  // the response is complete, the rest of the request may still arrive
  bool lingers_on : 1 = false;  // … for a whole period already
  bool unsent : 1 = false;      // client: the request's head is queued
  bool head_only : 1 = false;   // client: the request is HEAD, so no body follows
  bool delivered : 1 = false;   // client: the owner has received the whole response
  bool excluded : 1 = false;    // client: GOAWAY says that it is not processed
};

/// The streams of one connection, found by number. Uses the given memory and does not allocate.
///
/// Promises: open() returns nullptr when every place is taken. Records do not move while they are
/// in the table. The slots are at the front, then the records, lowest first: a few streams touch
/// little memory.
/// Cost: O(1): the numbers of one peer are consecutive, so the hash rarely collides.
class StreamTable {
 public:
  static constexpr std::uint16_t kNone = 0xffff;

  /// Bytes that a table for `streams` needs, aligned to 8.
  [[nodiscard]] static std::size_t bytes_for(std::uint32_t streams) noexcept;
  StreamTable(void* memory, std::uint32_t streams) noexcept;

  [[nodiscard]] Stream* find(StreamId id) const noexcept;
  /// A new record for a number that is not in the table.
  [[nodiscard]] Stream* open(StreamId id) noexcept;
  void close(Stream& stream) noexcept;

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint16_t index_of(const Stream& stream) const noexcept {
    return static_cast<std::uint16_t>(&stream - streams_);
  }
  [[nodiscard]] Stream& at(std::uint16_t index) const noexcept { return streams_[index]; }

  /// Calls f(Stream&) for each; f may close the stream it gets.
  template <class F>
  void for_each(F&& f) const {
    for (std::uint32_t i = 0; i < fresh_; ++i) {
      if (streams_[i].id != 0) f(streams_[i]);
    }
  }

 private:
  [[nodiscard]] static std::uint32_t slots_for(std::uint32_t streams) noexcept;
  [[nodiscard]] std::uint32_t home_of(StreamId id) const noexcept { return (id / 2) & mask_; }

  Stream* streams_;
  std::uint16_t* slots_;
  std::uint32_t mask_;
  std::uint32_t capacity_;
  std::uint32_t size_ = 0;
  std::uint32_t fresh_ = 0;     // records from this index on were never used
  std::uint16_t free_ = kNone;  // free list, linked by next_told
};

}  // namespace weir::inline v0::http::h2
