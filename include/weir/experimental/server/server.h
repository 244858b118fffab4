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
#include "weir/experimental/server/server_config.h"
#include "weir/experimental/server/stats.h"
#include "weir/experimental/server/stream.h"

namespace weir::inline v0::server {

/// Where one handler lives.
struct HandlerPlace {
  io::Loop& loop;
  std::uint32_t index = 0;  // of the loop
};
/// Called once per loop, before it serves.
using HandlerFactory = std::function<std::unique_ptr<Handler>(const HandlerPlace&)>;

/// Whether a newcomer from there is critical: it may take the reserved places, and is not shed.
/// Called on the accepting loop.
using CriticalPeer = std::function<bool(const io::Address&)>;

/// Why a server did not start. `where` names the address or the key.
struct StartError {
  io::IoError error = io::IoError::kOther;
  std::string where;
  std::string why;  // of a certificate or key; else the error says it all
};

/// An HTTP server whose memory has a ceiling known before it starts.
///
/// Promises: holds never more than worst_case_bytes(config) (memory_budget.h); allocates nothing
/// after start; refuses by answering, never by growing. Stops accepting, finishes what is in flight
/// and joins on drain() + stop().
/// Thread-safety: stats() and drain() from any thread; all else from its owner's.
/// Lifetime: the loops outlive it (or it makes its own). stop() before it dies, or its destructor
/// does.
class Server {
 public:
  /// With its own loops, config.loops threads. The configuration must be valid: see validate().
  Server(const ServerConfig& config, HandlerFactory factory);
  /// On loops of the caller, which must run for stop() to return.
  Server(const ServerConfig& config, io::LoopThreads& loops, HandlerFactory factory);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// Before start(). Without it nobody is critical when it connects.
  void set_critical_peers(CriticalPeer is_critical);

  /// Binds every address of config.listen, takes over `inherited`, and serves. Refuses (kNoMemory,
  /// "server.memory_max") when the ceiling is above the configuration's memory_max.
  [[nodiscard]] Result<void, StartError> start(std::vector<io::Fd> inherited = {});
  /// Where it listens, in the order of config.listen, then the inherited ones.
  [[nodiscard]] std::vector<io::SocketName> addresses() const;
  [[nodiscard]] std::uint16_t port() const;  // of the first TCP address
  /// The same for config.tls.listen.
  [[nodiscard]] std::vector<io::SocketName> tls_addresses() const;
  [[nodiscard]] std::uint16_t tls_port() const;

  /// Reads certificates and keys again, as `next` says; handshakes from now on use them, and
  /// sessions resume across it. On a fault, which is named, everything stays as it was. Where to
  /// listen, and the bounds, stay as they are in any case. From any thread.
  [[nodiscard]] Result<void, ConfigError> reload_tls(const io::TlsConfig& next);

  /// Stops accepting; each connection closes when its exchange is over, idle ones at once. True
  /// when none is left before the time is over.
  bool drain(Duration at_most);
  /// Closes what is left and returns when nothing of this server is on any loop.
  void stop();

  [[nodiscard]] ServerStats stats() const;
  [[nodiscard]] const ServerConfig& config() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::inline v0::server

namespace weir::inline v0 {
using server::CriticalPeer;
using server::HandlerFactory;
using server::HandlerPlace;
using server::Server;
using server::StartError;
}  // namespace weir::inline v0
