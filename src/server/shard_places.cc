#include <algorithm>
#include <array>
#include <span>

#include "policy/worst_blocked.h"
#include "shard.h"

// Places that clients keep without using them, when others need places.

namespace weir::inline v0::inline server {
namespace {

/// Connections that one scan compares; with more, those that are open longest.
constexpr std::size_t kComparedMax = 512;
/// After a scan that found nobody, the next one is not before this: refused requests must be cheap.
constexpr Duration kScanPause = std::chrono::milliseconds(2);

/// A share of the places: some are freed at once, so that the next requests need no scan.
std::uint32_t part_of(std::uint64_t places, std::uint32_t divisor) noexcept {
  return std::max<std::uint32_t>(static_cast<std::uint32_t>(places / divisor), 1);
}

std::uint8_t source_number(const io::Address& peer, std::uint64_t salt) noexcept {
  constexpr std::uint64_t kOddMultiplier = 0x9E3779B97F4A7C15U;
  // One site usually has all addresses of an IPv6 /64.
  const std::size_t bytes = peer.family == io::Family::kV4 ? 4 : 8;
  std::uint64_t number = salt;
  for (std::size_t i = 0; i < bytes; ++i) number = (number ^ peer.ip[i]) * kOddMultiplier;
  return static_cast<std::uint8_t>(number >> 56U);
}

}  // namespace

bool LoopShard::make_room(const Connection& asks) {
  const TimePoint now = loop_.now();
  if (now < next_blocked_scan_) return false;
  const std::uint64_t places = shared_.streams.stats().capacity;
  if (end_blocked(part_of(places, 16), now, &asks) > 0) return true;
  next_blocked_scan_ = now + kScanPause;
  for (LoopShard* other : shared_.shards) {
    if (other != this) other->loop_.post(other->blocked_task_);
  }
  return false;
}

void LoopShard::end_blocked_for_others() {
  const TimePoint now = loop_.now();
  if (stopping_ || now < next_blocked_scan_) return;
  next_blocked_scan_ = now + kScanPause;
  end_blocked(part_of(shared_.streams.stats().capacity, 16), now);
}

/// Before the last place is taken: a request that finds none is refused.
void LoopShard::keep_places_free() {
  const PoolStats places = shared_.streams.stats();
  const std::uint32_t spare = part_of(places.capacity, 8);
  if (places.capacity - places.used < spare) end_blocked(spare, loop_.now());
}

std::uint32_t LoopShard::end_blocked(std::uint32_t wanted, TimePoint now, const Connection* but) {
  const BlockedRule rule{.grace = config().stall_grace};
  std::array<BlockedClient, kComparedMax> clients;
  std::array<Connection*, kComparedMax> owners;
  std::size_t count = 0;
  for (Connection& connection : all_) {
    const Duration time = connection.blocked_time(now);
    if (time < rule.least_each || &connection == but) continue;
    clients[count] = {.source = source_number(connection.peer(), source_salt_), .time = time};
    owners[count++] = &connection;
    if (count == kComparedMax) break;
  }
  std::uint32_t ended = 0;
  while (ended < wanted) {
    const std::size_t worst = worst_blocked(std::span(clients.data(), count), rule);
    if (worst == count) break;
    clients[worst].time = {};
    // A handler that is told may close another of these connections.
    if (owners[worst]->blocked_time(now) == Duration(0)) continue;
    ended += owners[worst]->end_blocked(wanted - ended, now);
  }
  counters_.blocked_ended += ended;
  return ended;
}

}  // namespace weir::inline v0::inline server
