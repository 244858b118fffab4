#include "policy/hash_ring.h"

#include <algorithm>

#include "weir/base/assert.h"
#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {

HashRing::HashRing(std::span<const Member> members) {
  double total = 0;
  for (const Member& member : members) total += member.weight;
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    const double share = members[i].weight * static_cast<double>(members.size()) / total;
    const auto count = static_cast<std::uint32_t>(std::max(share * kPointsPerMember + 0.5, 1.0));
    std::uint64_t stream = members[i].key;
    for (std::uint32_t point = 0; point < count; ++point) {
      points_.push_back({.at = splitmix64(stream), .key = members[i].key, .member = i});
    }
  }
  std::ranges::sort(points_, [](const Point& a, const Point& b) {
    return a.at != b.at ? a.at < b.at : a.key < b.key;
  });
}

std::uint32_t HashRing::owner(std::uint64_t hash) const noexcept {
  WEIR_ASSERT(!points_.empty());
  const auto after = std::ranges::upper_bound(points_, hash, {}, &Point::at);
  return after == points_.end() ? points_.front().member : after->member;
}

}  // namespace weir::inline v0::inline policy
