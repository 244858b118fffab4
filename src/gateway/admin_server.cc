#include "admin_server.h"

#include <utility>

#include "weir/base/intrusive_list.h"
#include "weir/experimental/server/memory_budget.h"
#include "weir/experimental/server/stream.h"

#include "percent_code.h"

namespace weir::inline v0::gateway {
namespace {

constexpr std::uint64_t kKilo = 1024;
// Smaller pages are not refused for their bytes; the places bound their number.
constexpr std::size_t kSmallPage = 2 * kKilo;

/// What a monitor asks regularly has places of its own.
enum class Kind : std::uint8_t { kHealth, kMetrics, kOther };

Kind kind_of(std::string_view path) noexcept {
  if (path == "/healthz" || path == "/readyz") return Kind::kHealth;
  return path == "/metrics" ? Kind::kMetrics : Kind::kOther;
}

/// Builds a page when the head is complete and sends it as fast as the client reads.
///
/// Places for large pages that are not sent yet are bounded, /metrics has its own, and both
/// together are fewer than the connections: a client that gets no page is idle and makes room.
/// When the places of its kind or the bytes are used up, the oldest page that has not been read
/// within kReadGrace is cut off; without such a one the new request gets 503. What asks for the
/// health needs no place.
class AdminHandler final : public Handler {
 public:
  AdminHandler(AdminPages pages, std::uint64_t bytes_max)
      : pages_(std::move(pages)), bytes_max_(bytes_max) {}

  void on_headers(ServerStream& stream, const ServerRequest& request) override {
    const std::string_view target = request.meta.path;
    const std::size_t mark = std::min(target.find('?'), target.size());
    const std::string_view path = target.substr(0, mark);
    auto reply = std::make_unique<Reply>();
    reply->stream = &stream;
    reply->since = stream.loop().now();
    reply->kind = kind_of(path);
    if (!has_place(*reply)) {
      reply->page = busy_page();
    } else {
      reply->page = pages_({.method = request.meta.method,
                            .path = path,
                            .query = target.substr(std::min(mark + 1, target.size())),
                            .host = request.meta.authority});
      if (!has_bytes(*reply)) reply->page = busy_page();
    }
    reply->page.body.shrink_to_fit();
    bytes_ += reply->page.body.size();
    unsent_.push_back(*reply);
    ++count_of(*reply);
    stream.user_data = reply.release();
    send(stream);
  }
  void on_writable(ServerStream& stream) override { send(stream); }
  void on_finished(ServerStream& stream) override { drop(stream); }
  void on_abort(ServerStream& stream, CloseReason) override { drop(stream); }

 private:
  static constexpr std::array<std::uint32_t, 3> kPlaces = {UINT32_MAX, 6, 12};  // by kind
  static constexpr Duration kReadGrace = std::chrono::milliseconds(500);

  struct Reply {
    AdminPage page;
    ServerStream* stream = nullptr;
    TimePoint since{};
    std::size_t sent = 0;
    ListHook<Reply> hook;
    Kind kind = Kind::kOther;
    bool begun = false;
  };

  static AdminPage busy_page() {
    return {.status = 503,
            .content_type = "text/plain",
            .body = "pages asked for before are not read yet; try again\n"};
  }
  [[nodiscard]] std::uint32_t& count_of(const Reply& reply) noexcept {
    return unsent_of_[static_cast<std::size_t>(reply.kind)];
  }
  [[nodiscard]] bool has_place(const Reply& reply) {
    while (count_of(reply) >= kPlaces[static_cast<std::size_t>(reply.kind)]) {
      if (!cut_oldest(reply, true)) return false;
    }
    return true;
  }
  [[nodiscard]] bool has_bytes(const Reply& reply) {
    const std::size_t size = reply.page.body.size();
    while (size > kSmallPage && bytes_ + size > bytes_max_) {
      if (!cut_oldest(reply, reply.kind == Kind::kOther)) return false;  // metrics cut any
    }
    return true;
  }
  /// Of its kind, or of both.
  bool cut_oldest(const Reply& newcomer, bool same_kind) {
    for (Reply& old : unsent_) {
      if (same_kind && old.kind != newcomer.kind) continue;
      if (newcomer.since - old.since < kReadGrace) return false;  // all others are younger
      ServerStream& stream = *old.stream;
      drop(stream);
      stream.reset();
      return true;
    }
    return false;
  }

  static void send(ServerStream& stream) {
    auto* reply = static_cast<Reply*>(stream.user_data);
    if (reply == nullptr) return;
    const std::string_view body = reply->page.body;
    if (!reply->begun) {
      // A browser must not guess the content type, load other resources, or show it in a frame.
      const std::array<ResponseField, 5> fields = {
          ResponseField{.name = "content-type", .value = reply->page.content_type},
          ResponseField{.name = "cache-control", .value = "no-store"},
          ResponseField{.name = "x-content-type-options", .value = "nosniff"},
          ResponseField{.name = "referrer-policy", .value = "no-referrer"},
          ResponseField{.name = "content-security-policy",
                        .value = "default-src 'none'; base-uri 'none'; form-action 'none'; "
                                 "frame-ancestors 'none'"}};
      const SendResult sent = stream.send_headers(
          {.status = reply->page.status, .fields = fields, .content_length = body.size()},
          body.empty());
      if (sent != SendResult::kSent) return;
      reply->begun = true;
    }
    if (reply->sent < body.size()) {
      reply->sent += stream.send_data(body.substr(reply->sent), true);
    }
  }
  void drop(ServerStream& stream) {
    const std::unique_ptr<Reply> gone(static_cast<Reply*>(stream.user_data));
    stream.user_data = nullptr;
    if (!gone) return;
    bytes_ -= gone->page.body.size();
    --count_of(*gone);
    unsent_.remove(*gone);
  }

  AdminPages pages_;
  const std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;                    // of all pages not sent yet
  std::array<std::uint32_t, 3> unsent_of_{};   // by kind
  IntrusiveList<Reply, &Reply::hook> unsent_;  // oldest first
};

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
  admin.loops = 1;
  admin.max_connections = 64;
  admin.reserved_connections = 0;
  admin.conn_decrypted_buf_size = 16 * 1024;
  admin.head_bytes_max = 8 * 1024;
  admin.uri_bytes_max = 4 * 1024;
  admin.tcp_write_buffer_pool_size = 128;
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
  return 4096 * kKilo + largest_page(config);
}

std::uint64_t admin_worst_case_bytes(const config::Config& config) {
  const ServerConfig server = admin_server_config(config);
  const MemoryBudget budget = memory_budget(server);
  std::uint64_t total = admin_pages_bytes_max(config) + server.streams_max * kSmallPage;
  // While a page is built: a string that grows by doubling, and the tree it is printed from.
  total += 4 * largest_page(config);
  for (const MemoryAddend& addend : budget.addends) {
    if (addend.holder != kFixedHolder) total += addend.bytes();
  }
  return total;
}

AdminServer::AdminServer(const config::Config& config, AdminPages pages)
    : server_(admin_server_config(config),
              [pages = std::move(pages), most = admin_pages_bytes_max(config)](
                  const HandlerPlace&) { return std::make_unique<AdminHandler>(pages, most); }) {}

std::string AdminServer::address() const {
  const auto names = server_.addresses();
  return names.empty() ? std::string() : names.front().to_string();
}

}  // namespace weir::inline v0::gateway
