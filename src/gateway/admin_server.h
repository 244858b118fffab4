#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weir/experimental/config/weir_config.h"
#include "weir/experimental/server/server.h"

namespace weir::inline v0::gateway {

/// One page of the admin endpoint.
struct AdminPage {
  std::uint16_t status = 200;
  std::string_view content_type = "application/json";
  std::string body;
};

struct AdminRequest {
  std::string_view method;
  std::string_view path;   // without query
  std::string_view query;  // without '?'
};
using AdminPages = std::function<AdminPage(const AdminRequest&)>;

/// The operator's own small HTTP server: one loop, few connections, pages made when asked for. It
/// allocates, up to a bound: pages that nobody reads do not add up, a further one is answered with
/// 503. It shares nothing with the requests of clients but the counters it reads.
///
/// Thread-safety: `pages` is called on its loop's thread. Lifetime: stop() before it dies.
class AdminServer {
 public:
  AdminServer(const config::Config& config, AdminPages pages);

  [[nodiscard]] Result<void, StartError> start() { return server_.start(); }
  [[nodiscard]] std::string address() const;
  void stop() { server_.stop(); }

 private:
  Server server_;
};

/// The bounds of that server.
[[nodiscard]] ServerConfig admin_server_config(const config::Config& config);
/// Of pages that were made and not sent yet.
[[nodiscard]] std::uint64_t admin_pages_bytes_max(const config::Config& config) noexcept;
/// The most memory it takes, beside what the process has in any case.
[[nodiscard]] std::uint64_t admin_worst_case_bytes(const config::Config& config);

/// The value of a query parameter, percent-decoded; `fallback` when it is not there.
[[nodiscard]] std::string query_value(std::string_view query, std::string_view name,
                                      std::string_view fallback = {});

}  // namespace weir::inline v0::gateway
