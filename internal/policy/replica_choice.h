#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>

#include "weir/base/rng.h"
#include "weir/policy/balance.h"

#include "policy/hash_ring.h"
#include "policy/replica_view.h"

namespace weir::inline v0::inline policy {

/// The endpoints of an upstream: size(), and view(i), which is read once or twice per endpoint.
/// Endpoints of the own zone come first.
template <class T>
concept ReplicaSet = requires(const T& set, std::uint32_t i) {
  { set.size() } -> std::convertible_to<std::uint32_t>;
  { set.view(i) } -> std::convertible_to<ReplicaView>;
};

/// A ReplicaSet without its type: so the rules are compiled once.
class ReplicaSetRef {
 public:
  template <ReplicaSet Set>
  explicit ReplicaSetRef(const Set& set) noexcept
      : set_(&set), size_(set.size()), view_([](const void* s, std::uint32_t i) -> ReplicaView {
          return static_cast<const Set*>(s)->view(i);
        }) {}
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] ReplicaView view(std::uint32_t i) const { return view_(set_, i); }

 private:
  const void* set_;
  std::uint32_t size_;
  ReplicaView (*view_)(const void*, std::uint32_t);
};

/// What one choice is made for.
struct ChoiceAsk {
  Balance balance = Balance::kPeakEwma;
  Cohort cohort{};
  std::span<const std::uint32_t> tried{};  // indexes that this call has used
  bool tried_again = true;                 // a tried one may be chosen if no other is open
  std::uint32_t local = 0;            // endpoints 0 .. local-1 are in the own zone; 0: no zones
  std::uint32_t limit = 0;            // of the upstream; only zones use it
  const HashRing* ring = nullptr;     // kHash
  std::uint64_t hash = 0;             // of the key
  std::uint64_t in_flight_total = 0;  // kHash: attempts of all endpoints
  double load_factor = 1.25;          // kHash: c of bounded_load_max()
};

/// Chooses an endpoint.
///
/// 1. Open endpoints that were not tried, hold less than their share and have a queue that is not
///    saturated, by the configured rule: first among those whose queue is healthy. In panic, those
///    that are ejected for bad answers, latency or checks count as open.
/// 2. Open endpoints that were tried, if tried_again.
/// 3. If no endpoint is open: the least loaded of the others that are not closed; suspect and hung
///    ones last.
/// 4. None, with the reason.
///
/// *Zone* (not for kHash): the rule is applied to the own zone first; its choice is used while it
/// holds no more than its fair part, limit × weight ÷ open weight; otherwise the rule is applied to
/// all.
///
/// `cursor` is the position of round robin: any start value, one per loop; other rules ignore it.
/// A loop starts it with a random value, so that loops do not walk in step.
///
/// Promises: never a kClosed endpoint; never one that is not open while one that is open, untried
/// and has room exists; never one with a queue that is not healthy while such a one with a healthy
/// queue exists; equal draws give equal choices. The two draws of kPeakEwma are
/// distinct. Thread-safety: pure, apart from `cursor` and `rng`; the values behind the accessor may
/// change meanwhile (each view is read once and used as it was). Cost: kPeakEwma O(1): two views in
/// the common case, up to 8 draws, then one scan of all; kRoundRobin O(1) with equal weights; kHash
/// O(log n). No allocation.
[[nodiscard]] Choice choose_replica(const ReplicaSetRef& set, const ChoiceAsk& ask,
                                    std::uint64_t& cursor, Rng& rng);
template <ReplicaSet Set>
[[nodiscard]] Choice choose_replica(const Set& set, const ChoiceAsk& ask, std::uint64_t& cursor,
                                    Rng& rng) {
  return choose_replica(ReplicaSetRef(set), ask, cursor, rng);
}

}  // namespace weir::inline v0::inline policy
