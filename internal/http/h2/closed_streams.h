#pragma once

#include <array>
#include <cstdint>

#include "http/h2/frame.h"

namespace weir::inline v0::http::h2 {

/// How a stream was closed. It decides what a further frame for the stream means.
enum class ClosedHow : std::uint8_t {
  kNeverUsed,    // its number was skipped and must not be used any more
  kEnded,        // the peer sent END_STREAM
  kResetByPeer,  // the peer sent RST_STREAM
  kResetByUs,    // we sent RST_STREAM; frames that the peer sent before it arrived may follow
};

/// How the latest streams of a peer were closed, two bits each.
///
/// Numbers grow, so the last kRemembered odd (or even) numbers form a ring. Older ones are reported
/// as kResetByUs, which has the mildest effect: frames are ignored and counted.
/// Promises: exact for the last kRemembered numbers of the peer. Cost: O(1), except for skipped
/// numbers: at most kRemembered steps; 128 bytes.
class ClosedStreams {
 public:
  static constexpr std::uint32_t kRemembered = 512;

  /// The peer used `id`, the highest number so far; the numbers it skipped become kNeverUsed.
  void on_opened(StreamId id) noexcept {
    const std::uint32_t index = id / 2;
    const std::uint32_t from = index - next_ > kRemembered ? index - kRemembered : next_;
    for (std::uint32_t i = from; i != index + 1; ++i) set(i, ClosedHow::kNeverUsed);
    next_ = index + 1;
  }
  void on_closed(StreamId id, ClosedHow how) noexcept {
    if (remembers(id)) set(id / 2, how);
  }
  /// For a stream that is not open, and not above the highest number used.
  [[nodiscard]] ClosedHow how(StreamId id) const noexcept {
    if (!remembers(id)) return ClosedHow::kResetByUs;
    const std::uint32_t i = (id / 2) % kRemembered;
    return static_cast<ClosedHow>((bits_[i / 32] >> (i % 32 * 2)) & 3U);
  }

 private:
  [[nodiscard]] bool remembers(StreamId id) const noexcept {
    return id / 2 < next_ && next_ - id / 2 <= kRemembered;
  }
  void set(std::uint32_t index, ClosedHow how) noexcept {
    const std::uint32_t i = index % kRemembered;
    std::uint64_t& word = bits_[i / 32];
    const std::uint32_t shift = i % 32 * 2;
    word = (word & ~(std::uint64_t{3} << shift)) | static_cast<std::uint64_t>(how) << shift;
  }

  std::array<std::uint64_t, kRemembered / 32> bits_{};
  std::uint32_t next_ = 0;  // half of the smallest number not used yet
};

}  // namespace weir::inline v0::http::h2
