#include "policy/replica_choice.h"

#include <cmath>
#include <optional>
#include <string_view>

namespace weir::inline v0::inline policy {
namespace {

constexpr std::uint32_t kPairsMax = 4;      // drawn before all endpoints are looked at
constexpr std::uint32_t kRedrawsMax = 4;    // of one endpoint because of its weight
constexpr std::uint32_t kScanSizeMax = 16;  // least requests compares all up to this size
constexpr double kEqualCosts = 1 - 1e-4;    // costs closer than this are equal

struct Drawn {
  std::uint32_t index = kNoReplica;
  ReplicaView view;
};

/// Which endpoints are left out of a choice.
struct Pass {
  bool skip_tried = true;
  bool healthy_only = true;  // by their queues
};

/// One choice among endpoints 0 .. count-1.
class Draw {
 public:
  Draw(const ReplicaSetRef& set, const ChoiceAsk& ask, std::uint32_t count, Pass pass)
      : set_(set), ask_(ask), count_(count), pass_(pass) {}

  [[nodiscard]] std::optional<Drawn> choose(std::uint64_t& cursor, Rng& rng) const {
    switch (ask_.balance) {
      case Balance::kRoundRobin:
        return in_turn(cursor);
      case Balance::kLeastRequests:
        return count_ <= kScanSizeMax ? least(rng) : better_of_two(rng);
      case Balance::kHash:
        return by_hash(rng);
      case Balance::kPeakEwma:
        break;
    }
    return better_of_two(rng);
  }

  [[nodiscard]] static bool open(const ReplicaView& view, const ChoiceAsk& ask) noexcept {
    if (view.openness == Openness::kOpen || view.openness == Openness::kTrial) return true;
    return view.openness == Openness::kPanicOnly && in_panic(ask.cohort);
  }
  [[nodiscard]] static bool has_room(const ReplicaView& view) noexcept {
    if (view.queue == OutgoingState::kSaturated) return false;
    return view.in_flight_max == 0 || view.in_flight < view.in_flight_max;
  }
  [[nodiscard]] static bool was_tried(std::uint32_t index, const ChoiceAsk& ask) noexcept {
    return std::ranges::find(ask.tried, index) != ask.tried.end();
  }

 private:
  [[nodiscard]] bool usable(const Drawn& drawn) const noexcept {
    if (pass_.healthy_only && drawn.view.queue != OutgoingState::kHealthy) return false;
    return open(drawn.view, ask_) && has_room(drawn.view) &&
           !(pass_.skip_tried && was_tried(drawn.index, ask_));
  }
  [[nodiscard]] Drawn at(std::uint32_t index) const { return {index, set_.view(index)}; }
  [[nodiscard]] double cost(const ReplicaView& view) const noexcept {
    const double score = ask_.balance == Balance::kPeakEwma ? view.score_ns : 1;
    return score * (view.in_flight + 1.0) / view.weight;
  }
  /// Of two endpoints with equal costs, the first: the draw is the tie-break.
  [[nodiscard]] const Drawn& better(const Drawn& a, const Drawn& b) const noexcept {
    return cost(b.view) < cost(a.view) * kEqualCosts ? b : a;
  }

  /// Draws an endpoint other than `except` with a probability in proportion to its weight.
  [[nodiscard]] Drawn draw(std::uint32_t except, Rng& rng) const {
    const std::uint32_t choices = except == kNoReplica ? count_ : count_ - 1;
    for (std::uint32_t i = 1;; ++i) {
      auto index = static_cast<std::uint32_t>(rng.below(choices));
      if (except != kNoReplica && index >= except) ++index;
      const Drawn drawn = at(index);
      if (drawn.view.weight >= ask_.cohort.weight_max || i == kRedrawsMax) return drawn;
      if (rng.unit() * ask_.cohort.weight_max < drawn.view.weight) return drawn;
    }
  }

  [[nodiscard]] std::optional<Drawn> better_of_two(Rng& rng) const {
    if (count_ == 1) return any_two(rng);
    for (std::uint32_t i = 0; i < kPairsMax; ++i) {
      const Drawn a = draw(kNoReplica, rng);
      const Drawn b = draw(a.index, rng);
      if (usable(a) && usable(b)) return better(a, b);
    }
    return any_two(rng);
  }

  /// The better of two of the usable endpoints, found by looking at all: when most are not usable.
  [[nodiscard]] std::optional<Drawn> any_two(Rng& rng) const {
    std::optional<Drawn> first;
    std::optional<Drawn> second;
    std::uint64_t seen = 0;
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Drawn drawn = at(i);
      if (!usable(drawn)) continue;
      // Reservoir of two: each usable endpoint stays in it with the same probability.
      const std::uint64_t place = rng.below(++seen);
      if (seen == 2 && place == 0) {
        second = first;
        first = drawn;
      } else if (place == 0) {
        first = drawn;
      } else if (place == 1) {
        second = drawn;
      }
    }
    if (!first || !second) return first;
    return better(*first, *second);
  }

  /// Endpoint i takes part in round r if floor((r + 1) w) > floor(r w), w = weight ÷ largest
  /// weight: in w of all rounds, spread evenly, without a state per endpoint.
  [[nodiscard]] std::optional<Drawn> in_turn(std::uint64_t& cursor) const {
    std::optional<Drawn> out_of_turn;
    for (std::uint32_t step = 0; step < 2 * count_; ++step) {
      const std::uint64_t turn = cursor++;
      const Drawn drawn = at(static_cast<std::uint32_t>(turn % count_));
      if (!usable(drawn)) continue;
      const double w = drawn.view.weight / ask_.cohort.weight_max;
      const double round = static_cast<double>(turn / count_ % (1U << 20U));
      if (w >= 1 || std::floor((round + 1) * w) > std::floor(round * w)) return drawn;
      out_of_turn = drawn;
    }
    return out_of_turn;
  }

