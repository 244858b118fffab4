#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::inline v0::policy {

/// How the endpoint of an attempt is chosen.
enum class Balance : std::uint8_t {
  kPeakEwma,       // the better of two random ones by score × (in flight + 1) ÷ weight
  kRoundRobin,     // in turn, by weight
  kLeastRequests,  // the least (in flight + 1) ÷ weight: of all up to 16 endpoints, else of two
  kHash,           // by a key, with bounded load
};
inline constexpr std::array<std::string_view, 4> kBalanceNames = {"peak_ewma", "round_robin",
                                                                  "least_requests", "hash"};
[[nodiscard]] constexpr std::string_view name_of(Balance balance) noexcept {
  return kBalanceNames[static_cast<std::size_t>(balance)];
}

}  // namespace weir::inline v0::policy
