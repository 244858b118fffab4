#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::inline v0::inline policy {

/// Whose fault it is that a scope refuses, fails or is slow.
struct CauseFacts {
  std::string_view name;       // label of the metric, value in JSON
  std::string_view sentence;   // what is the case
  std::string_view next_step;  // what an operator does now
};

// In the order in which they are tried: a cause that explains others comes first.
// clang-format off
#define WEIR_CAUSES(X)                                                                        \
  X(kFine, "fine", "nothing is refused, and the service is as fast as usual",                 \
    "nothing to do")                                                                          \
  X(kOwnBound, "own_bound", "a bound of this gateway is reached, not one of the service",     \
    "raise the bound that /pools shows as exhausted, or add a gateway")                       \
  X(kMemory, "memory", "memory is short, so requests are refused",                            \
    "find what uses the memory, or give the machine or container more")                       \
  X(kUnreachable, "unreachable", "the service does not answer",                               \
    "check that the service runs and that its addresses are right")                           \
  X(kSickReplica, "sick_replica", "one replica is out or much slower than the others",        \
    "look at the worst replica in /endpoints; drain or restart it")                           \
  X(kClient, "client", "clients ask for more than one of them may have",                      \
    "talk to the owners of the clients that /actors shows first")                             \
  X(kServiceSlower, "service_slower", "the service is slower than it was at the same demand", \
    "look for what changed in the service: a deploy, its database, its machines")             \
  X(kLimitLow, "limit_low", "the limit is at its maximum, and nothing waits in the service",  \
    "raise max_limit, or the cap that refuses")                                               \
  X(kDemand, "demand", "more is asked than the service can do",                               \
    "add capacity; meanwhile the least important requests are refused first")                 \
  X(kUnclear, "unclear", "something is wrong, and no known cause explains it",                \
    "look at the evidence, the limit and the endpoints")
// clang-format on

enum class Cause : std::uint8_t {
#define WEIR_X(enumerator, ...) enumerator,
  WEIR_CAUSES(WEIR_X)
#undef WEIR_X
};
inline constexpr std::array kCauseFacts = {
#define WEIR_X(enumerator, ...) CauseFacts{__VA_ARGS__},
    WEIR_CAUSES(WEIR_X)
#undef WEIR_X
};
inline constexpr std::size_t kCauseCount = kCauseFacts.size();

[[nodiscard]] constexpr const CauseFacts& facts_of(Cause cause) noexcept {
  return kCauseFacts[static_cast<std::size_t>(cause)];
}

/// What was measured of one scope in one second. Rates are per second.
struct ScopeSecond {
  double offered = 0;         // requests that asked for a place, refused ones included
  double refused_limit = 0;   // by the limit, a class cap or max_concurrent
  double refused_client = 0;  // by a budget of an actor or a peer
  double refused_memory = 0;  // by memory, or the budget of all bytes
  double refused_own = 0;     // by a pool or a place of this gateway
  double answered = 0;        // answers that gave a latency sample
  double failed = 0;          // overload and error outcomes
  double latency_ms = 0;      // mean of those answers; 0 without any
  double baseline_ms = 0;     // as the limiter knows it; 0: unknown
  double queue = 0;           // requests that wait inside the service, as the limiter estimates
  double limit = 0;
  double limit_max = 0;
  double in_flight = 0;
  double waiting = 0;
  double top_client_in_flight = 0;   // share of what actors hold: the one with the most
  std::uint32_t clients_active = 0;  // actors that hold something
  std::uint32_t replicas = 0;        // 0: not known
  std::uint32_t replicas_open = 0;
  double worst_replica = 0;  // latency of the slowest, divided by the median; 0: unknown
};

/// What a diagnosis rests on: the numbers that an operator compares.
struct Evidence {
  double offered = 0;  // means over the last seconds
  double answered = 0;
  double refused = 0;
  double latency_ms = 0;
  double usual_offered = 0;  // medians over calm times; 0: no calm time was seen yet
  double usual_latency_ms = 0;
  double best_answered = 0;  // the most that the service has answered per second
};

struct Diagnosis {
  Cause cause = Cause::kFine;
  Evidence evidence{};
};

/// Says, once a second, what is the matter with a scope: the last seconds, compared with the calm
/// times of the last quarter of an hour.
///
/// A second of trouble is one with refusals, failures or a latency above the usual. Calm times are
/// kept by how much calm time has passed, not by the clock: an overload that lasts for an hour does
/// not become the usual.
///
/// Promises: equal seconds give equal diagnoses; without trouble the cause is `fine`; trouble that
/// no rule explains is `unclear`. Reads no clock.
/// Thread-safety: none. Cost: O(1) per second, at the end of a slot O(calm slots); no allocation;
/// about 6 KiB.
class Diagnoser {
 public:
  /// `second` covers the second after the one given before.
  Diagnosis on_second(const ScopeSecond& second) noexcept;

 private:
  static constexpr std::size_t kWindow = 5;   // seconds that are judged
  static constexpr std::size_t kSlots = 180;  // a quarter of an hour, longer if little is asked

  struct History {
    std::array<float, kSlots> values{};
    std::size_t next = 0;
    std::size_t count = 0;
    void push(double value) noexcept;
    [[nodiscard]] double quantile(double q) const noexcept;
  };

  void average() noexcept;
  void note_silence(const ScopeSecond& second) noexcept;
  void learn(const ScopeSecond& second) noexcept;
  [[nodiscard]] Cause judge() const noexcept;
  [[nodiscard]] Cause judge_load(double refused) const noexcept;
  [[nodiscard]] bool silent() const noexcept;
  [[nodiscard]] double scatter() const noexcept;
  [[nodiscard]] bool slower() const noexcept;
  [[nodiscard]] bool one_client_dominates() const noexcept;

  std::array<ScopeSecond, kWindow> last_{};
  std::size_t seconds_ = 0;
  ScopeSecond mean_{};  // of last_
  bool replica_was_out_ = false;
  double silent_seconds_ = 0;
  ScopeSecond slot_{};  // sums of the slot that is being filled
  std::size_t slot_seconds_ = 0;
  bool slot_calm_ = true;
  History demand_{};      // what was offered, of all slots
  History offered_{};     // of calm slots
  History latency_{};     // of calm slots
  History throughput_{};  // of all slots
  double usual_demand_ = 0;
  double usual_offered_ = 0;
  double usual_latency_ = 0;
  double best_answered_ = 0;
};

}  // namespace weir::inline v0::inline policy
