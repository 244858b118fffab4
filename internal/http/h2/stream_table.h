#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "http/h2/frame.h"

namespace weir::inline v0::http::h2 {

/// What is known of one stream that the peer opened.
struct Stream {
  static constexpr std::uint64_t kNoLength = ~std::uint64_t{0};

  StreamId id = 0;
  void* user = nullptr;                      // the owner's; set once it accepted the request
  std::uint64_t content_length = kNoLength;  // what the head promised
  std::uint64_t framed = 0;                  // body bytes that came or are on their way
  std::uint64_t received = 0;                // body bytes so far
  std::uint64_t granted = 0;                 // body bytes that the owner will take
  std::uint64_t announced = 0;               // body bytes that the peer was told it may send
  std::int64_t window = 0;                   // flow-controlled bytes that it may send now
  std::uint32_t end_code = 0;                // of the RST_STREAM that ended it
  std::uint16_t next_told = 0;               // list of streams whose end is to be told
  bool open : 1 = false;                     // the protocol's view: frames may still come or go
  bool held : 1 = false;                     // the owner's view: its work is not over
  bool peer_ended : 1 = false;               // END_STREAM came
  bool we_ended : 1 = false;                 // END_STREAM went
  bool answering : 1 = false;                // a response head was submitted: useful work
  bool final_head : 1 = false;               // … and it was not a 1xx
  bool deferred : 1 = false;                 // the codec waits until we have data
  bool trailers : 1 = false;                 // trailers were submitted: no more data
  bool discarding : 1 = false;               // its body goes nowhere
  bool has_head : 1 = false;                 // its request head is complete
  bool reset_by_us : 1 = false;
  bool reset_by_peer : 1 = false;
  bool told : 1 = false;        // its owner knows that it has ended
  bool lingers : 1 = false;     // we have said all, and let the rest of its body come
  bool lingers_on : 1 = false;  // … for a whole period already
};

/// The streams of one connection, found by number. Memory is given; nothing is allocated.
///
/// Promises: open() says nullptr when every place is taken. Records never move while they live.
/// Slots lie in front, then the records, lowest first: few streams touch little memory.
/// Cost: O(1): numbers of one peer are consecutive, so the hash hardly collides.
class StreamTable {
 public:
  static constexpr std::uint16_t kNone = 0xffff;

  /// Bytes that a table for `streams` needs, aligned to 8.
  [[nodiscard]] static std::size_t bytes_for(std::uint32_t streams) noexcept;
  StreamTable(void* memory, std::uint32_t streams) noexcept;

  [[nodiscard]] Stream* find(StreamId id) const noexcept;
  /// A fresh record for a number that is not in the table.
  [[nodiscard]] Stream* open(StreamId id) noexcept;
  void close(Stream& stream) noexcept;

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint16_t index_of(const Stream& stream) const noexcept {
    return static_cast<std::uint16_t>(&stream - streams_);
  }
  [[nodiscard]] Stream& at(std::uint16_t index) const noexcept { return streams_[index]; }

  /// Calls f(Stream&) for each; f may close the one it is given.
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
  std::uint32_t fresh_ = 0;     // records from here on were never touched
  std::uint16_t free_ = kNone;  // list through next_told
};

}  // namespace weir::inline v0::http::h2
