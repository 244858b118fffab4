#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/config_error.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/io/address.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/loop_threads.h"
#include "weir/experimental/server/handler.h"
#include "weir/experimental/server/proxy_result.h"
#include "weir/experimental/server/server_config.h"
#include "weir/experimental/server/stats.h"
#include "weir/experimental/server/stream.h"

namespace weir::inline v0::inline server {

/// The loop that a handler belongs to.
struct HandlerPlace {
  io::Loop& loop;
  std::uint32_t index = 0;  // of the loop
};
/// Called once per loop, before the loop serves requests.
using HandlerFactory = std::function<std::unique_ptr<Handler>(const HandlerPlace&)>;

/// Whether a new connection from this address is critical: it may use the reserved places and is
/// not shed. Called on the accepting loop; not for listeners of config.proxy_protocol, where the
/// client is not known yet.
using CriticalPeer = std::function<bool(const io::Address&)>;

/// For the listeners of config.proxy_protocol: from whom they take a PROXY header.
struct ProxySenders {
  /// Whether the other end of a socket is a trusted proxy; unset: none is. Called on the accepting
  /// loop, not for Unix sockets: who may connect to one is decided by the permissions of its file.
  std::function<bool(const io::Address&)> trusted;
  /// Called on any loop when a connection is closed because of its sender or its header.
  std::function<void(const ProxyRefusal&)> on_refused;
};

/// Why a server did not start. `where` names the address or the key.
struct StartError {
  io::IoError error = io::IoError::kOther;
  std::string where;
  std::string why;  // of a certificate or key; otherwise empty
};

/// A listening socket that another process has bound.
struct GivenSocket {
  io::Fd fd;
  bool shared = false;  // another process holds it for good and serves what waits in its queue
};
/// The sockets of a server that exist before it starts.
struct GivenSockets {
  std::vector<GivenSocket> listen;      // in the order of config.listen; where unset, it is bound
  std::vector<GivenSocket> tls_listen;  // the same for config.tls.listen
  bool accept = true;  // false: connections wait in the kernel's queue until begin_accepting()
  std::string ticket_keys{};  // of the server that had them: TLS sessions with it resume
};

/// How a server ends its connections.
struct DrainOptions {
  Duration at_most{};     // how long drain() waits
  Duration idle_grace{};  // how long connections without a request stay: the next one is served
};

/// A certificate that a reload has replaced.
struct RotatedCertificate {
  std::string file;
  std::string subject;  // "CN=name"
  std::string expires;  // "2026-12-31T23:59:59Z"
  std::string subject_before;
  std::string expires_before;
};

/// An HTTP server whose memory has a ceiling known before it starts.
///
/// Promises: never holds more than worst_case_bytes(config) (memory_budget.h); allocates nothing
/// after start; when a pool is empty, it refuses and does not grow. drain() and stop() stop
/// accepting, finish what is in flight, and join.
/// Thread-safety: stats() and drain() from any thread; all other members from the owner's thread.
/// Lifetime: the loops must outlive it (or it makes its own). Call stop() before destruction;
/// otherwise the destructor does.
class Server {
 public:
  /// With its own loops, config.loops threads. The configuration must be valid: see validate().
  Server(const ServerConfig& config, HandlerFactory factory);
  /// On the caller's loops, which must run until stop() has returned.
  Server(const ServerConfig& config, io::LoopThreads& loops, HandlerFactory factory);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// Call it before start(). Without it, no new connection is critical.
  void set_critical_peers(CriticalPeer is_critical);
  /// The same.
  void set_proxy_senders(ProxySenders senders);

  /// Binds every address of config.listen that no given socket stands for, and serves. Fails
  /// (kNoMemory, "server.memory_max") if the ceiling is above the configuration's memory_max.
  [[nodiscard]] Result<void, StartError> start(GivenSockets given = {});
  /// After start() with accept = false.
  void begin_accepting();
  /// Its listening sockets again, for another process: those of config.listen, then those of TLS.
  [[nodiscard]] std::vector<io::Fd> duplicate_listeners() const;
  /// Another process serves the queue of this listener (counted as above): drain() leaves it there.
  void share_listener(std::size_t index, bool shared);
  /// What encrypts TLS session tickets, for that process: a secret; empty without TLS.
  [[nodiscard]] std::string ticket_keys() const;
  /// The addresses it listens on, in the order of config.listen.
  [[nodiscard]] std::vector<io::SocketName> addresses() const;
  [[nodiscard]] std::uint16_t port() const;  // of the first TCP address
  /// The same for config.tls.listen.
  [[nodiscard]] std::vector<io::SocketName> tls_addresses() const;
  [[nodiscard]] std::uint16_t tls_port() const;

  /// Reads certificates and keys again, as configured in `next`. New handshakes use them; earlier
  /// sessions can still be resumed. If there is an error, it is returned and nothing changes.
  /// Listen addresses and bounds never change. Returns the certificates that were replaced. From
  /// any thread.
  [[nodiscard]] Result<std::vector<RotatedCertificate>, ConfigError> reload_tls(
      const io::TlsConfig& next);

  /// Stops accepting. Closes idle connections when their grace is over (counted from the first
  /// call), the others after their exchange: `connection: close`, GOAWAY. True if all are closed
  /// within `at_most`; may be called again to wait longer.
  bool drain(const DrainOptions& options);
  bool drain(Duration at_most) { return drain({.at_most = at_most, .idle_grace = {}}); }
  /// Closes all connections and returns when no loop uses this server any more.
  void stop();

  [[nodiscard]] ServerStats stats() const;
  [[nodiscard]] const ServerConfig& config() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::inline v0::inline server
