#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "weir/base/time.h"

#include "policy/body_window.h"

namespace weir::inline v0::inline server {

/// The window of one stream over time: how fast its client uses it up, and what of it is withheld
/// before leases can be given back. A window that is announced cannot be taken back, so it shrinks
/// by not returning bytes that the handler has taken.
///
/// Thread-safety: none. Cost: O(1).
class StreamWindow {
 public:
  void begin(TimePoint now) noexcept {
    begin_round(now);
    owed_ = leaving_ = 0;
  }
  /// Bytes had to be stored until note_empty(): the handler takes none. One that is slower than its
  /// client takes none for most of the time; one that waits for its upstream now and then keeps up.
  void note_stored(TimePoint now) noexcept {
    if (!stored_since_) stored_since_ = now;
  }
  void note_empty(TimePoint now) noexcept {
    if (stored_since_) stored_for_ += now - *std::exchange(stored_since_, std::nullopt);
  }
  /// The handler has taken bytes. Returns how many of them the client may send again.
  [[nodiscard]] std::uint64_t take(std::uint64_t bytes) noexcept {
    const std::uint64_t withheld = std::min(bytes, owed_);
    owed_ -= withheld;
    used_ += bytes;
    return bytes - withheld;
  }
  /// Whether the client has used all of a window of this size since the last round.
  [[nodiscard]] bool used_up(std::uint64_t window) const noexcept { return used_ >= window; }
  [[nodiscard]] policy::WindowUse use(std::uint32_t leases, TimePoint now) const noexcept {
    const Duration took = now - since_;
    return {.leases = leases, .used_up_in = took, .handler_kept_up = 2 * stored_for_ <= took};
  }
  void begin_round(TimePoint now) noexcept {
    since_ = now;
    used_ = 0;
    stored_for_ = {};
  }

  /// Withholds the window of this many leases.
  void shrink(std::uint32_t leases, std::uint64_t lease_bytes) noexcept {
    leaving_ = leases;
    owed_ = leases * lease_bytes;
  }
  [[nodiscard]] bool shrinking() const noexcept { return owed_ > 0; }
  /// The leases whose window is withheld completely; once.
  [[nodiscard]] std::uint32_t take_leaving() noexcept {
    return shrinking() ? 0 : std::exchange(leaving_, 0);
  }

 private:
  TimePoint since_{};
  std::uint64_t used_ = 0;
  std::uint64_t owed_ = 0;
  std::uint32_t leaving_ = 0;
  Duration stored_for_{};  // since then, how long something was stored
  std::optional<TimePoint> stored_since_;
};

}  // namespace weir::inline v0::inline server
