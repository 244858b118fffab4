#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/base/enum_names.h"
#include "weir/base/time.h"
#include "weir/policy/priority.h"
#include "weir/policy/rule_modes.h"

namespace weir::inline v0::inline policy {

/// How a recorded request ended. The last four are those of admitted requests.
enum class DecisionEnd : std::uint8_t { kRefused, kOk, kIgnored, kOverload, kError };
WEIR_ENUM_NAMES(DecisionEnd, "refused", "ok", "ignored", "overload", "error")

/// One decision of admission: what was asked, what the numbers were, how it ended. Contains no
/// name, path or address: request, actor and peer are keyed hashes.
struct RecordedDecision {
  static constexpr std::uint16_t kNoScope = 0xFFFF;

  Duration at{};              // when it was asked for, from the start of the recording
  std::uint32_t request = 0;  // of its id
  std::uint32_t actor = 0;    // 0: none
  std::uint16_t peer = 0;     // 0: none
  std::uint16_t scope = kNoScope;
  Priority priority = Priority::kNormal;
  bool hedge = false;                  // a caller's second attempt
  RuleMode mode = RuleMode::kEnforce;  // of the limit
  DecisionEnd end = DecisionEnd::kRefused;
  std::uint8_t reason = 0;      // an index into the recording's list of reasons; 0: admitted
  std::uint32_t limit = 0;      // these three when it was decided
  std::uint32_t in_flight = 0;  // units, itself included if it was admitted
  std::uint32_t waiting = 0;
  Duration wait{};     // in the waiting room
  Duration latency{};  // from the permit to the end of the service
  std::uint64_t bytes = 0;
  std::uint32_t cost = 1;

  bool operator==(const RecordedDecision&) const = default;
  [[nodiscard]] bool refused() const noexcept { return end == DecisionEnd::kRefused; }
  [[nodiscard]] Duration ended_at() const noexcept { return at + wait + latency; }
};

/// A decision in the ring and in files: 40 bytes. A number that does not fit is stored as the
/// largest one that does; `wait` has steps of 16 µs, `at` and `latency` of 1 µs. All zero means
/// "not written".
using DecisionWords = std::array<std::uint64_t, 5>;
inline constexpr std::size_t kDecisionBytes = sizeof(DecisionWords);
static_assert(kDecisionBytes == 40);

/// Cost: a few nanoseconds.
[[nodiscard]] DecisionWords pack(const RecordedDecision& decision) noexcept;
/// Nothing if the words are not those of one decision: not written, or torn.
[[nodiscard]] std::optional<RecordedDecision> unpack(const DecisionWords& words) noexcept;

}  // namespace weir::inline v0::inline policy
