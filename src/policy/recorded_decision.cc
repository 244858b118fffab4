#include "policy/recorded_decision.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace weir::inline v0::inline policy {
namespace {

// The words, lowest bits first:
//   0  at 48 (µs) · scope 16
//   1  request 32 · actor 32
//   2  peer 16 · limit 16 · in flight 16 · waiting 16
//   3  wait 24 (16 µs) · latency 32 (µs) · class 2 · hedge 1 · mode 2 · end 3
//   4  bytes 32 · cost 14 · reason 8 · check 10
constexpr std::int64_t kMicro = 1000;
constexpr std::int64_t kWaitStep = 16 * kMicro;
constexpr unsigned kCheckShift = 54;

constexpr std::uint64_t mask(unsigned bits) noexcept {
  return (std::uint64_t{1} << bits) - 1U;
}
/// The value in that many bits, or the largest one.
std::uint64_t fit(std::uint64_t value, unsigned bits) noexcept {
  return std::min(value, mask(bits));
}
std::uint64_t steps(Duration time, std::int64_t step, unsigned bits) noexcept {
  return fit(static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count() / step)), bits);
}
std::uint64_t field(std::uint64_t word, unsigned at, unsigned bits) noexcept {
  return (word >> at) & mask(bits);
}
Duration time_of(std::uint64_t count, std::int64_t step) noexcept {
  return Duration(static_cast<std::int64_t>(count) * step);
}

/// 1 to 1023, of everything but itself. The products do not wait for each other; that of a word
/// with an odd number tells every two words apart.
std::uint64_t check_of(const DecisionWords& words) noexcept {
  constexpr std::array<std::uint64_t, 5> kOdd = {0x9E3779B97F4A7C15U, 0xFF51AFD7ED558CCDU,
                                                 0xC4CEB9FE1A85EC53U, 0xD6E8FEB86659FD93U,
                                                 0xA0761D6478BD642FU};
  static_assert(std::tuple_size_v<DecisionWords> == kOdd.size());
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kOdd.size(); ++i) {
    const std::uint64_t word = i + 1 < kOdd.size() ? words[i] : words[i] & mask(kCheckShift);
    sum += (word ^ (word >> 32U)) * kOdd[i];
  }
  return std::max<std::uint64_t>((sum ^ (sum >> 29U)) >> kCheckShift, 1);
}

}  // namespace

DecisionWords pack(const RecordedDecision& d) noexcept {
  DecisionWords words{};
  words[0] = steps(d.at, kMicro, 48) | std::uint64_t{d.scope} << 48U;
  words[1] = d.request | std::uint64_t{d.actor} << 32U;
  words[2] =
      d.peer | fit(d.limit, 16) << 16U | fit(d.in_flight, 16) << 32U | fit(d.waiting, 16) << 48U;
  words[3] = steps(d.wait, kWaitStep, 24) | steps(d.latency, kMicro, 32) << 24U |
             static_cast<std::uint64_t>(d.priority) << 56U | std::uint64_t{d.hedge} << 58U |
             static_cast<std::uint64_t>(d.mode) << 59U | static_cast<std::uint64_t>(d.end) << 61U;
  words[4] = fit(d.bytes, 32) | fit(d.cost, 14) << 32U | std::uint64_t{d.reason} << 46U;
  words[4] |= check_of(words) << kCheckShift;
  return words;
}

std::optional<RecordedDecision> unpack(const DecisionWords& words) noexcept {
  if (field(words[4], kCheckShift, 10) != check_of(words)) return std::nullopt;
  const std::uint64_t mode = field(words[3], 59, 2);
  const std::uint64_t end = field(words[3], 61, 3);
  if (mode >= kRuleModeNames.size() || end >= kDecisionEndNames.size()) return std::nullopt;
  RecordedDecision d;
  d.at = time_of(field(words[0], 0, 48), kMicro);
  d.scope = static_cast<std::uint16_t>(field(words[0], 48, 16));
  d.request = static_cast<std::uint32_t>(field(words[1], 0, 32));
  d.actor = static_cast<std::uint32_t>(field(words[1], 32, 32));
  d.peer = static_cast<std::uint16_t>(field(words[2], 0, 16));
  d.limit = static_cast<std::uint32_t>(field(words[2], 16, 16));
  d.in_flight = static_cast<std::uint32_t>(field(words[2], 32, 16));
  d.waiting = static_cast<std::uint32_t>(field(words[2], 48, 16));
  d.wait = time_of(field(words[3], 0, 24), kWaitStep);
  d.latency = time_of(field(words[3], 24, 32), kMicro);
  d.priority = static_cast<Priority>(field(words[3], 56, 2));
  d.hedge = field(words[3], 58, 1) != 0;
  d.mode = static_cast<RuleMode>(mode);
  d.end = static_cast<DecisionEnd>(end);
  d.bytes = field(words[4], 0, 32);
  d.cost = static_cast<std::uint32_t>(field(words[4], 32, 14));
  d.reason = static_cast<std::uint8_t>(field(words[4], 46, 8));
  return d;
}

}  // namespace weir::inline v0::inline policy
