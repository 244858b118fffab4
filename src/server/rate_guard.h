#pragma once

#include <cstdint>

#include "weir/base/time.h"
#include "weir/experimental/server/server_config.h"

namespace weir::inline v0::inline server {

/// Checks a minimum rate, window by window: a window with fewer bytes than rate × window (or none
/// at all) is too slow. Bytes beyond the minimum do not count for later windows, so a fast start
/// does not allow a pause.
///
/// Thread-safety: none. Pure: `now` is an argument.
class RateGuard {
 public:
  struct Rule {
    Duration window{};
    std::uint64_t bytes_per_second = 0;

    [[nodiscard]] std::uint64_t bytes_needed() const noexcept {
      const double bytes = to_seconds(window) * static_cast<double>(bytes_per_second);
      return bytes < 1.0 ? 1 : static_cast<std::uint64_t>(bytes);
    }
  };

  void start(TimePoint now, const Rule& rule) noexcept {
    ends_at_ = now + rule.window;
    bytes_ = 0;
    running_ = true;
  }
  void stop() noexcept { running_ = false; }
  void add(std::uint64_t bytes) noexcept { bytes_ += bytes; }

  [[nodiscard]] bool running() const noexcept { return running_; }
  [[nodiscard]] TimePoint deadline() const noexcept {
    return running_ ? ends_at_ : TimePoint::max();
  }
  /// How far it is behind the minimum rate in this window: the time that has passed, less the time
  /// that its bytes would have needed at that rate. Zero if it is fast enough.
  [[nodiscard]] Duration lag(TimePoint now, const Rule& rule) const noexcept {
    if (!running_) return {};
    const Duration passed = now - (ends_at_ - rule.window);
    if (bytes_ == 0) return passed > Duration(0) ? passed : Duration(0);
    if (rule.bytes_per_second == 0) return {};
    const double earned = static_cast<double>(bytes_) / static_cast<double>(rule.bytes_per_second);
    if (earned >= to_seconds(passed)) return {};
    return passed - std::chrono::duration_cast<Duration>(std::chrono::duration<double>(earned));
  }
  /// True if the window that has ended was too slow; otherwise the next window begins.
  [[nodiscard]] bool too_slow(TimePoint now, const Rule& rule) noexcept {
    if (!running_ || now < ends_at_) return false;
    if (bytes_ < rule.bytes_needed()) return true;
    start(now, rule);
    return false;
  }

 private:
  TimePoint ends_at_{};
  std::uint64_t bytes_ = 0;
  bool running_ = false;
};

[[nodiscard]] inline RateGuard::Rule body_rule(const ServerConfig& config) {
  return {.window = config.body_timeout, .bytes_per_second = config.body_min_rate};
}
[[nodiscard]] inline RateGuard::Rule write_rule(const ServerConfig& config) {
  return {.window = config.write_timeout, .bytes_per_second = config.write_min_rate};
}

}  // namespace weir::inline v0::inline server
