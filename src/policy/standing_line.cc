#include "policy/standing_line.h"

#include <algorithm>

namespace weir::inline v0::inline policy {
namespace {

// e^-x within 0.5 % for x < 1 and falling to 0, from operations that every machine rounds alike.
double decay(double x) noexcept {
  return 1 / (1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4))));
}

}  // namespace

void StandingLine::fade(Duration span, double towards) noexcept {
  if (span <= Duration(0)) return;
  share_ = towards + (share_ - towards) * decay(to_seconds(span) / to_seconds(kFade));
}

void StandingLine::stop_standing() noexcept {
  state_ = State::kMoving;
  pause_ = kPauseFirst;
}

void StandingLine::advance_state(TimePoint now) noexcept {
  if (state_ == State::kTrial) {  // which alone decides: the share does not change meanwhile
    at_ = now;
    if (now < trial_end_) return;
    share_ = 0;
    stop_standing();
    return;
  }
  const TimePoint counted = occupied_ ? std::clamp(refused_until_, at_, now) : at_;
  fade(counted - at_, 1);
  fade(now - counted, 0);
  at_ = now;
  if (state_ == State::kMoving && share_ >= kStandsFrom) {
    state_ = State::kStanding;
    trial_ = now + pause_;
  } else if (state_ == State::kStanding && share_ < kStandsUntil) {
    stop_standing();
  }
}

void StandingLine::note_refused(TimePoint came_at, TimePoint now) noexcept {
  advance(now);
  refused_until_ = at_ + kRefusalCounts;
  if (state_ != State::kTrial || came_at < trial_) return;
  state_ = State::kStanding;
  pause_ = std::min(pause_ * 2, kPauseLast);
  trial_ = at_ + pause_;
}

Duration StandingLine::standing_patience(Duration tier) noexcept {
  if (at_ < trial_) return std::min(tier, kShortPatience);
  state_ = State::kTrial;
  trial_ = at_;
  // Who comes in the first third has been served or refused by the end.
  trial_end_ = at_ + std::max(kTrialMin, tier * 3 / 2);
  return tier;
}

bool StandingLine::standing(TimePoint now) noexcept {
  advance(now);
  return state_ != State::kMoving;
}

}  // namespace weir::inline v0::inline policy
