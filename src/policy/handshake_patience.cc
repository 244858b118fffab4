#include "policy/handshake_patience.h"

#include <algorithm>

namespace weir::inline v0::inline policy {

void UsualHandshake::note(Duration took) noexcept {
  noted_ = std::min(noted_ + 1, kMemory);
  mean_ += (std::max(took, Duration(1)) - mean_) / noted_;
  mean_ = std::max(mean_, Duration(1));  // zero would mean that nothing is known
}

Duration handshake_grace(Duration usual, const HandshakeRule& rule) noexcept {
  if (usual <= Duration(0)) return rule.most;
  const Duration enough = rule.most / rule.usual_times;  // above it, the product would be cut
  if (usual >= enough) return rule.most;
  return std::max(usual * rule.usual_times, rule.least);
}

Duration handshake_patience(std::uint32_t held, const SlotDemand& demand,
                            const HandshakeRule& rule) noexcept {
  const Duration grace = handshake_grace(demand.usual, rule);
  const std::uint32_t share = std::max(demand.slots / std::max(demand.sources, 1U), 1U);
  if (held <= share) return grace;
  return std::max(grace * std::int64_t{share} / std::int64_t{held}, rule.least / 4);
}

}  // namespace weir::inline v0::inline policy
