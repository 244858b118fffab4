#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "weir/base/time.h"
#include "weir/experimental/io/address.h"

#include "upstream/failure.h"

namespace weir::inline v0::upstream {

/// One replica, shared by all loops: its address, its availability, the results of its requests.
///
/// Health is passive: a failed connect, or kBadAnswersMax bad or missing answers in a row, ejects
/// it for 0.1 s, doubling up to 6.4 s; an answer makes it available. An ejected endpoint is skipped
/// while another is available. Failures during an ejection come from requests sent before it and do
/// not double it: otherwise one short failure of a busy endpoint would eject it for 6.4 s.
/// Thread-safety: any member, any thread. Cost: atomics only.
class Endpoint {
 public:
  explicit Endpoint(io::SocketName name) : name_(std::move(name)), label_(name_.to_string()) {}
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  [[nodiscard]] const io::SocketName& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& label() const noexcept { return label_; }

  [[nodiscard]] bool available(TimePoint now) const noexcept {
    return to_ns(now) >= ejected_until_ns_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] TimePoint ejected_until() const noexcept {
    return time_from_ns(ejected_until_ns_.load(std::memory_order_relaxed));
  }
  /// It was ejected at least once, and has not answered since.
  [[nodiscard]] bool failing() const noexcept {
    return failures_in_a_row_.load(std::memory_order_relaxed) > 0;
  }
  void note_answered() noexcept {
    if (failures_in_a_row_.load(std::memory_order_relaxed) == 0 &&
        bad_answers_.load(std::memory_order_relaxed) == 0) {
      return;
    }
    bad_answers_.store(0, std::memory_order_relaxed);
    failures_in_a_row_.store(0, std::memory_order_relaxed);
    ejected_until_ns_.store(0, std::memory_order_relaxed);
  }
  void note_connect_failed(TimePoint now) noexcept {
    std::int64_t ejected_until = ejected_until_ns_.load(std::memory_order_relaxed);
    if (to_ns(now) < ejected_until) return;
    const std::uint32_t n = failures_in_a_row_.load(std::memory_order_relaxed);
    const std::int64_t next = to_ns(now) + (kFirstPauseNs << std::min(n, kDoublingsMax));
    // Of several concurrent failures, one counts.
    if (!ejected_until_ns_.compare_exchange_strong(ejected_until, next,
                                                   std::memory_order_relaxed)) {
      return;
    }
    failures_in_a_row_.fetch_add(1, std::memory_order_relaxed);
  }
  void note_bad_answer(TimePoint now) noexcept {
    const std::uint32_t n = bad_answers_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (n >= kBadAnswersMax) note_connect_failed(now);
  }

  std::atomic<std::uint64_t> attempts{0};
  std::atomic<std::uint64_t> retries{0};
  std::atomic<std::uint64_t> connects{0};
  std::atomic<std::uint64_t> answered{0};
  std::atomic<std::uint32_t> in_flight{0};
  std::atomic<std::uint32_t> connections{0};
  std::atomic<std::uint32_t> idle{0};
  std::atomic<std::uint32_t> connecting{0};
  std::array<std::atomic<std::uint64_t>, kUpstreamFailureCount> failures{};

 private:
  static constexpr std::uint32_t kBadAnswersMax = 3;
  static constexpr std::int64_t kFirstPauseNs = 100'000'000;
  static constexpr std::uint32_t kDoublingsMax = 6;  // up to 6.4 s

  io::SocketName name_;
  std::string label_;
  std::atomic<std::int64_t> ejected_until_ns_{0};
  std::atomic<std::uint32_t> failures_in_a_row_{0};
  std::atomic<std::uint32_t> bad_answers_{0};  // in a row
};

}  // namespace weir::inline v0::upstream
