#pragma once

#include <algorithm>
#include <chrono>

#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

struct PingPaceRules {
  Duration after = std::chrono::seconds(10);  // of silence
  Duration apart = std::chrono::minutes(5);   // two PINGs without an answer to a call between them
};

/// When a connection whose endpoint is silent is asked for a sign of life by PING.
///
/// A gRPC server counts PINGs that come more often than every 5 minutes while it sends nothing of
/// an answer, and ends the connection after three. So a silence gets one PING, and the next one
/// after `apart`: that finds a dead connection as soon as others would, and a conversation may be
/// silent for hours. Other servers do not count them.
///
/// Promises: on a connection with gRPC calls, two PINGs without HEADERS or DATA of the server
/// between them are at least `apart` apart.
/// Thread-safety: none; a value. Cost: O(1).
class PingPace {
 public:
  /// A call of gRPC uses the connection.
  void note_grpc() noexcept { grpc_ = true; }
  void note_heard(TimePoint now) noexcept { heard_at_ = now; }
  /// HEADERS or DATA came.
  void note_answer() noexcept { pinged_at_ = {}; }
  void note_ping(TimePoint now) noexcept { pinged_at_ = now; }
  [[nodiscard]] bool grpc() const noexcept { return grpc_; }

  /// From when on a PING may be sent, whoever wants it.
  [[nodiscard]] TimePoint allowed_at(const PingPaceRules& rules) const noexcept {
    return grpc_ && pinged_at_ != TimePoint{} ? pinged_at_ + rules.apart : TimePoint{};
  }
  /// When the silence calls for one.
  [[nodiscard]] TimePoint due_at(const PingPaceRules& rules) const noexcept {
    return std::max(heard_at_ + rules.after, allowed_at(rules));
  }

 private:
  TimePoint heard_at_{};
  TimePoint pinged_at_{};  // since the last part of an answer; zero: not
  bool grpc_ = false;
};

/// `apart` after the server has said "too_many_pings".
[[nodiscard]] constexpr Duration longer_ping_pause(Duration apart) noexcept {
  constexpr Duration kMost = std::chrono::hours(2);
  return std::min(2 * apart, kMost);
}

}  // namespace weir::inline v0::inline policy
