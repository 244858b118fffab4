#include "gateway/admin_server.h"

#include <utility>

#include "weir/base/net_address.h"
#include "weir/server/stream.h"

namespace weir::inline v0 {
namespace {

/// Makes a page when the head is there and sends it as fast as the client takes it.
class AdminHandler final : public Handler {
 public:
  explicit AdminHandler(AdminPages pages) : pages_(std::move(pages)) {}

  void on_headers(ServerStream& stream, const ServerRequest& request) override {
    const std::string_view target = request.meta.path;
    const std::size_t mark = std::min(target.find('?'), target.size());
    auto reply = std::make_unique<Reply>();
    reply->page = pages_({.method = request.meta.method,
                          .path = target.substr(0, mark),
                          .query = target.substr(std::min(mark + 1, target.size()))});
    stream.user_data = reply.release();
    send(stream);
  }
  void on_writable(ServerStream& stream) override { send(stream); }
  void on_finished(ServerStream& stream) override { drop(stream); }
  void on_abort(ServerStream& stream, CloseReason) override { drop(stream); }

 private:
  struct Reply {
    AdminPage page;
    std::size_t sent = 0;
    bool begun = false;
  };

  static void send(ServerStream& stream) {
    auto* reply = static_cast<Reply*>(stream.user_data);
    if (reply == nullptr) return;
    const std::string_view body = reply->page.body;
    if (!reply->begun) {
      const std::array<ResponseField, 2> fields = {
          ResponseField{.name = "content-type", .value = reply->page.content_type},
          ResponseField{.name = "cache-control", .value = "no-store"}};
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
  static void drop(ServerStream& stream) {
    const std::unique_ptr<Reply> gone(static_cast<Reply*>(stream.user_data));
    stream.user_data = nullptr;
  }

  AdminPages pages_;
};

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_value(text[i + 2]) : -1;
    if (low >= 0) {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
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

ServerConfig admin_server_config(const Config& config) {
  using std::chrono::seconds;
  ServerConfig admin;
  if (config.admin.listen) admin.listen = {to_string(*config.admin.listen)};
  admin.loops = 1;
  admin.max_connections = 32;
  admin.reserved_connections = 0;
  admin.conn_decrypted_buf_size = 16 * 1024;
  admin.head_bytes_max = 8 * 1024;
  admin.uri_bytes_max = 4 * 1024;
  admin.tcp_write_buffer_pool_size = 64;
  admin.reserved_write_buffers = 0;
  admin.arena_pool_size = 0;
  admin.reserved_arenas = 0;
  admin.pending_stream_pool_size = 0;
  admin.streams_max = 32;
  admin.reserved_streams = 0;
  admin.backpressure_list_max = 32;
  admin.idle_timeout = seconds(60);
  admin.header_timeout = seconds(5);
  return admin;
}

AdminServer::AdminServer(const Config& config, AdminPages pages)
    : server_(admin_server_config(config), [pages = std::move(pages)](const HandlerPlace&) {
        return std::make_unique<AdminHandler>(pages);
      }) {}

std::string AdminServer::address() const {
  const auto names = server_.addresses();
  return names.empty() ? std::string() : names.front().to_string();
}

}  // namespace weir::inline v0
