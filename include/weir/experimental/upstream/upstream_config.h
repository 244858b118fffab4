#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"
#include "weir/base/duration_text.h"
#include "weir/base/enum_names.h"
#include "weir/base/time.h"
#include "weir/experimental/io/tls_client_config.h"
#include "weir/experimental/upstream/hash_by_config.h"
#include "weir/experimental/upstream/health_check_config.h"
#include "weir/experimental/upstream/source_config.h"
#include "weir/policy/balance.h"
#include "weir/policy/limit_config.h"

namespace weir::inline v0::upstream {

/// The values of [admission.limit] that one upstream overrides.
struct LimitOverrides {
  std::optional<LimitKind> policy;
  std::optional<std::uint32_t> initial_limit;
  std::optional<std::uint32_t> min_limit;
  std::optional<std::uint32_t> max_limit;

  bool operator==(const LimitOverrides&) const = default;

  [[nodiscard]] LimitConfig over(LimitConfig common) const noexcept {
    common.policy = policy.value_or(common.policy);
    common.initial_limit = initial_limit.value_or(common.initial_limit);
    common.min_limit = min_limit.value_or(common.min_limit);
    common.max_limit = max_limit.value_or(common.max_limit);
    return common;
  }
};

/// The protocol spoken with the endpoints of an upstream.
enum class Protocol : std::uint8_t {
  kAuto,  // over TLS what ALPN agrees on, in cleartext HTTP/1.1
  kHttp1,
  kHttp2,  // over TLS by ALPN, in cleartext with prior knowledge
};
WEIR_ENUM_NAMES(Protocol, "auto", "http1", "http2")

/// A set of endpoints that serve the same requests, and their timeouts and bounds.
struct UpstreamConfig {
  std::string name;  // also the name of its admission scope and the label of its metrics
  std::vector<SourceSpec> endpoints;
  Protocol protocol = Protocol::kAuto;
  bool tls_enabled = false;  // https
  io::TlsClientConfig tls;
  policy::Balance balance = policy::Balance::kPeakEwma;
  std::string hash_by = "path";  // for the balance hash: HashBy
  std::string zone;              // ours; endpoints in it are preferred
  HealthCheckConfig health;
  Duration connect_timeout = std::chrono::seconds(1);
  Duration first_byte_timeout = std::chrono::seconds(30);  // from request sent to response header
  Duration inactivity_timeout = std::chrono::seconds(60);  // a body without progress
  Duration overall_timeout{};                              // the whole request; 0: none
  Duration idle_timeout = std::chrono::seconds(4);         // then an unused connection is closed
  Duration connection_age_max = std::chrono::minutes(5);   // then it is closed after its request
  Duration hold_max = std::chrono::seconds(2);  // a request waits for an endpoint; 0: not at all
  std::uint32_t max_connections = 1024;         // to all its endpoints
  std::uint32_t max_idle_connections = 256;     // kept open for later requests
  std::uint32_t warm_connections = 1;           // kept open per endpoint and loop
  std::uint32_t connection_queue_max = 1024;    // requests of a loop that wait for a connection
  // Attempts that wait for a connection to one endpoint, of all loops: in its queue, and in the
  // overflow ring, where a newer one takes the place of the oldest; and their bytes.
  std::uint32_t outgoing_queue_size = 500;
  std::uint32_t outgoing_overflow_size = 100;
  std::uint64_t outgoing_bytes_max = 4 * 1024 * 1024;
  std::uint32_t hold_requests_max = 1024;    // requests that wait for an endpoint
  std::uint64_t retry_body_max = 64 * 1024;  // longer request bodies are not kept for a retry
  // Retries and hedges per request in the long run, and at once; unset: as in HedgeConfig.
  std::optional<double> retry_budget_pct;
  std::optional<std::uint32_t> retry_budget_tokens_max;
  std::uint32_t response_head_bytes_max = 32 * 1024;  // larger: 502
  LimitOverrides limit;

  bool operator==(const UpstreamConfig&) const = default;

  /// Whether a connection to its endpoints may use HTTP/2.
  [[nodiscard]] bool may_speak_http2() const noexcept {
    return protocol == Protocol::kHttp2 || (protocol == Protocol::kAuto && tls_enabled);
  }

  /// `common` is [admission.limit], to which the overrides apply.
  [[nodiscard]] ConfigErrors validate(const LimitConfig& common) const;

