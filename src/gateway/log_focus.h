#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

namespace weir::inline v0::gateway {

/// The requests of one actor or of one route, which are all written to the access log, until a
/// number of lines is used up.
///
/// Thread-safety: any thread. Cost: a comparison per finished request; an atomic per line.
class LogFocus {
 public:
  struct Of {
    std::array<std::uint64_t, 2> actors{};  // ids of identities; 0: none
    std::optional<std::uint32_t> route{};   // its number
  };
  LogFocus(const Of& of, std::uint32_t lines) noexcept : of_(of), left_(lines) {}
  LogFocus(const LogFocus&) = delete;
  LogFocus& operator=(const LogFocus&) = delete;

  struct Request {
    std::uint64_t actor = 0;  // 0: none is known
    std::optional<std::uint32_t> route{};
  };
  /// Whether this request is one of them; then one line fewer is left.
  [[nodiscard]] bool takes(const Request& request) noexcept {
    const bool meant = of_.route ? of_.route == request.route
                                 : request.actor != 0 && (request.actor == of_.actors[0] ||
                                                          request.actor == of_.actors[1]);
    if (!meant) return false;
    std::uint32_t left = left_.load(std::memory_order_relaxed);
    while (left > 0 && !left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
    }
    return left > 0;
  }
  [[nodiscard]] std::uint32_t lines_left() const noexcept {
    return left_.load(std::memory_order_relaxed);
  }

 private:
  const Of of_;
  std::atomic<std::uint32_t> left_;
};

}  // namespace weir::inline v0::gateway
