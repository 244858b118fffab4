#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/socket.h"
#include "weir/experimental/io/timer.h"

namespace weir::inline v0::inline server {

/// Accepted sockets in cleartext that have no place in the server. Each is read until its first
/// request head ends, answered 503 (HTTP/2: GOAWAY), and read for a short time after that, so that
/// the client receives the answer and not a reset.
///
/// Promises: reads at most `head_bytes_max` for at most kTime before the answer, and closes kTime
/// after it. At most kPlaces at once; beyond that a socket is answered and closed without being
/// read. Received bytes are not kept.
/// Thread-safety: its loop's thread. Cost: no allocation.
/// Lifetime: close() must have called `done` before destruction.
class RefusedConnections {
 public:
  static constexpr std::size_t kPlaces = 256;
  static constexpr Duration kTime = std::chrono::milliseconds(500);

  RefusedConnections(io::Loop& loop, std::size_t head_bytes_max);
  RefusedConnections(const RefusedConnections&) = delete;
  RefusedConnections& operator=(const RefusedConnections&) = delete;

  void add(io::Fd fd);
  /// Closes all; calls `done` when the loop uses none of them any more.
  void close(io::Callback<> done);

 private:
  struct Entry final : io::SocketEvents {
    void on_readable() override { owner->read(*this); }
    void on_writable() override {}
    void on_disconnected() override { owner->end(*this); }
    void on_closed() { owner->on_closed(*this); }

    RefusedConnections* owner = nullptr;
    io::Socket socket;
    ListHook<Entry> hook;
    TimePoint until{};
    std::size_t bytes = 0;        // read so far
    std::uint8_t ended_by = 0;    // how much of the head's last blank line was seen
    std::uint8_t of_preface = 0;  // how much of HTTP/2's preface was seen
    bool answered = false;
  };
  using List = IntrusiveList<Entry, &Entry::hook>;

  void read(Entry& entry);
  [[nodiscard]] bool head_ends(Entry& entry, std::span<const std::byte> bytes) const noexcept;
  void answer(Entry& entry);
  void end(Entry& entry);
  void on_closed(Entry& entry);
  void on_time(TimePoint now);
  void wait(Entry& entry);

  io::Loop& loop_;
  const std::size_t head_bytes_max_;
  std::array<Entry, kPlaces> entries_;
  List free_;
  List open_;  // by deadline
  io::Timer timer_;
  io::Callback<> done_;
  bool closing_ = false;

 public:
  static constexpr std::size_t kBytesEach = sizeof(Entry);
};

}  // namespace weir::inline v0::inline server
