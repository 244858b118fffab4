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
    begin_window(now, rule);
    lag_ = {};
    even_at_ = now;
    running_ = true;
  }
  void stop() noexcept { running_ = false; }
  void add(std::uint64_t bytes, TimePoint now, const Rule& rule) noexcept {
    bytes_ += bytes;
    lag_ = less(lag_ + (now - even_at_), bytes, rule);
    even_at_ = now;
  }

  [[nodiscard]] bool running() const noexcept { return running_; }
  [[nodiscard]] TimePoint deadline() const noexcept {
    return running_ ? ends_at_ : TimePoint::max();
  }
  /// How far it is behind the minimum rate: the time that has passed, less the time that its bytes
  /// would have needed at that rate. Bytes beyond the minimum are not saved up for later.
  [[nodiscard]] Duration lag(TimePoint now) const noexcept {
    return running_ ? lag_ + (now - even_at_) : Duration(0);
  }
  /// True if the window that has ended was too slow; otherwise the next window begins.
  [[nodiscard]] bool too_slow(TimePoint now, const Rule& rule) noexcept {
    if (!running_ || now < ends_at_) return false;
    if (bytes_ < rule.bytes_needed()) return true;
    begin_window(now, rule);
    return false;
  }

 private:
  void begin_window(TimePoint now, const Rule& rule) noexcept {
    ends_at_ = now + rule.window;
    bytes_ = 0;
  }
  [[nodiscard]] static Duration less(Duration lag, std::uint64_t bytes, const Rule& rule) noexcept {
    if (bytes == 0) return lag;
    if (rule.bytes_per_second == 0) return {};
    const double covered = static_cast<double>(bytes) / static_cast<double>(rule.bytes_per_second);
    if (covered >= to_seconds(lag)) return {};
    return lag - std::chrono::duration_cast<Duration>(std::chrono::duration<double>(covered));
  }

  TimePoint ends_at_{};
  TimePoint even_at_{};  // of lag_
  Duration lag_{};
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
