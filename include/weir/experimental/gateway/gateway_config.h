#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"
#include "weir/base/enum_names.h"
#include "weir/base/ip_range.h"
#include "weir/base/net_address.h"
#include "weir/base/time.h"
#include "weir/experimental/gateway/route_config.h"
#include "weir/experimental/io/tls_config.h"

namespace weir::inline v0::gateway {

/// Which requests are written to the access log.
enum class AccessLog : std::uint8_t { kOff, kErrors, kSampled, kAll };
WEIR_ENUM_NAMES(AccessLog, "off", "errors", "sampled", "all")

/// The form of a line of the access log: an object of JSON, or key=value pairs.
enum class AccessLogFormat : std::uint8_t { kJson, kText };
WEIR_ENUM_NAMES(AccessLogFormat, "json", "text")

/// Who may change something in a running gateway: temporary overrides, a reload.
///   kOff     nobody; the actions do not exist
///   kSocket  who may use actions_socket
///   kToken   who sends the token of token_file to the admin endpoint
enum class ActionsMode : std::uint8_t { kOff, kSocket, kToken };
WEIR_ENUM_NAMES(ActionsMode, "off", "socket", "token")

/// The client address that the gateway sends to an upstream.
///   kOff     nothing; the client's own forwarding headers are removed
///   kSet     the client's address; earlier addresses are kept only from trust.proxies
enum class Forwarded : std::uint8_t { kOff, kSet };
WEIR_ENUM_NAMES(Forwarded, "off", "set")

/// Settings for the operator: the admin endpoint, the access log, the drain.
struct AdminConfig {
  std::optional<NetAddress> listen = NetAddress{
      .kind = NetAddressKind::kIp, .ip = {.bytes = {127, 0, 0, 1}}, .text = {}, .port = 9901};
  AccessLog access_log = AccessLog::kErrors;
  AccessLogFormat access_log_format = AccessLogFormat::kJson;
  double access_log_sample = 0.01;    // share of requests, if sampled
  std::string access_log_file = "-";  // "-": standard output
  std::vector<std::string> hosts;     // accepted as Host, in addition to localhost and IP addresses
  ActionsMode actions = ActionsMode::kOff;
  std::string actions_socket;  // path of a Unix socket, if kSocket
  std::string token_file;      // if kToken
  bool ready_needs_upstreams = false;
  Duration drain_delay{};  // from SIGTERM to the end of accepting
  Duration drain_timeout = std::chrono::seconds(30);
  std::string take_over_socket;  // path of a Unix socket; empty: nobody can take over

  bool operator==(const AdminConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
  /// Whether there is an admin server: for the pages, or for the actions.
  [[nodiscard]] bool serves() const noexcept {
    return listen.has_value() || actions == ActionsMode::kSocket;
  }

 private:
  void validate_actions(ConfigErrors& errors) const;
};

/// Which senders are trusted. Peers may set class, actor and deadline of a request; proxies only
/// the client's address. A sender that is not listed is not trusted.
struct TrustConfig {
  std::vector<IpRange> peers;
  std::vector<std::string> peer_certificates;  // subjects; "*": every verified certificate
  std::vector<IpRange> proxies;
  Forwarded forwarded = Forwarded::kSet;

  bool operator==(const TrustConfig&) const = default;
};

/// Which JSON Web Tokens are verified, and how often.
struct JwtConfig {
  std::vector<std::string> keys;  // files: public keys or certificates, PEM
  std::string issuer;             // empty: any
  std::string audience;           // empty: any
  std::string claim = "sub";
  std::uint32_t cache_size = 1024;        // verified tokens that a loop remembers
  std::uint32_t verifications_max = 100;  // a second, of one client address and loop

  static constexpr std::size_t kKeysMax = 4;

