#include "override_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::inline v0::gateway {

std::string Override::what() const {
  switch (kind) {
    case OverrideKind::kDrain:
      return upstream + " " + target;
    case OverrideKind::kCap:
      return upstream + " to " + std::to_string(limit);
    case OverrideKind::kShadow:
    case OverrideKind::kLog:
      break;
  }
  return target;
}

std::int64_t Override::seconds_left(TimePoint now) const noexcept {
  return until <= now ? 0 : std::chrono::ceil<std::chrono::seconds>(until - now).count();
}

Duration OverrideTable::longest(OverrideKind kind) noexcept {
  if (kind == OverrideKind::kLog) return std::chrono::seconds(60);
  return std::chrono::hours(1);
}

Duration OverrideTable::usual(OverrideKind kind) noexcept {
  return std::min<Duration>(longest(kind), std::chrono::minutes(10));
}

/// Only one log: two would make the log twice as long, and nobody could say whose lines are whose.
bool OverrideTable::same(const Override& a, const Override& b) noexcept {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case OverrideKind::kDrain:
      return a.upstream == b.upstream && a.target == b.target;
    case OverrideKind::kShadow:
      return a.target == b.target;
    case OverrideKind::kCap:
      return a.upstream == b.upstream;
    case OverrideKind::kLog:
      break;
  }
  return true;
}

const Override* OverrideTable::put(Override one) {
  for (Override& old : all_) {
    if (!same(old, one)) continue;
    one.number = old.number;
    old = std::move(one);
    return &old;
  }
  if (all_.size() >= kMost) return nullptr;
  one.number = ++last_number_;
  all_.push_back(std::move(one));
  return &all_.back();
}

std::optional<Override> OverrideTable::remove(std::string_view id) {
  for (auto it = all_.begin(); it != all_.end(); ++it) {
    if (it->id() != id) continue;
    Override gone = std::move(*it);
    all_.erase(it);
    return gone;
  }
  return std::nullopt;
}

std::vector<Override> OverrideTable::expire(TimePoint now) {
  const auto over = std::stable_partition(all_.begin(), all_.end(),
                                          [&](const Override& one) { return one.until > now; });
  std::vector<Override> gone(std::make_move_iterator(over), std::make_move_iterator(all_.end()));
  all_.erase(over, all_.end());
  return gone;
}

const Override* OverrideTable::find(OverrideKind kind, std::string_view upstream,
                                    std::string_view target) const noexcept {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const Override& one) {
    return one.kind == kind && one.upstream == upstream && one.target == target;
  });
  return found == all_.end() ? nullptr : &*found;
}

TimePoint OverrideTable::next_end() const noexcept {
  TimePoint first = TimePoint::max();
  for (const Override& one : all_) first = std::min(first, one.until);
  return first;
}

}  // namespace weir::inline v0::gateway
