#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/config/diff.h"
#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/gateway/passed_sockets.h"
#include "weir/experimental/server/server.h"

namespace weir::inline v0::gateway {

/// An error message for the operator. The caller adds the remedy, because it knows how the gateway
/// was configured.
struct GatewayError {
  enum class About : std::uint8_t {
    kListen,
    kTls,
    kAdmin,
    kBudget,
    kUpstream,
    kIdentity,
    kLog,
    kSockets
  };
  About about = About::kListen;
  std::string message;
};

/// What a reload did.
struct ReloadReport {
  std::string refused;                         // why the reload was refused; empty if it was not
  std::vector<config::ConfigChange> applied;   // now in force
  std::vector<config::ConfigChange> deferred;  // need a restart; the old values stay in force
  std::string trouble;                         // what else failed; empty if nothing did
  std::vector<std::string> rotated;            // replaced certificates, one sentence each
  std::vector<std::string> upstreams;  // that came, went or were replaced, one sentence each
  std::vector<std::string> overrides;  // that ended by it, one sentence each

  [[nodiscard]] bool ok() const noexcept { return refused.empty(); }
};

/// The numbers of a status line.
struct GatewayStatus {
  std::uint64_t received = 0;
  std::uint64_t answered = 0;
  std::uint64_t refused = 0;
  std::uint64_t aborted = 0;
  std::uint64_t active = 0;
  std::uint32_t in_flight = 0;    // of the first upstream
  std::uint32_t limit = 0;        // of the first upstream
  std::uint64_t connections = 0;  // of clients
  double memory_usage = 0;
};

/// Why the files of [upstream.tls] cannot be used; empty if they can. Reads them.
[[nodiscard]] std::string upstream_tls_objection(const config::Config& config);
/// The same for the files of [actors].
[[nodiscard]] std::string identity_objection(const config::Config& config);
/// The same for admin.token_file, which nobody else may be able to read.
[[nodiscard]] std::string actions_objection(const config::Config& config);

/// A reverse proxy that admits or refuses each request before its body is read.
///
/// Promises: never holds more memory than gateway_budget() says; allocates nothing per request;
/// every request is answered by its upstream, refused with a reason, or aborted, and counted as
/// exactly one of these. start() takes all listening sockets or none.
/// Thread-safety: one owner. Lifetime: call stop() before destruction; otherwise the destructor
/// does.
class Gateway {
 public:
  /// `config` must be valid: validate() is empty (asserted).
  explicit Gateway(const config::Config& config);
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway();

  /// Binds the addresses that no passed socket stands for.
  [[nodiscard]] Result<void, GatewayError> start(PassedSockets passed = {});
  /// For each of the sockets that a predecessor passed: whether it is used.
  [[nodiscard]] const std::vector<bool>& taken() const noexcept;
  /// Begins to serve what waits at sockets of a predecessor.
  void begin_accepting();

  /// The addresses that clients connect to, as text, in the order of the configuration.
  [[nodiscard]] std::vector<std::string> listening() const;
  /// The same for TLS.
  [[nodiscard]] std::vector<std::string> tls_listening() const;
  /// The address of the admin endpoint; empty if there is none.
  [[nodiscard]] std::string admin_listening() const;

  /// Applies the live options of `next` and reports which others need a restart. `next` must be
  /// valid.
  ReloadReport reload(const config::Config& next);
  /// How an operator's action asks for a reload: called on the thread of the admin endpoint, to
  /// cause a reload() on the owner's. Returns why there can be none; empty if there will be one.
  /// Before start().
  void on_reload_asked(std::function<std::string()> read_again);
  /// [admin] as it is in force now.
  [[nodiscard]] AdminConfig admin_config() const;
  /// Counts a reload whose file could not be read.
  void note_failed_reload() noexcept;

  /// Writes a line (without newline) to standard error. Never blocks on its reader; writes nothing
  /// before start() and after stop().
  void say(std::string_view line) noexcept;

  /// Reopens the access log after its file was moved. Returns the error; empty on success.
  [[nodiscard]] std::string reopen_logs();

  /// Its listening sockets again, for a process that takes over; empty if it drains.
  [[nodiscard]] std::vector<PassedSocket> listening_sockets() const;
  /// What its TLS session tickets are encrypted with, for that process: a secret; empty without
  /// TLS.
  [[nodiscard]] std::string ticket_keys() const;
  /// That process holds these sockets, in that order: drain() leaves what waits at them to it.
  void share_sockets(const std::vector<bool>& shared);

  /// Only sets readiness to "draining", so that load balancers see it before drain().
  void announce_drain() noexcept;
  /// Stops accepting and lets requests finish; readiness becomes "draining". True if no client is
  /// left before the time is over. May be called again to wait longer.
  bool drain(const DrainOptions& options);
  bool drain(Duration at_most) { return drain({.at_most = at_most, .idle_grace = {}}); }
  /// As drain(), after a process has taken over: the admin endpoint, which that process serves now,
  /// is drained, too.
  bool drain_everything(const DrainOptions& options);
  void stop();

  [[nodiscard]] GatewayStatus status() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::inline v0::gateway
