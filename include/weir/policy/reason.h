#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::inline v0::policy {

// All reasons for a refusal: enumerator, stable name, HTTP status, gRPC status code, and whether
// the answer may have a retry hint (pushback). In the order in which admission checks them.
#define WEIR_REASONS(X)                             \
  X(kDeadline, "deadline", 504, 4, false)           \
  X(kMemory, "memory", 503, 8, true)                \
  X(kTooLarge, "too_large", 413, 8, false)          \
  X(kPeerLimit, "peer_limit", 429, 8, true)         \
  X(kActorInflight, "actor_inflight", 429, 8, true) \
  X(kActorBytes, "actor_bytes", 429, 8, true)       \
  X(kBytes, "bytes", 503, 8, true)                  \
  X(kClassLimit, "class_limit", 503, 8, true)       \
  X(kOverload, "overload", 503, 8, true)

/// Why a request was refused; kAdmitted when it was not.
enum class Reason : std::uint8_t {
  kAdmitted = 0,
#define WEIR_X(enumerator, name, http, grpc, pushback) enumerator,
  WEIR_REASONS(WEIR_X)
#undef WEIR_X
};

struct ReasonFacts {
  std::string_view name;   // label of metrics, value of x-weir-reason
  std::uint16_t http = 0;  // status of the answer
  std::uint8_t grpc = 0;   // numeric gRPC status
  bool pushback = false;   // the answer may have a retry hint
};

inline constexpr std::array kReasonFacts = {ReasonFacts{"admitted", 200, 0, false},
#define WEIR_X(enumerator, name, http, grpc, pushback) ReasonFacts{name, http, grpc, pushback},
                                            WEIR_REASONS(WEIR_X)
#undef WEIR_X
};

inline constexpr std::size_t kReasonCount = kReasonFacts.size();

[[nodiscard]] constexpr std::size_t index_of(Reason r) noexcept {
  return static_cast<std::size_t>(r);
}
[[nodiscard]] constexpr const ReasonFacts& facts_of(Reason r) noexcept {
  return kReasonFacts[index_of(r)];
}
[[nodiscard]] constexpr std::string_view name_of(Reason r) noexcept {
  return facts_of(r).name;
}

[[nodiscard]] constexpr std::optional<Reason> reason_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kReasonCount; ++i) {
    if (kReasonFacts[i].name == name) return static_cast<Reason>(i);
  }
  return std::nullopt;
}

}  // namespace weir::inline v0::policy

namespace weir::inline v0 {
using policy::facts_of;
using policy::index_of;
using policy::kReasonCount;
using policy::kReasonFacts;
using policy::name_of;
using policy::Reason;
using policy::reason_named;
using policy::ReasonFacts;
}  // namespace weir::inline v0
