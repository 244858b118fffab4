#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weir/base/config_error.h"
#include "weir/base/time.h"
#include "weir/experimental/io/dns_config.h"
#include "weir/experimental/io/tls_client_config.h"
#include "weir/policy/balance.h"
#include "weir/policy/hedge_config.h"

namespace weir::inline v0::inline client {

/// Where a Client sends requests, and its bounds.
///
/// Thread-safety: a value. validate() returns all errors.
struct ClientConfig {
  /// One source of endpoints each, as `weir run --to`: "127.0.0.1:80", "http://name",
  /// "https://name:8443", "h2c://name:80", "unix:/path", "dns:name:80", "srv:_http._tcp.name",
  /// "file:/path". All are replicas of one service and have the same scheme.
  std::vector<std::string> endpoints;
  std::string authority;  // the Host that is sent; empty: the first endpoint's
  std::string zone;       // ours; endpoints in it are preferred, and hedges stay in it
  policy::Balance balance = policy::Balance::kPeakEwma;
  io::TlsClientConfig tls;  // for https
  io::DnsConfig dns;
  /// A name cannot be resolved, or a file not be read; an empty error: it works again. Called on a
  /// thread of the client. Endpoints that are known stay.
  std::function<void(const std::string& source, const std::string& error)> on_source_error;
  /// Reads that are late are sent to a second endpoint. The budget holds for retries as well.
  policy::HedgeConfig hedge;

  // Of one request.
  Duration timeout = std::chrono::seconds(10);  // if it has no timeout of its own
  Duration connect_timeout = std::chrono::seconds(1);
  std::uint32_t request_head_max = 16 * 1024;     // method, path and headers, in bytes
  std::uint32_t request_body_max = 64 * 1024;     // at most 1 MiB
  std::uint32_t response_head_max = 32 * 1024;    // a larger one is no valid answer
  std::uint32_t response_body_max = 1024 * 1024;  // a larger one is an error

  // Of all requests.
  std::uint32_t max_in_flight = 128;    // at the endpoints
  std::uint32_t queue_max = 1024;       // that wait for one of those places
  std::uint32_t max_connections = 128;  // to all endpoints
  std::uint32_t loops = 1;              // threads that do the work

  /// Places for critical requests, which are in neither of the bounds above.
  static constexpr std::uint32_t kCriticalMax = 32;

  [[nodiscard]] ConfigErrors validate() const;
  /// The most bytes that the client can hold: its pools, requests that it was given, and responses
  /// that are not complete. What a callback was given belongs to the callback. Without the memory
  /// of threads and of TLS.
  [[nodiscard]] std::uint64_t worst_case_bytes() const;
};

}  // namespace weir::inline v0::inline client
