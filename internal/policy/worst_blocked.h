#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

/// One connection whose client keeps places without using them.
///
/// `time` is the sum, over its requests, of how far each is behind the minimum rate: place-seconds
/// that the client has wasted. A hundred requests that are blocked for 10 ms count as much as one
/// that is blocked for a second, because they keep as much from others. A client that reads or
/// sends at the minimum rate or faster has none.
struct BlockedClient {
  std::uint8_t source = 0;  // its address, reduced to a number below kBlockedSources
  Duration time{};
};
inline constexpr std::size_t kBlockedSources = 256;

struct BlockedRule {
  Duration grace = std::chrono::seconds(1);             // that all clients of a source have
  Duration least_each = std::chrono::milliseconds(20);  // that every connection has
};

/// The connection that loses its places when places are short: of the source that wastes most, the
/// one that wastes most. Sources whose sum is below the grace, and connections below the least,
/// lose nothing. clients.size(): nobody does.
///
/// So many connections of one address are as bad as one connection with as many requests, and a
/// client with another address does not lose its place for them.
/// Thread-safety: pure. Cost: two passes.
[[nodiscard]] std::size_t worst_blocked(std::span<const BlockedClient> clients,
                                        const BlockedRule& rule) noexcept;

}  // namespace weir::inline v0::inline policy
