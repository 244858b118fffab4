#include "admin_server.h"

#include <utility>

#include "weir/experimental/server/memory_budget.h"

#include "admin_handler.h"
#include "override_table.h"
#include "percent_code.h"

namespace weir::inline v0::gateway {
namespace {

constexpr std::uint64_t kKilo = 1024;

std::string percent_decoded(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::optional<char> meant = percent_code(text);
    out += meant ? *meant : text.front() == '+' ? ' ' : text.front();
    text.remove_prefix(meant ? 3 : 1);
  }
  return out;
}

}  // namespace

std::string query_value(std::string_view query, std::string_view name, std::string_view fallback) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) != name) continue;
    return percent_decoded(pair.substr(std::min(equals + 1, pair.size())));
  }
  return std::string(fallback);
}

ServerConfig admin_server_config(const config::Config& config) {
  using std::chrono::seconds;
  ServerConfig admin;
  if (config.admin.listen) admin.listen = {to_string(*config.admin.listen)};
  if (config.admin.actions == ActionsMode::kSocket) {
    admin.listen.push_back("unix:" + config.admin.actions_socket);
  }
  admin.loops = 1;
  admin.max_connections = 64;
  admin.reserved_connections = 0;
  admin.conn_decrypted_buf_size = 16 * 1024;
  admin.head_bytes_max = 8 * 1024;
  admin.uri_bytes_max = 4 * 1024;
  admin.tcp_write_buffer_pool_size = 128;
  admin.tcp_write_buffer_size = 16 * 1024;
  admin.reserved_write_buffers = 0;
  admin.arena_pool_size = 0;
  admin.reserved_arenas = 0;
  admin.pending_stream_pool_size = 0;
  admin.body_lease_pool_size = 8;  // for requests with a body, which are refused
  admin.http2_sessions_max = 8;
  admin.streams_max = 64;
  admin.reserved_streams = 0;
  admin.backpressure_list_max = 64;
  admin.socket_send_buffer_size = 64 * 1024;
  admin.idle_timeout = seconds(60);
  admin.header_timeout = seconds(5);
  admin.write_timeout = seconds(5);
  return admin;
}

namespace {

/// Upper bound of a page: /metrics has 12 KB per upstream and 1 KB per endpoint, /endpoints 900
/// bytes per endpoint and 400 per source, each source having as many endpoints as it may,
/// /config the text of each route, /actors up to 2000 rows.
std::uint64_t largest_page(const config::Config& config) noexcept {
  std::uint64_t endpoints = 0;
  for (const upstream::UpstreamConfig& upstream : config.upstreams)
    for (const upstream::SourceSpec& spec : upstream.endpoints) {
      endpoints += 2 * upstream::endpoints_max(spec, config.dns.records_max);
    }
  return (512 + config.upstreams.size() * 16 + endpoints + config.routes.size()) * kKilo;
}

}  // namespace

std::uint64_t admin_pages_bytes_max(const config::Config& config) noexcept {
  return 3072 * kKilo + largest_page(config);
}

std::uint64_t admin_message_bytes_max(const config::Config& config) {
  const std::uint64_t upstreams = config.upstreams.size() + config.reload.upstreams_spare;
  std::uint64_t endpoints = 0;  // in the text of the configuration; a reload may add as many
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    for (const upstream::SourceSpec& spec : upstream.endpoints) {
      constexpr std::uint64_t kBeside = 12;  // quotes with their backslashes, a comma, a line end
      endpoints += 2 * (spec.to_string().size() + kBeside);
    }
  }
  return (192 + 2 * upstreams + config.routes.size()) * kKilo + endpoints;
}

std::uint64_t admin_worst_case_bytes(const config::Config& config) {
  const ServerConfig server = admin_server_config(config);
  const MemoryBudget budget = memory_budget(server);
  std::uint64_t total =
      admin_pages_bytes_max(config) + server.streams_max * AdminHandler::kSmallPage;
  // A watcher has two messages, and the one that is made; a kept request its head and its body.
  total += (2 * AdminWatchers::kMost + 4) * admin_message_bytes_max(config);
  total += AdminHandler::kBodiesMax * (server.head_bytes_max + kAdminBodyMax);
  // While a page is built: a string that grows by doubling, and the tree it is printed from.
  total += 4 * largest_page(config);
  // The overrides in force, a copy for who looks at them, one before and one after a change.
  constexpr std::size_t kOverrideBytes = 8 * kKilo;  // with the texts of a route
  if (config.admin.actions != ActionsMode::kOff) total += 4 * OverrideTable::kMost * kOverrideBytes;
  for (const MemoryAddend& addend : budget.addends) {
    if (addend.holder != kFixedHolder) total += addend.bytes();
  }
  return total;
}

AdminServer::AdminServer(const config::Config& config, AdminWork work)
    : server_(admin_server_config(config),
              [work = std::move(work),
               bounds = AdminHandler::Bounds{.pages_bytes = admin_pages_bytes_max(config),
                                             .message_bytes = admin_message_bytes_max(config)}](
                  const HandlerPlace& place) {
                return std::make_unique<AdminHandler>(work, bounds, place.loop);
              }) {}

std::string AdminServer::address() const {
  const auto names = server_.addresses();
  return names.empty() ? std::string() : names.front().to_string();
}

}  // namespace weir::inline v0::gateway
