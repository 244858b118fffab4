#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/time.h"

#include "attempt.h"
#include "control/hedge_executor.h"
#include "replica_pool.h"

namespace weir::inline v0::sim {

/// One read of a gateway whose attempts may overlap: the executor that decides, and its attempts.
struct ReadRace {
  /// An attempt at a replica, from its beginning until the executor has no use for it.
  struct Place {
    control::AttemptNumber number = 0;   // 0: free
    std::uint32_t attempt = kNoAttempt;  // none after it was answered
    std::uint32_t replica = 0;
    TimePoint sent_at{};
    ReplicaEnd end = ReplicaEnd::kOk;  // of one that was answered
    bool absent = false;               // "not found"
  };

  explicit ReadRace(control::RedundancyBudget& shared) noexcept : executor(shared) {}

  [[nodiscard]] Place& free_place() noexcept { return with_number(0); }
  [[nodiscard]] Place& with_number(control::AttemptNumber number) noexcept {
    Place& place = places[0].number == number ? places[0] : places[1];
    WEIR_ASSERT(place.number == number);
    return place;
  }
  [[nodiscard]] Place& with_attempt(std::uint32_t attempt) noexcept {
    Place& place = places[0].attempt == attempt ? places[0] : places[1];
    WEIR_ASSERT(place.attempt == attempt);
    return place;
  }

  control::HedgeExecutor executor;
  std::array<Place, control::HedgeExecutor::kParallelMax> places{};
  bool hedged = false;
  bool noted = false;         // why it was not hedged
  std::uint32_t retries = 0;  // that a back-off counts
};

/// Storage for races: never moves them, reuses the place freed last.
class ReadRaces {
 public:
  explicit ReadRaces(control::RedundancyBudget& shared) noexcept : shared_(&shared) {}

  [[nodiscard]] ReadRace& operator[](std::uint32_t index) noexcept { return races_[index]; }
  [[nodiscard]] std::uint32_t take() {
    if (free_.empty()) {
      races_.emplace_back(*shared_);
      return static_cast<std::uint32_t>(races_.size() - 1);
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    ReadRace& race = races_[index];
    race.places = {};
    race.hedged = race.noted = false;
    race.retries = 0;
    return index;
  }
  void give_back(std::uint32_t index) {
    if (!races_[index].executor.ended()) static_cast<void>(races_[index].executor.on_cancelled());
    free_.push_back(index);
  }

 private:
  control::RedundancyBudget* shared_;
  std::deque<ReadRace> races_;
  std::vector<std::uint32_t> free_;
};

}  // namespace weir::inline v0::sim
