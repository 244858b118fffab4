#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::inline v0::inline policy {

/// The place of a key among endpoints, so that equal keys go to the same endpoint, and a change of
/// the set moves few keys (consistent hashing).
///
/// Each endpoint has points on a ring in proportion to its weight; a key belongs to the first point
/// after its hash.
/// Promises: depends only on keys, weights and their values, not on the order of the endpoints;
/// when one endpoint is added to n or removed, about 1/n of the keys move, and no key moves between
/// endpoints that stay.
/// Thread-safety: immutable after construction. Cost: construction sorts and allocates (off the
/// data path, with the set); owner() is a binary search without allocation.
class HashRing {
 public:
  struct Member {
    std::uint64_t key = 0;  // stable identity of the endpoint: a hash of its address
    double weight = 1;
  };
  static constexpr std::uint32_t kPointsPerMember = 160;  // of a member with average weight

  HashRing() = default;
  explicit HashRing(std::span<const Member> members);

  [[nodiscard]] bool empty() const noexcept { return points_.empty(); }
  /// The index of the member that owns `hash`. The ring must not be empty.
  [[nodiscard]] std::uint32_t owner(std::uint64_t hash) const noexcept;

 private:
  struct Point {
    std::uint64_t at = 0;
    std::uint64_t key = 0;  // decides between equal points
    std::uint32_t member = 0;
  };
  std::vector<Point> points_;
};

/// Bounded load: how many attempts a member may hold before its keys go elsewhere:
/// ceil(c × (in flight of all + 1) × weight ÷ weight of all), at least 1.
[[nodiscard]] inline std::uint32_t bounded_load_max(double c, std::uint64_t in_flight_total,
                                                    double weight_share) noexcept {
  const double slots = std::ceil(c * static_cast<double>(in_flight_total + 1) * weight_share);
  return slots < 1 ? 1 : slots > 4294967295.0 ? 4294967295U : static_cast<std::uint32_t>(slots);
}

}  // namespace weir::inline v0::inline policy