 private:
  [[nodiscard]] ConfigErrors validate_choice() const;
  [[nodiscard]] ConfigErrors validate_queues() const;
};

inline constexpr std::uint64_t kRetryBodyMax = std::uint64_t{1} << 20U;
inline constexpr std::uint64_t kOutgoingBytesMin = 64 * 1024;
inline constexpr std::uint64_t kOutgoingBytesMax = std::uint64_t{1} << 40U;

inline ConfigErrors UpstreamConfig::validate(const LimitConfig& common) const {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  ConfigErrors errors;
  const auto time = [&](const char* key, Duration value) {
    check_range(errors, key, value, Duration(milliseconds(1)), Duration(hours(24)));
  };
  if (name.empty()) add_error(errors, "name", "\"\"", "a name of its own");
  append_errors(errors, "", validate_choice());
  time("connect_timeout_ms", connect_timeout);
  time("first_byte_timeout_ms", first_byte_timeout);
  time("inactivity_timeout_ms", inactivity_timeout);
  check_range(errors, "overall_timeout_ms", overall_timeout, Duration(0), Duration(hours(24)));
  time("idle_timeout_ms", idle_timeout);
  time("connection_age_max_ms", connection_age_max);
  check_range(errors, "hold_max_ms", hold_max, Duration(0), Duration(std::chrono::minutes(1)));
  if (overall_timeout > Duration(0) && overall_timeout < first_byte_timeout) {
    add_error(
        errors, "overall_timeout_ms", to_string(overall_timeout),
        "0 for none, or at least first_byte_timeout_ms (" + to_string(first_byte_timeout) + ")");
  }
  check_range(errors, "max_connections", max_connections, 1U, 1000000U);
  check_range(errors, "max_idle_connections", max_idle_connections, 0U, 1000000U);
  check_range(errors, "warm_connections", warm_connections, 0U, 16U);
  check_range(errors, "connection_queue_max", connection_queue_max, 0U, 1000000U);
  append_errors(errors, "", validate_queues());
  check_range(errors, "hold_requests_max", hold_requests_max, 0U, 1000000U);
  check_range(errors, "retry_body_max", retry_body_max, std::uint64_t{0}, kRetryBodyMax);
  check_range(errors, "retry_budget_pct", retry_budget_pct.value_or(0), 0.0, 1.0);
  check_range(errors, "retry_budget_tokens_max", retry_budget_tokens_max.value_or(0), 0U, 100000U);
  check_range(errors, "response_head_bytes_max", response_head_bytes_max, 1024U, 1U << 20U);
  append_errors(errors, "health.", health.validate());
  if (health.kind == HealthCheckKind::kGrpc && !may_speak_http2()) {
    add_error(errors, "health.kind", "grpc",
              "used with protocol = \"http2\", or over TLS: gRPC needs HTTP/2");
  }
  if (limit != LimitOverrides{}) append_errors(errors, "", limit.over(common).validate());
  return errors;
}

inline ConfigErrors UpstreamConfig::validate_queues() const {
  ConfigErrors errors;
  check_range(errors, "outgoing_queue_size", outgoing_queue_size, 1U, 1000000U);
  check_range(errors, "outgoing_overflow_size", outgoing_overflow_size, 0U, 1000000U);
  check_range(errors, "outgoing_bytes_max", outgoing_bytes_max, kOutgoingBytesMin,
              kOutgoingBytesMax);
  return errors;
}

/// The errors of what decides where and how requests are sent.
inline ConfigErrors UpstreamConfig::validate_choice() const {
  ConfigErrors errors;
  if (endpoints.empty()) add_error(errors, "endpoints", "[]", "at least one address");
  for (auto it = endpoints.begin(); it != endpoints.end(); ++it) {
    const auto same = [&](const SourceSpec& other) { return other.source() == it->source(); };
    if (std::any_of(endpoints.begin(), it, same)) {
      add_error(errors, "endpoints", it->to_string(), "listed once");
    }
    const bool connectable =
        it->kind == SourceKind::kSrv || it->kind == SourceKind::kFile || it->address.can_connect();
    if (connectable) continue;
    add_error(errors, "endpoints", it->to_string(), "an address to connect to, with its port");
  }
  if (!parse_hash_by(hash_by)) {
    add_error(errors, "hash_by", hash_by, std::string(kHashBySyntax));
  }
  if (!is_zone(zone)) add_error(errors, "zone", zone, "at most 64 printable characters");
  append_errors(errors, "tls.", tls.validate());
  if (!tls_enabled && tls != io::TlsClientConfig{}) {
    add_error(errors, "tls.enabled", "false",
              "true when other keys of [upstream.tls] are set; without that section requests are "
              "sent in cleartext");
  }
  return errors;
}

}  // namespace weir::inline v0::upstream
