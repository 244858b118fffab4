#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"
#include "weir/base/duration_text.h"
#include "weir/base/enum_names.h"
#include "weir/base/time.h"

namespace weir::inline v0::upstream {

/// How endpoints are asked whether they are well.
enum class HealthCheckKind : std::uint8_t {
  kOff,
  kHttp,  // GET of a path
  kTcp,   // a connection can be opened
  kGrpc,  // grpc.health.v1.Health/Check
};
WEIR_ENUM_NAMES(HealthCheckKind, "off", "http", "tcp", "grpc")

inline constexpr std::size_t kHealthServiceMax = 127;  // so that its length is one byte

/// Active checks of the endpoints of one upstream: the section [upstream.health].
///
/// Thread-safety: a value. validate() returns all errors, with the keys of the section.
struct HealthCheckConfig {
  HealthCheckKind kind = HealthCheckKind::kOff;
  std::string path = "/";                       // http
  std::string host;                             // http, grpc: the Host sent; empty: the endpoint's
  std::string service;                          // grpc: which service; empty: the whole server
  Duration interval = std::chrono::seconds(5);  // between two checks of one endpoint
  Duration timeout = std::chrono::seconds(2);   // an answer that takes longer is a failure
  std::uint32_t rise = 2;                       // passed in a row: the endpoint is back
  std::uint32_t fall = 3;                       // failed in a row: it is ejected
  std::uint32_t expect_status = 200;            // http: any other status is a failure
  std::uint32_t drain_status = 0;  // http: this status says that it wants to drain; 0: none does

  bool operator==(const HealthCheckConfig&) const = default;
  [[nodiscard]] ConfigErrors validate() const;
};

inline ConfigErrors HealthCheckConfig::validate() const {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  ConfigErrors errors;
  if (path.empty() || path[0] != '/' || path.find_first_of(" \t\r\n#") != std::string::npos) {
    add_error(errors, "path", path, "a path that starts with /");
  }
  if (host.find_first_of("/ \t\r\n@") != std::string::npos) {
    add_error(errors, "host", host, "a host name, with or without a port");
  }
  if (service.size() > kHealthServiceMax) {
    add_error(errors, "service", std::to_string(service.size()) + " characters",
              "at most " + std::to_string(kHealthServiceMax) + " characters");
  }
  check_range(errors, "interval_ms", interval, Duration(milliseconds(10)), Duration(hours(1)));
  check_range(errors, "timeout_ms", timeout, Duration(milliseconds(1)), Duration(hours(1)));
  if (timeout > interval) {
    add_error(errors, "timeout_ms", to_string(timeout),
              "at most interval_ms (" + to_string(interval) + ")");
  }
  check_range(errors, "rise", rise, 1U, 100U);
  check_range(errors, "fall", fall, 1U, 100U);
  check_range(errors, "expect_status", expect_status, 200U, 599U);
  check_range(errors, "drain_status", drain_status, 0U, 599U);
  if (drain_status == expect_status || (drain_status > 0 && drain_status < 200)) {
    add_error(errors, "drain_status", std::to_string(drain_status),
              "0 for none, or 200 to 599 and not expect_status");
  }
  return errors;
}

}  // namespace weir::inline v0::upstream
