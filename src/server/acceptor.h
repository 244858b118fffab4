#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/experimental/io/listener.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/timer.h"
#include "weir/experimental/server/close_reason.h"
#include "weir/experimental/server/server.h"

#include "refused_connections.h"
#include "shared.h"

namespace weir::inline v0::inline server {

/// Accepts connections for all loops, on one of them: evaluates the pressure, then gives the socket
/// to the loop with the fewest connections, or refuses it: 503 in cleartext (RefusedConnections), a
/// reset with TLS. A sender that is not trusted is closed at once if its listener requires a PROXY
/// header.
///
/// If all places are taken but some connection is idle, new connections stay in the kernel's queue
/// for a short time while the longest idle connection is closed. If none is idle, they are refused
/// at once.
/// Thread-safety: its loop's thread.
class Acceptor {
 public:
  Acceptor(ServerShared& shared, io::Loop& loop, CriticalPeer is_critical, Rng rng);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  struct ListenerKind {
    bool tls = false;
    bool proxied = false;  // connections begin with a PROXY header
    bool paused = false;   // until resume()
  };
  [[nodiscard]] Result<void, io::IoError> add(io::Fd listening, const io::ListenOptions& options,
                                              ListenerKind kind);
  void resume();
  /// In the order in which they were added, for another process.
  [[nodiscard]] std::vector<io::Fd> duplicate_listeners() const;
  void share_listener(std::size_t index, bool shared);
  /// What becomes of connections that the kernel has established and that nobody accepted yet.
  enum class Queued : std::uint8_t { kServed, kReset };
  /// Stops accepting. Calls `done` when the listeners are closed.
  void close(Queued queued, io::Callback<> done);

 private:
  /// Receives the events of listeners: one object for each kind.
  struct ListenerSink final : io::AcceptSink {
    ListenerSink(Acceptor& to, ListenerKind what) noexcept : owner(to), kind(what) {}
    bool ready_to_accept() override { return owner.ready_to_accept(); }
    void on_accepted(io::Fd fd, const io::Address& peer) override {
      owner.on_accepted(
          std::move(fd),
          {.peer = peer, .critical = false, .tls = kind.tls, .proxied = kind.proxied});
    }
    void on_accept_failed(io::IoError error) override { owner.on_accept_failed(error); }
    Acceptor& owner;
    const ListenerKind kind;
  };

  bool ready_to_accept();
  void on_accepted(io::Fd fd, Connection::Arrival arrival);
  void on_accept_failed(io::IoError error);

  [[nodiscard]] bool refuse_by_pressure(RefuseReason& reason);
  [[nodiscard]] bool trusted(const io::Address& sender) const;
  void refuse_sender(const io::Address& sender);
  void refuse_early(io::Fd fd, RefuseReason reason, const Connection::Arrival& arrival);
  void make_room();
  void ask_for_room();
  void request_room();
  void room_made();
  void look_again(TimePoint now);
  /// The last connections of a queue may be refused: `refused_` closes after the listeners.
  void on_listener_closed() {
    if (--open_listeners_ == 0) refused_.close(closed_);
  }

  ServerShared& shared_;
  io::Loop& loop_;
  CriticalPeer is_critical_;
  Rng rng_;
  ListenerSink cleartext_{*this, {.tls = false}};
  ListenerSink encrypted_{*this, {.tls = true}};
  ListenerSink cleartext_proxied_{*this, {.tls = false, .proxied = true}};
  ListenerSink encrypted_proxied_{*this, {.tls = true, .proxied = true}};
  std::vector<std::unique_ptr<io::Listener>> listeners_;
  io::Task room_task_;
  io::Timer room_timer_;
  TimePoint waits_until_{};   // new connections stay in the kernel's queue until then
  TimePoint refuse_until_{};  // no place became free: new connections are refused at once
  RefusedConnections refused_;
  std::size_t open_listeners_ = 0;
  io::Callback<> closed_;
  bool closing_ = false;
};

}  // namespace weir::inline v0::inline server