  /// The least cost of all usable ones; the random start decides between equal ones.
  [[nodiscard]] std::optional<Drawn> least(Rng& rng) const {
    const auto start = static_cast<std::uint32_t>(rng.below(count_));
    std::optional<Drawn> best;
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Drawn drawn = at((start + i) % count_);
      if (usable(drawn)) best = best ? better(*best, drawn) : drawn;
    }
    return best;
  }

  [[nodiscard]] bool below_bound(const ReplicaView& view) const noexcept {
    const double total = std::max(ask_.cohort.open_weight, view.weight);
    return view.in_flight <
           bounded_load_max(ask_.load_factor, ask_.in_flight_total, view.weight / total);
  }

  /// The owner of the key; if it cannot take it, endpoints in an order that depends on the key.
  /// (The next one on the ring would get all keys of a full owner, and be full next.)
  [[nodiscard]] std::optional<Drawn> by_hash(Rng& rng) const {
    WEIR_ASSERT(ask_.ring != nullptr && !ask_.ring->empty());
    const std::uint32_t owner = ask_.ring->owner(ask_.hash);
    if (owner < count_) {
      const Drawn drawn = at(owner);
      if (usable(drawn) && below_bound(drawn.view)) return drawn;
    }
    Rng order(ask_.hash);
    for (std::uint32_t i = 0; i < 2 * count_; ++i) {
      const Drawn drawn = at(static_cast<std::uint32_t>(order.below(count_)));
      if (usable(drawn) && below_bound(drawn.view)) return drawn;
    }
    return least(rng);
  }

  const ReplicaSetRef& set_;
  const ChoiceAsk& ask_;
  std::uint32_t count_;
  Pass pass_;
};

/// Below its fair part of the limit, without the half that share_max() adds.
bool has_fair_room(const ReplicaView& view, const ChoiceAsk& ask) noexcept {
  if (ask.limit == 0 || ask.cohort.open_weight <= 0) return true;
  const double part = std::ceil(ask.limit * view.weight / ask.cohort.open_weight);
  return view.in_flight < std::max(part, 1.0);
}

std::optional<Choice> choose_open(const ReplicaSetRef& set, const ChoiceAsk& ask, Pass pass,
                                  std::uint64_t& cursor, Rng& rng) {
  // A key belongs to one endpoint, wherever that is.
  const bool zoned = ask.local > 0 && ask.local < set.size() && ask.balance != Balance::kHash;
  if (zoned) {
    const auto near = Draw(set, ask, ask.local, pass).choose(cursor, rng);
    if (near && has_fair_room(near->view, ask)) return Choice{near->index, ChoiceReason::kChosen};
  }
  const auto chosen = Draw(set, ask, set.size(), pass).choose(cursor, rng);
  if (!chosen) return std::nullopt;
  ChoiceReason reason = ChoiceReason::kChosen;
  if (zoned && chosen->index >= ask.local) reason = ChoiceReason::kSpilled;
  if (ask.cohort.open == 1) reason = ChoiceReason::kOnlyOne;
  if (chosen->view.openness == Openness::kPanicOnly) reason = ChoiceReason::kPanic;
  return Choice{chosen->index, reason};
}

/// No endpoint is open and has room: the least bad one, or why there is none.
Choice last_resort(const ReplicaSetRef& set, const ChoiceAsk& ask) {
  Drawn best;
  bool open = false;
  bool open_untried = false;
  for (std::uint32_t i = 0; i < set.size(); ++i) {
    const Drawn drawn{i, set.view(i)};
    const bool tried = Draw::was_tried(i, ask);
    if (Draw::open(drawn.view, ask)) {
      open = true;
      open_untried = open_untried || !tried;
    }
    if (drawn.view.openness == Openness::kClosed || (tried && !ask.tried_again)) continue;
    const bool first = best.index == kNoReplica || drawn.view.openness < best.view.openness;
    const bool less =
        drawn.view.openness == best.view.openness && drawn.view.in_flight < best.view.in_flight;
    if (first || less) best = drawn;
  }
  if (open_untried) return {kNoReplica, ChoiceReason::kAllFull};
  if (open && !ask.tried_again) return {kNoReplica, ChoiceReason::kAllTried};
  if (open) return {kNoReplica, ChoiceReason::kAllFull};
  if (best.index == kNoReplica) return {kNoReplica, ChoiceReason::kAllOut};
  return {best.index, ChoiceReason::kLastResort};
}

}  // namespace

Choice choose_replica(const ReplicaSetRef& set, const ChoiceAsk& ask, std::uint64_t& cursor,
                      Rng& rng) {
  if (set.size() == 0) return {kNoReplica, ChoiceReason::kEmptySet};
  for (const bool skip_tried : {true, false}) {
    if (!skip_tried && (!ask.tried_again || ask.tried.empty())) break;
    for (const bool healthy_only : {true, false}) {
      const Pass pass{.skip_tried = skip_tried, .healthy_only = healthy_only};
      const auto choice = choose_open(set, ask, pass, cursor, rng);
      if (choice) return {choice->index, skip_tried ? choice->reason : ChoiceReason::kRepeated};
    }
  }
  return last_resort(set, ask);
}

}  // namespace weir::inline v0::inline policy
