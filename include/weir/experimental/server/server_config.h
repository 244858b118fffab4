#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"
#include "weir/base/net_address.h"
#include "weir/base/time.h"
#include "weir/experimental/http/h2_config.h"
#include "weir/experimental/http/limits.h"
#include "weir/experimental/io/tls_config.h"
#include "weir/policy/pressure.h"

namespace weir::inline v0::inline server {

/// All bounds of the server: those of one message, when pressure begins, and the others. All sizes
/// are fixed at start; the defaults suit a 1 GB machine.
///
/// Thread-safety: a value. validate() returns all errors, with the keys of the configuration file.
struct ServerConfig : http::HttpLimits, PressureConfig {
  ServerConfig() noexcept {
    stall_grace = std::chrono::seconds(1);
    // As large as the window of one stream may become. It holds no memory: bytes go to a handler or
    // into a lease as they arrive.
    http2.connection_window_bytes = 1024 * 1024;
  }

  std::vector<std::string> listen;  // "127.0.0.1:8080", "[::]:8080", ":0", "unix:/run/weir.sock"
  std::vector<std::string> proxy_protocol;  // those of all listeners that require a PROXY header
  std::uint32_t loops = 0;                  // threads; 0: one per core
  io::TlsConfig tls;                        // further addresses, for TLS

  // Connections.
  std::uint32_t max_connections = 1536;
  std::uint32_t connections_per_source_max = 0;  // of one IPv4 address or IPv6 /64; 0: any number
  std::uint32_t conn_encrypted_buf_size = 32 * 1024;  // of the TLS library, for records in use
  std::uint32_t conn_decrypted_buf_size = 32 * 1024;
  std::uint32_t handshake_slots = 64;

  // Output: buffers shared by all connections, and the most one connection may hold.
  std::uint32_t tcp_write_buffer_pool_size = 3072;
  std::uint32_t tcp_write_buffer_size = 32 * 1024;
  std::uint32_t write_buffers_per_connection = 8;

  // Memory of requests.
  std::uint32_t arena_pool_size = 64;
  std::uint32_t arena_size = 4 * 1024 * 1024;
  std::uint32_t streams_max = 2048;           // requests at once, of every protocol
  std::uint32_t tunnels_max = 512;            // of them, those that became tunnels
  std::uint32_t body_lease_pool_size = 256;   // HTTP/2 stream windows need a lease …
  std::uint32_t body_lease_size = 64 * 1024;  // … of this size

  // Reserved for critical requests.
  std::uint32_t reserved_connections = 8;
  std::uint32_t reserved_write_buffers = 8;
  std::uint32_t reserved_arenas = 1;
  std::uint32_t reserved_streams = 8;
  std::uint32_t reserved_handshakes = 4;

  // Deadlines.
  Duration header_timeout = std::chrono::seconds(10);  // first byte to end of head, absolute
  Duration body_timeout = std::chrono::seconds(10);    // each such window must reach …
  std::uint32_t body_min_rate = 512;                   // … this many bytes per second
  Duration write_timeout = std::chrono::seconds(10);   // the same for responses
  std::uint32_t write_min_rate = 512;
  Duration idle_timeout = std::chrono::seconds(60);          // between requests
  Duration tunnel_idle_timeout = std::chrono::seconds(300);  // silent in both directions
  Duration linger_timeout = std::chrono::seconds(2);         // reading after the last byte was sent
  std::uint32_t drain_bytes_max = 64 * 1024;      // unread body discarded to keep a connection
  std::uint64_t requests_per_connection_max = 0;  // 0: any number
  bool allow_half_close = false;  // a client that ended its side still gets its response

  // HTTP/2, by prior knowledge or by ALPN, and the bounds of one connection.
  bool http2_enabled = true;
  std::uint32_t http2_sessions_max = 0;  // 0: as many as connections, at most 1024
  http::H2Limits http2;

  // Sockets.
  std::uint32_t socket_receive_buffer_size = 0;  // 0: the kernel's choice
  std::uint32_t socket_send_buffer_size = 0;
  Duration tcp_user_timeout = std::chrono::seconds(30);
  std::uint32_t listen_backlog = 4096;
  std::uint32_t accept_budget = 64;  // per turn

