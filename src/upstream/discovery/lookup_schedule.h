#pragma once

#include <functional>

#include "weir/base/time.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/timer.h"

#include "discovery/published_set.h"
#include "policy/discovery_rules.h"
#include "upstream/discovery/make_source.h"

namespace weir::inline v0::upstream {

/// When a source that looks things up does so: the clock and the timer of DiscoveryRules.
///
/// Thread-safety: the source's loop. Lifetime: stopped before its loop ends.
class LookupSchedule {
 public:
  using Decision = policy::DiscoveryRules::Decision;
  using Part = policy::DiscoveryRules::Part;

  LookupSchedule(SourceTiming timing, PublishedSet& published, std::function<void()> look)
      : rng_(timing.rng), rules_(timing.times), published_(published), look_(std::move(look)) {}
  LookupSchedule(const LookupSchedule&) = delete;
  LookupSchedule& operator=(const LookupSchedule&) = delete;
  ~LookupSchedule() { stop(); }

  void start(io::Loop& loop) noexcept {
    loop_ = &loop;
    arm(loop.now());
  }
  void stop() noexcept {
    if (loop_ != nullptr) loop_->cancel(timer_);
  }
  /// Looks as soon as the rules allow, if no lookup is in progress.
  void refresh() noexcept {
    if (loop_ == nullptr || !timer_.armed()) return;
    const TimePoint at = rules_.earliest_refresh(last_look_, loop_->now());
    if (at < timer_.deadline()) arm(at);
  }
  /// A lookup has ended: decides, and arms the timer for the next one.
  [[nodiscard]] Decision ended(Part first, Part second) noexcept {
    const Decision decision = rules_.on_lookup(first, second, loop_->now(), rng_);
    published_.set_reason(name_of(decision.reason));
    arm(loop_->now() + decision.next);
    return decision;
  }

 private:
  void arm(TimePoint at) noexcept {
    published_.set_next(at);
    loop_->arm(timer_, at);
  }
  void on_timer(TimePoint now) {
    last_look_ = now;
    look_();
  }

  Rng rng_;
  policy::DiscoveryRules rules_;
  PublishedSet& published_;
  std::function<void()> look_;
  io::Loop* loop_ = nullptr;
  TimePoint last_look_{};
  io::Timer timer_{io::Timer::Fired::to<&LookupSchedule::on_timer>(*this)};
};

}  // namespace weir::inline v0::upstream
