#pragma once

#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

/// Decides how long a request may wait in one line of a waiting room: the whole tier in a burst, at
/// most 10 ms while the line is standing.
///
/// A line that is never empty only adds its length to every latency: what it serves is bounded by
/// the limit, not by who waits. A line that is empty now and then absorbs bursts. The measure is
/// the share of time in which somebody waited and the line had refused somebody within the last 100
/// ms, fading with 1 s:
///
///   share' = (now - share) / 1 s, where now = 1 if occupied and a refusal is at most 100 ms old
///
/// | state    | patience         | becomes                                                        |
/// |----------|------------------|----------------------------------------------------------------|
/// | moving   | tier             | standing when share >= 0.9                                     |
/// | standing | min(tier, 10 ms) | moving when share < 0.5; on trial after 1, 2, 4 … 32 s         |
/// | on trial | tier             | moving if nobody who came on trial was refused in the trial    |
/// |          |                  | time; else standing again, at the first refusal                |
///
/// Both conditions are needed. Without the refusal, clients that wait for their answers before they
/// ask again, and are all served, would make the line stand. Without the trial, such clients would
/// be refused for ever once a stall had made it stand: the short patience itself causes refusals.
///
/// Promises: equal calls give equal answers on every machine. A time before the last one seen, zero
/// included, counts as the last one seen.
/// Thread-safety: none; the owner serialises. Cost: O(1), no allocation; a few divisions, none
/// while no refusal counts.
class StandingLine {
 public:
  static constexpr Duration kShortPatience = std::chrono::milliseconds(10);
  static constexpr Duration kRefusalCounts = std::chrono::milliseconds(100);
  static constexpr Duration kFade = std::chrono::seconds(1);
  static constexpr Duration kTrialMin = std::chrono::milliseconds(150);
  static constexpr Duration kPauseFirst = std::chrono::seconds(1);
  static constexpr Duration kPauseLast = std::chrono::seconds(32);
  static constexpr double kStandsFrom = 0.9;
  static constexpr double kStandsUntil = 0.5;

  /// Somebody waits from `now` on, or nobody does.
  void set_occupied(bool occupied, TimePoint now) noexcept {
    if (occupied == occupied_) return;
    advance(now);
    occupied_ = occupied;
  }
  /// The line refused a request that came at `came_at`, for lack of room or time. A refusal that
  /// only the request's own deadline caused is not the line's.
  void note_refused(TimePoint came_at, TimePoint now) noexcept;
  /// How long a request that comes now may wait. May begin a trial.
  [[nodiscard]] Duration patience(Duration tier, TimePoint now) noexcept {
    advance(now);
    return state_ == State::kStanding ? standing_patience(tier) : tier;
  }

  /// The longest time after which the first of the line is still served; Duration::max() while the
  /// line is not standing: then its own patience decides.
  [[nodiscard]] Duration served_within(TimePoint now) noexcept {
    advance(now);
    return state_ == State::kStanding ? kShortPatience : Duration::max();
  }
  [[nodiscard]] bool standing(TimePoint now) noexcept;
  [[nodiscard]] double share() const noexcept { return share_; }

 private:
  enum class State : unsigned char { kMoving, kStanding, kTrial };

  void advance(TimePoint now) noexcept {
    if (now <= at_) return;
    // The common case, inline: no refusal counts, so the share stays zero.
    const bool idle = share_ == 0 && state_ == State::kMoving && refused_until_ <= at_;
    if (!idle) return advance_state(now);
    at_ = now;
  }
  void advance_state(TimePoint now) noexcept;
  [[nodiscard]] Duration standing_patience(Duration tier) noexcept;
  void fade(Duration span, double towards) noexcept;
  void stop_standing() noexcept;

  TimePoint at_{};             // everything before it is in share_
  TimePoint refused_until_{};  // until then the last refusal counts
  TimePoint trial_{};          // when the next trial begins; on trial: when it began
  TimePoint trial_end_{};
  Duration pause_ = kPauseFirst;
  double share_ = 0;
  State state_ = State::kMoving;
  bool occupied_ = false;
};

}  // namespace weir::inline v0::inline policy