  Duration tick = std::chrono::milliseconds(100);     // how often pressure is evaluated
  Duration sweep_interval = std::chrono::seconds(5);  // unused memory goes back to the kernel
  std::uint64_t memory_max = 0;                       // the ceiling must not exceed it; 0: not set

  bool operator==(const ServerConfig&) const = default;

  [[nodiscard]] std::uint32_t http2_sessions() const noexcept {
    if (!http2_enabled) return 0;
    if (http2_sessions_max > 0) return http2_sessions_max;
    return max_connections < 1024 ? max_connections : 1024;  // a session costs 116 KB
  }
  /// Whether connections to this address must begin with a PROXY header.
  [[nodiscard]] bool requires_proxy_header(std::string_view address) const {
    return std::any_of(proxy_protocol.begin(), proxy_protocol.end(),
                       [&](const std::string& one) { return same_address(one, address); });
  }
  /// HTTP/2 sessions reserved for critical connections, and body leases reserved for critical
  /// streams: as many as there are of those, but at most half of the pool.
  [[nodiscard]] std::uint32_t reserved_sessions() const noexcept {
    const std::uint32_t half = http2_sessions() / 2;
    return reserved_connections < half ? reserved_connections : half;
  }
  [[nodiscard]] std::uint32_t reserved_body_leases() const noexcept {
    const std::uint32_t half = http2_enabled ? body_lease_pool_size / 2 : 0;
    return reserved_streams < half ? reserved_streams : half;
  }
  /// Tunnels over HTTP/2, each with a body lease as long as it lasts: half of the pool, so that
  /// bodies find one, and those that are reserved.
  [[nodiscard]] std::uint32_t http2_tunnels() const noexcept {
    return http2_enabled ? (body_lease_pool_size + 1) / 2 + reserved_body_leases() : 0;
  }
  /// Write buffers that one connection may hold: at most what non-critical requests may use.
  [[nodiscard]] std::uint32_t write_quota() const noexcept {
    const std::uint32_t pool = tcp_write_buffer_pool_size - reserved_write_buffers;
    return write_buffers_per_connection < pool ? write_buffers_per_connection : pool;
  }
  /// Whether connections begin in small buffers: half a ClientHello, or a PROXY header.
  [[nodiscard]] bool uses_stages() const noexcept {
    return tls.enabled() || !proxy_protocol.empty();
  }
  /// The memory that the TLS library needs for all handshake slots and all idle connections.
  [[nodiscard]] std::uint64_t tls_memory_least() const noexcept {
    return max_connections * io::kTlsIdleBytes + handshake_slots * io::kTlsHandshakeBytes +
           io::kTlsFixedBytes;
  }

  [[nodiscard]] ConfigErrors validate() const;
  /// Settings that are allowed but not recommended, in the same form.
  [[nodiscard]] ConfigErrors warnings() const;

