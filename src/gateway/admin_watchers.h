#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "weir/base/intrusive_list.h"
#include "weir/experimental/server/stream.h"

#include "admin_request.h"

namespace weir::inline v0::gateway {

/// One client that is sent a message per second until it leaves.
///
/// Promises: at most two messages wait for it. take() is false when the client has taken neither of
/// them: it is to be cut.
/// Thread-safety: the loop of the stream. Lifetime: ends before the stream.
class AdminWatcher {
 public:
  AdminWatcher(ServerStream& stream, std::unique_ptr<AdminFeed> feed, std::size_t message_max)
      : stream_(stream), feed_(std::move(feed)), message_max_(message_max) {}
  AdminWatcher(const AdminWatcher&) = delete;
  AdminWatcher& operator=(const AdminWatcher&) = delete;

  /// Makes and sends the next message. False: cut it, because it does not read, or because the
  /// message is longer than there is memory for.
  [[nodiscard]] bool next_message();
  /// Sends what the stream takes now.
  void send();
  [[nodiscard]] ServerStream& stream() const noexcept { return stream_; }
  /// The length of the message that there is no memory for; 0 if there was none.
  [[nodiscard]] std::size_t too_long() const noexcept { return too_long_; }

  ListHook<AdminWatcher> hook;

 private:
  static constexpr std::size_t kWaitingMax = 2;

  void forget_taken() noexcept;

  ServerStream& stream_;
  const std::unique_ptr<AdminFeed> feed_;
  const std::size_t message_max_;
  std::string unsent_;                             // what the stream has not accepted
  std::uint64_t accepted_ = 0;                     // bytes, by the stream
  std::array<std::uint64_t, kWaitingMax> ends_{};  // of the messages that the kernel has not taken
  std::size_t waiting_ = 0;                        // how many
  std::size_t too_long_ = 0;
};

/// All of them, at most kMost.
///
/// Thread-safety: one loop. Lifetime: every watcher leaves before it is destroyed.
class AdminWatchers {
 public:
  static constexpr std::size_t kMost = 8;

  [[nodiscard]] bool full() const noexcept { return count_ >= kMost; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  void add(AdminWatcher& watcher) noexcept {
    all_.push_back(watcher);
    ++count_;
  }
  void remove(AdminWatcher& watcher) noexcept {
    all_.remove(watcher);
    --count_;
  }
  /// Those that are to be cut, at most kMost; the others were sent their message.
  [[nodiscard]] std::array<AdminWatcher*, kMost> next_messages();

 private:
  IntrusiveList<AdminWatcher, &AdminWatcher::hook> all_;
  std::size_t count_ = 0;
};

}  // namespace weir::inline v0::gateway
