#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/config/diff.h"
#include "weir/experimental/config/weir_config.h"

namespace weir::inline v0::gateway {

/// What went wrong, in words for the operator. Whoever knows how the gateway was configured adds
/// what to do about it.
struct GatewayError {
  enum class About : std::uint8_t { kListen, kTls, kAdmin, kBudget, kUpstream, kLog };
  About about = About::kListen;
  std::string message;
};

/// What a reload did.
struct ReloadReport {
  std::string refused;  // why nothing was changed; empty when something may have
  std::vector<config::ConfigChange> applied;   // in force now
  std::vector<config::ConfigChange> deferred;  // need a restart: the old values stay
  std::string trouble;                         // what did not work beside; empty when all did

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

/// A reverse proxy that admits or refuses each request before its body is read.
///
/// Promises: holds never more memory than gateway_budget() says; allocates nothing per request;
/// every request is answered by its upstream, refused with a reason, or aborted, and counted as
/// exactly one of these. start() takes over listening sockets at once or not at all.
/// Thread-safety: one owner. Lifetime: stop() before it dies, or its destructor does.
class Gateway {
 public:
  /// `config` must be valid: validate() is empty (asserted).
  explicit Gateway(const config::Config& config);
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway();

  [[nodiscard]] Result<void, GatewayError> start();

  /// Where clients connect, as text, in the order of the configuration.
  [[nodiscard]] std::vector<std::string> listening() const;
  /// The same, where TLS is spoken.
  [[nodiscard]] std::vector<std::string> tls_listening() const;
  /// Where the admin endpoint is; empty when there is none.
  [[nodiscard]] std::string admin_listening() const;

  /// Puts the live options of `next` in force and says which others need a restart. `next` must be
  /// valid.
  ReloadReport reload(const config::Config& next);
  /// A reload that could not be read; counted.
  void note_failed_reload() noexcept;

  /// Stops accepting and lets requests finish; readiness turns to "draining". True when no client
  /// is left before the time is over. May be called again to go on waiting.
  bool drain(Duration at_most);
  void stop();

  [[nodiscard]] GatewayStatus status() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::inline v0::gateway
