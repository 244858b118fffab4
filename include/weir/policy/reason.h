#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::inline v0::inline policy {

/// The properties of a reason to refuse.
struct ReasonFacts {
  std::string_view name;      // label of metrics, value of x-weir-reason
  std::uint16_t http = 0;     // status of the answer
  std::uint8_t grpc = 0;      // numeric gRPC status
  bool pushback = false;      // whether the answer may carry a retry hint
  bool overload = false;      // the service lacks capacity, independent of the client
  std::string_view rule;      // the mode_* setting of [admission] that switches it; empty: none
  std::string_view sentence;  // for people
};

// Every reason to refuse, once, in the order of the checks: enumerator, then its ReasonFacts.
// clang-format off
#define WEIR_REASONS(X)                                                                           \
  X(kDeadline, "deadline", 504, 4, false, false, "deadline",                                      \
    "the deadline of the request has passed")                                                     \
  X(kMemory, "memory", 503, 8, true, true, "memory", "memory is short")                           \
  X(kTooLarge, "too_large", 413, 8, false, false, "actor, bytes",                                 \
    "the request is larger than the budget it is billed to")                                      \
  X(kPeerLimit, "peer_limit", 429, 8, true, false, "peer",                                        \
    "this peer has too many requests under way")                                                  \
  X(kActorInflight, "actor_inflight", 429, 8, true, false, "actor",                               \
    "this client has too many requests under way")                                                \
  X(kActorBytes, "actor_bytes", 429, 8, true, false, "actor",                                     \
    "the requests of this client hold too much memory")                                           \
  X(kBytes, "bytes", 503, 8, true, true, "bytes", "all requests together hold too much memory")   \
  X(kClassLimit, "class_limit", 503, 8, true, true, "class_cap",                                  \
    "too many requests of this class are under way")                                              \
  X(kOverload, "overload", 503, 8, true, true, "limit", "the service is at its limit")
// clang-format on

/// Why a request was refused; kAdmitted when it was not.
enum class Reason : std::uint8_t {
  kAdmitted = 0,
#define WEIR_X(enumerator, ...) enumerator,
  WEIR_REASONS(WEIR_X)
#undef WEIR_X
};

inline constexpr std::array kReasonFacts = {
    ReasonFacts{"admitted", 200, 0, false, false, "", "admitted"},
#define WEIR_X(enumerator, ...) ReasonFacts{__VA_ARGS__},
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

}  // namespace weir::inline v0::inline policy
