#include "live/live_events.h"

#include <algorithm>
#include <utility>

namespace weir::inline v0::gateway {

template <std::size_t N>
void LiveEvents::Text<N>::set(std::string_view text) noexcept {
  size = static_cast<std::uint8_t>(text.copy(bytes.data(), N));
}

void LiveEvents::add(const LiveEvent& event) {
  Kept kept{.unix_seconds = event.unix_seconds, .kind = event.kind, .upstream = {}, .text = {}};
  kept.upstream.set(event.upstream);
  kept.text.set(event.text);
  const std::scoped_lock lock(mutex_);
  kept_.push(kept);
  ++count_;
}

std::vector<LiveEvent> LiveEvents::after(std::uint64_t& seen) const {
  std::vector<LiveEvent> found;
  const std::scoped_lock lock(mutex_);
  const std::uint64_t wanted = count_ - std::min(count_, std::exchange(seen, count_));
  const std::size_t first = kept_.begin_of_last(static_cast<std::size_t>(wanted));
  for (std::size_t i = first; i < kept_.size(); ++i) {
    const Kept& kept = kept_[i];
    found.push_back({.unix_seconds = kept.unix_seconds,
                     .kind = kept.kind,
                     .upstream = kept.upstream.str(),
                     .text = kept.text.str()});
  }
  return found;
}

}  // namespace weir::inline v0::gateway