  bool operator==(const JwtConfig&) const = default;
};

/// How actors are identified; their budgets are in AdmissionConfig.
struct ActorsConfig {
  std::vector<IdentityKind> identity = {IdentityKind::kCertificate, IdentityKind::kBearer,
                                        IdentityKind::kApiKey, IdentityKind::kHeader};
  std::string api_key_header = "x-api-key";
  std::string keys_file;  // hashes of API keys and the names of their owners; empty: any key
  JwtConfig jwt;

  bool operator==(const ActorsConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

/// Which request bodies are received completely before the request asks for its place and goes to
/// the upstream, so that a slow upload holds neither. Longer ones, and all while the pool is empty,
/// are forwarded as they come.
struct BufferingConfig {
  static constexpr std::uint32_t kBlocksPerBody = 4;  // at most; a small body needs only one

  std::uint64_t buffer_request_max = 64 * 1024;         // by Content-Length; 0: none
  std::uint64_t buffer_request_pool = 8 * 1024 * 1024;  // memory for all of them; 0: none

  bool operator==(const BufferingConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;

  [[nodiscard]] std::uint64_t block_bytes() const noexcept {
    constexpr std::uint64_t kPage = 4096;
    return (buffer_request_max + kBlocksPerBody * kPage - 1) / (kBlocksPerBody * kPage) * kPage;
  }
  [[nodiscard]] std::uint32_t blocks() const noexcept {
    if (buffer_request_max == 0) return 0;
    return static_cast<std::uint32_t>(buffer_request_pool / block_bytes());
  }
};

/// How often memory usage is read.
struct MemoryConfig {
  Duration poll_interval = std::chrono::milliseconds(500);

  bool operator==(const MemoryConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

/// Room laid out at start for upstreams that reloads add or replace, beyond those of the file that
/// the gateway starts with. An upstream that a reload removed uses room until its requests have
/// finished.
struct ReloadConfig {
  std::uint32_t upstreams_spare = 8;        // 0: no room of any kind
  std::uint32_t connections_spare = 0;      // 0: max_connections of the largest upstream at start
  std::uint32_t tls_connections_spare = 0;  // 0: the same of those with TLS

  bool operator==(const ReloadConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

/// Where the decision recorder keeps files; it always keeps the newest decisions in memory.
struct RecorderConfig {
  std::string folder;  // empty: no files
  std::uint64_t file_bytes = std::uint64_t{64} << 20U;
  std::uint32_t files_max = 8;  // beside the one that is written

  bool operator==(const RecorderConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

namespace gateway_config_detail {
inline bool is_socket_path(const std::string& path) {
  constexpr std::size_t kUnixPathMax = 107;
  return !path.empty() && path.front() == '/' && path.size() <= kUnixPathMax &&
         path.find('\0') == std::string::npos;
}
}  // namespace gateway_config_detail

inline ConfigErrors AdminConfig::validate() const {
  ConfigErrors errors;
  if (listen && !listen->can_listen()) {
    add_error(errors, "listen", to_string(*listen), "a numeric address or unix:/path");
  }
  for (const std::string& host : hosts) {
    if (!host.empty() && host.find_first_of("*/:[] \t") == std::string::npos) continue;
    add_error(errors, "hosts", host, "host names, without port or *");
  }
  check_range(errors, "access_log_sample", access_log_sample, 0.0, 1.0);
  if (access_log_file.empty()) add_error(errors, "access_log_file", "\"\"", "a path, or -");
  check_range(errors, "drain_delay_ms", drain_delay, Duration(0), Duration(std::chrono::hours(24)));
  check_range(errors, "drain_timeout_ms", drain_timeout, Duration(0),
              Duration(std::chrono::hours(24)));
  if (!take_over_socket.empty() && !gateway_config_detail::is_socket_path(take_over_socket)) {
    add_error(errors, "take_over_socket", take_over_socket,
              "an absolute path of at most 107 bytes, or empty");
  }
  validate_actions(errors);
  return errors;
}

inline void AdminConfig::validate_actions(ConfigErrors& errors) const {
  if (actions == ActionsMode::kSocket) {
    if (!gateway_config_detail::is_socket_path(actions_socket)) {
      add_error(errors, "actions_socket", '"' + actions_socket + '"',
                "an absolute path of at most 107 bytes, because admin.actions is \"socket\"");
    }
    if (listen && listen->kind == NetAddressKind::kUnix) {
      add_error(errors, "listen", to_string(*listen),
                "a TCP address or empty while admin.actions is \"socket\": the pages are at "
                "admin.actions_socket, too");
    }
  }
  if (actions != ActionsMode::kToken) return;
  if (token_file.empty()) {
    add_error(errors, "token_file", "\"\"",
              "a file with the token, because admin.actions is \"token\"");
  }
  if (!listen) {
    add_error(errors, "listen", "empty", "an address while admin.actions is \"token\"");
  } else if (!listen->is_loopback()) {
    add_error(errors, "actions", "\"token\"",
              "\"socket\" or \"off\" while admin.listen (" + to_string(*listen) +
                  ") is not a loopback address: the admin endpoint has no TLS, so whoever sees its "
                  "traffic would have the token");
  }
}

inline ConfigErrors ActorsConfig::validate() const {
  ConfigErrors errors;
  if (!route_detail::is_token(api_key_header)) {
    add_error(errors, "api_key_header", api_key_header, "the name of a header");
  }
  if (jwt.keys.size() > JwtConfig::kKeysMax) {
    add_error(errors, "jwt.keys", std::to_string(jwt.keys.size()) + " files",
              "at most " + std::to_string(JwtConfig::kKeysMax));
  }
  const bool used =
      std::find(identity.begin(), identity.end(), IdentityKind::kJwt) != identity.end();
  if (used && jwt.keys.empty()) {
    add_error(errors, "jwt.keys", "[]", "files with public keys, because identity has \"jwt\"");
  }
  if (jwt.claim.empty()) add_error(errors, "jwt.claim", "\"\"", "the name of a claim");
  check_range(errors, "jwt.cache_size", jwt.cache_size, 4U, 1048576U);
  check_range(errors, "jwt.verifications_max", jwt.verifications_max, 1U, 100000U);
  return errors;
}

inline ConfigErrors ReloadConfig::validate() const {
  ConfigErrors errors;
  check_range(errors, "upstreams_spare", upstreams_spare, 0U, 512U);
  check_range(errors, "connections_spare", connections_spare, 0U, 1000000U);
  check_range(errors, "tls_connections_spare", tls_connections_spare, 0U, 1000000U);
  return errors;
}

inline ConfigErrors RecorderConfig::validate() const {
  constexpr std::uint64_t kMega = 1024 * 1024;
  ConfigErrors errors;
  if (folder.find('\0') != std::string::npos) {
    add_error(errors, "folder", "with a zero byte", "the path of a folder, or empty");
  }
  check_range(errors, "file_bytes", file_bytes, 2 * kMega, 1024 * kMega);
  check_range(errors, "files_max", files_max, 1U, 1000U);
  return errors;
}

inline ConfigErrors BufferingConfig::validate() const {
  constexpr std::uint64_t kMega = 1024 * 1024;
  ConfigErrors errors;
  check_range(errors, "buffer_request_max", buffer_request_max, std::uint64_t{0}, 16 * kMega);
  check_range(errors, "buffer_request_pool", buffer_request_pool, std::uint64_t{0},
              1024 * 1024 * kMega);
  if (errors.empty() && buffer_request_max > 0 && buffer_request_pool > 0 &&
      blocks() < kBlocksPerBody) {
    add_error(errors, "buffer_request_pool", std::to_string(buffer_request_pool),
              "0, or at least " + std::to_string(kBlocksPerBody * block_bytes()) +
                  ": one body of buffer_request_max");
  }
  return errors;
}

inline ConfigErrors MemoryConfig::validate() const {
  using std::chrono::milliseconds;
  ConfigErrors errors;
  check_range(errors, "poll_interval_ms", poll_interval, Duration(milliseconds(10)),
              Duration(milliseconds(60000)));
  return errors;
}

}  // namespace weir::inline v0::gateway
