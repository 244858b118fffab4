#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/enum_names.h"

#include "live/latest.h"

namespace weir::inline v0::gateway {

/// What kind of thing happened; in the stream by name.
enum class LiveEventKind : std::uint8_t {
  kLimit,
  kEndpoint,
  kReload,
  kOverride,
  kVerdict,
  kMemory,
  kDrain
};
WEIR_ENUM_NAMES(LiveEventKind, "limit", "endpoint", "reload", "override", "verdict", "memory",
                "drain")

/// Something that an operator wants to see beside the charts.
struct LiveEvent {
  std::int64_t unix_seconds = 0;
  LiveEventKind kind = LiveEventKind::kLimit;
  std::string upstream{};  // empty: the whole gateway
  std::string text{};      // at most LiveEvents::kTextMax bytes are kept
};

/// The last 256 events.
///
/// Thread-safety: any member, any thread. Cost: a lock; fixed memory.
class LiveEvents {
 public:
  static constexpr std::size_t kMost = 256;
  static constexpr std::size_t kTextMax = 160;
  static constexpr std::size_t kNameMax = 64;

  void add(const LiveEvent& event);
  /// Those after the first `seen`, oldest first, as far as they are kept. `seen` becomes the number
  /// of all since the start: the next call continues there.
  [[nodiscard]] std::vector<LiveEvent> after(std::uint64_t& seen) const;

 private:
  template <std::size_t N>
  struct Text {
    std::array<char, N> bytes{};
    std::uint8_t size = 0;
    void set(std::string_view text) noexcept;
    [[nodiscard]] std::string str() const { return {bytes.data(), size}; }
  };
  struct Kept {
    std::int64_t unix_seconds = 0;
    LiveEventKind kind = LiveEventKind::kLimit;
    Text<kNameMax> upstream;
    Text<kTextMax> text;
  };

  mutable std::mutex mutex_;
  Latest<Kept, kMost> kept_;  // under mutex_
  std::uint64_t count_ = 0;   // under mutex_
};

}  // namespace weir::inline v0::gateway
