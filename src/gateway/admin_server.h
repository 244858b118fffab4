#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/server/server.h"

#include "admin_request.h"

namespace weir::inline v0::gateway {

/// A small HTTP server for the operator: one loop, few connections, pages made on request. It
/// allocates up to a bound; beyond it, a page is answered with 503. It shares only the counters
/// that it reads with the requests of clients.
///
/// Thread-safety: `work` is called on its loop's thread. Lifetime: stop() before destruction.
class AdminServer {
 public:
  AdminServer(const config::Config& config, AdminWork work);

  [[nodiscard]] Result<void, StartError> start(GivenSockets given = {}) {
    return server_.start(std::move(given));
  }
  /// The server itself: for its listening socket.
  [[nodiscard]] Server& server() noexcept { return server_; }
  [[nodiscard]] std::string address() const;
  void stop() { server_.stop(); }

 private:
  Server server_;
};

/// The bounds of that server.
[[nodiscard]] ServerConfig admin_server_config(const config::Config& config);
/// The most bytes of pages that were made and not sent yet.
[[nodiscard]] std::uint64_t admin_pages_bytes_max(const config::Config& config) noexcept;
/// The most bytes of one message for a watcher.
[[nodiscard]] std::uint64_t admin_message_bytes_max(const config::Config& config);
/// The most memory it uses, in addition to what the process uses anyway.
[[nodiscard]] std::uint64_t admin_worst_case_bytes(const config::Config& config);

/// The value of a query parameter, percent-decoded; `fallback` if there is none.
[[nodiscard]] std::string query_value(std::string_view query, std::string_view name,
                                      std::string_view fallback = {});

}  // namespace weir::inline v0::gateway
