#include "policy/worst_blocked.h"

#include <array>

namespace weir::inline v0::inline policy {

std::size_t worst_blocked(std::span<const BlockedClient> clients,
                          const BlockedRule& rule) noexcept {
  std::array<Duration, kBlockedSources> sums{};
  for (const BlockedClient& client : clients) sums[client.source] += client.time;
  std::size_t worst = clients.size();
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const BlockedClient& client = clients[i];
    if (client.time < rule.least_each || sums[client.source] < rule.grace) continue;
    if (worst == clients.size()) {
      worst = i;
      continue;
    }
    const BlockedClient& other = clients[worst];
    const bool same = client.source == other.source;
    if (same ? client.time > other.time : sums[client.source] > sums[other.source]) worst = i;
  }
  return worst;
}

}  // namespace weir::inline v0::inline policy
