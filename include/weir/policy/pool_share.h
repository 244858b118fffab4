#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::inline v0::inline policy {

/// How full a pool shared by all connections is.
struct PoolFill {
  std::uint64_t capacity = 0;
  std::uint64_t free = 0;
};

/// HTTP/2 body leases that one ordinary connection may hold: any number while more than half of
/// the pool is free, four while more than a fifth is, then one. Critical work is not limited.
///
/// Thread-safety: pure. Cost: O(1).
[[nodiscard]] constexpr std::uint64_t body_lease_share(const PoolFill& pool) noexcept {
  if (2 * pool.free > pool.capacity) return pool.capacity;
  return 5 * pool.free > pool.capacity ? 4 : 1;
}

struct WriteShareAsk {
  std::uint32_t quota = 1;   // the most a connection may ever hold
  bool critical = false;     // may use its whole quota
  bool others_wait = false;  // other connections are blocked on the write pool
};

/// Write buffers that one connection may hold: its whole quota while more than three quarters of
/// the pool are free, two while more than 60 % are, then one; one while others are blocked.
///
/// So clients that do not read fill at most 40 % of the pool plus one buffer each: with the
/// recommended two buffers per connection they cannot raise the pressure by themselves.
/// Thread-safety: pure. Cost: O(1).
[[nodiscard]] constexpr std::uint32_t write_buffer_share(const PoolFill& pool,
                                                         const WriteShareAsk& ask) noexcept {
  if (ask.critical) return ask.quota;
  if (ask.others_wait) return 1;
  if (4 * pool.free > 3 * pool.capacity) return ask.quota;
  return std::min<std::uint32_t>(ask.quota, 5 * pool.free > 3 * pool.capacity ? 2 : 1);
}

}  // namespace weir::inline v0::inline policy