 private:
  /// Two spellings of one address are the same: ":80" and "*:80".
  [[nodiscard]] static bool same_address(std::string_view a, std::string_view b) {
    if (a == b) return true;
    const auto first = parse_net_address(a);
    const auto second = parse_net_address(b);
    return first && second && *first == *second;
  }
  void check_proxy_protocol(ConfigErrors& errors) const;
};

inline void ServerConfig::check_proxy_protocol(ConfigErrors& errors) const {
  for (const std::string& text : proxy_protocol) {
    const auto same = [&](const std::string& one) { return same_address(one, text); };
    if (std::any_of(listen.begin(), listen.end(), same)) continue;
    if (std::any_of(tls.listen.begin(), tls.listen.end(), same)) continue;
    add_error(errors, "listen.proxy_protocol", '"' + text + '"',
              "an address of listen.addresses or tls.listen");
  }
}

inline ConfigErrors ServerConfig::validate() const {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  constexpr std::uint32_t kKilo = 1024;
  constexpr std::uint32_t kMega = 1024 * kKilo;
  constexpr std::uint32_t kCountMax = 1'000'000;
  ConfigErrors errors;
  const auto count = [&](const char* key, std::uint32_t value, std::uint32_t low,
                         std::uint32_t high) { check_range(errors, key, value, low, high); };
  const auto time = [&](const char* key, Duration value) {
    check_range(errors, key, value, Duration(milliseconds(1)), Duration(hours(24)));
  };
  count("server.loops", loops, 0, 1024);
  check_proxy_protocol(errors);
  count("server.max_connections", max_connections, 1, kCountMax);
  count("server.connections_per_source_max", connections_per_source_max, 0, kCountMax);
  count("server.conn_encrypted_buf_size", conn_encrypted_buf_size, 17 * kKilo, kMega);
  count("server.conn_decrypted_buf_size", conn_decrypted_buf_size, 4 * kKilo, kMega);
  count("server.handshake_slots", handshake_slots, 1, kCountMax);
  count("server.tcp_write_buffer_pool_size", tcp_write_buffer_pool_size, 1, kCountMax);
  count("server.tcp_write_buffer_size", tcp_write_buffer_size, 4 * kKilo, kMega);
  count("server.write_buffers_per_connection", write_buffers_per_connection, 1, 1024);
  count("server.arena_pool_size", arena_pool_size, 0, kCountMax);
  count("server.arena_size", arena_size, 4 * kKilo, 1024 * kMega);
  count("server.streams_max", streams_max, 1, kCountMax);
  count("server.tunnels_max", tunnels_max, 0, kCountMax);
  count("server.body_lease_pool_size", body_lease_pool_size, 0, kCountMax);
  append_errors(errors, "server.", PressureConfig::validate());
  time("server.stall_grace_ms", stall_grace);
  count("server.reserved_connections", reserved_connections, 0, max_connections - 1);
  count("server.reserved_write_buffers", reserved_write_buffers, 0, tcp_write_buffer_pool_size - 1);
  count("server.reserved_arenas", reserved_arenas, 0, arena_pool_size);
  count("server.reserved_streams", reserved_streams, 0, streams_max - 1);
  count("server.reserved_handshakes", reserved_handshakes, 0, handshake_slots - 1);
  time("server.header_timeout_ms", header_timeout);
  time("server.body_timeout_ms", body_timeout);
  time("server.write_timeout_ms", write_timeout);
  time("server.idle_timeout_ms", idle_timeout);
  time("server.tunnel_idle_timeout_ms", tunnel_idle_timeout);
  time("server.linger_timeout_ms", linger_timeout);
  append_errors(errors, "server.", HttpLimits::validate(conn_decrypted_buf_size));
  count("server.listen_backlog", listen_backlog, 1, 65535);
  count("server.accept_budget", accept_budget, 1, 65535);
  time("server.tick_ms", tick);
  time("server.sweep_interval_ms", sweep_interval);
  // A client may use the protocol's default window before it has read our SETTINGS.
  count("server.body_lease_size", body_lease_size, 64 * kKilo, 64 * kMega);
  count("http2.sessions_max", http2_sessions_max, 0, kCountMax);
  for (ConfigError& error : http2.validate()) errors.push_back(std::move(error));
  append_errors(errors, "tls.", tls.validate());
  if (tls.memory_budget > 0 && tls.memory_budget < tls_memory_least()) {
    add_error(errors, "tls.memory_budget", std::to_string(tls.memory_budget),
              "0, or at least " + std::to_string(tls_memory_least()) +
                  ": every handshake slot and every connection at rest");
  }
  return errors;
}

inline ConfigErrors ServerConfig::warnings() const {
  ConfigErrors found;
  if (tcp_write_buffer_pool_size < 2 * std::uint64_t{max_connections}) {
    add_error(found, "server.tcp_write_buffer_pool_size",
              std::to_string(tcp_write_buffer_pool_size),
              "2 × max_connections (" + std::to_string(2 * std::uint64_t{max_connections}) +
                  ") or more, or large responses will wait for each other");
  }
  return found;
}

}  // namespace weir::inline v0::inline server
