#include "admin_watchers.h"

#include <algorithm>

namespace weir::inline v0::gateway {

bool AdminWatcher::next_message() {
  forget_taken();
  if (waiting_ == kWaitingMax) return false;
  std::string message = feed_->next();
  if (message.size() > message_max_) {
    too_long_ = message.size();
    return false;
  }
  unsent_ += message;
  ends_[waiting_++] = accepted_ + unsent_.size();
  send();
  return true;
}

void AdminWatcher::send() {
  if (unsent_.empty()) return;
  const std::size_t taken = stream_.send_data(unsent_);
  accepted_ += taken;
  unsent_.erase(0, taken);
  if (unsent_.empty()) unsent_.shrink_to_fit();
}

void AdminWatcher::forget_taken() noexcept {
  // What the stream has accepted may still be in its write buffers.
  const std::uint64_t taken =
      accepted_ - std::min<std::uint64_t>(accepted_, stream_.unsent_bytes());
  while (waiting_ > 0 && ends_[0] <= taken) {
    std::shift_left(ends_.begin(), ends_.end(), 1);
    --waiting_;
  }
}

std::array<AdminWatcher*, AdminWatchers::kMost> AdminWatchers::next_messages() {
  std::array<AdminWatcher*, kMost> cut{};
  std::size_t found = 0;
  for (AdminWatcher& watcher : all_) {
    if (!watcher.next_message()) cut[found++] = &watcher;
  }
  return cut;
}

}  // namespace weir::inline v0::gateway
