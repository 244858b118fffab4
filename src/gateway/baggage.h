#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "weir/experimental/http/header_view.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::gateway {

/// The member of W3C Baggage that contains the class of a request. Tracing libraries copy baggage
/// from a request to the calls that it causes, so a class reaches services that know nothing of it.
inline constexpr std::string_view kPriorityMember = "weir.priority";

/// The class that the baggage of a request names; the first one counts.
[[nodiscard]] std::optional<Priority> baggage_priority(const http::HeaderList& headers) noexcept;

/// Whether a value of Baggage has a member with this key.
[[nodiscard]] bool has_member(std::string_view baggage, std::string_view key) noexcept;

/// The value without the members that have this key, in whatever case: a class that a client wrote
/// must not come back as that of a trusted service. `out` is at least as long as `baggage`.
[[nodiscard]] std::string_view without_member(std::string_view baggage, std::string_view key,
                                              std::span<char> out) noexcept;

}  // namespace weir::inline v0::gateway
