#include "weir/experimental/client/client_config.h"

#include "weir/base/config_check.h"
#include "weir/experimental/http/field.h"
#include "weir/policy/limit_config.h"

#include "client_call.h"
#include "client_shape.h"
#include "upstream/upstream.h"

namespace weir::inline v0::inline client {

ConfigErrors ClientConfig::validate() const {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  constexpr std::uint32_t kMega = 1U << 20U;
  ConfigErrors errors;
  const auto time = [&](const char* key, Duration value) {
    check_range(errors, key, value, Duration(milliseconds(1)), Duration(hours(24)));
  };
  time("timeout", timeout);
  time("connect_timeout", connect_timeout);
  check_range(errors, "request_head_max", request_head_max, 256U, kMega);
  check_range(errors, "request_body_max", request_body_max, 0U, kMega);
  check_range(errors, "response_head_max", response_head_max, 1024U, kMega);
  check_range(errors, "response_body_max", response_body_max, 0U, 1U << 30U);
  check_range(errors, "loops", loops, 1U, 256U);
  check_range(errors, "max_in_flight", max_in_flight, loops, 100'000U);
  check_range(errors, "queue_max", queue_max, 1U, 1'000'000U);
  check_range(errors, "max_connections", max_connections, 1U, 100'000U);
  const bool host = authority.size() <= 255 && http::is_valid_field_value(authority) &&
                    authority.find_first_of(" \t/@#?") == std::string::npos;
  if (!host) add_error(errors, "authority", authority, "HOST or HOST:PORT, at most 255 characters");
  append_errors(errors, "hedge.", hedge.validate());
  append_errors(errors, "dns.", dns.validate());
  auto upstream = upstream_of(*this);
  if (!upstream) {
    errors.push_back(upstream.error());
  } else {
    append_errors(errors, "", upstream->validate(LimitConfig{}));
  }
  return errors;
}

std::uint64_t ClientConfig::worst_case_bytes() const {
  const auto upstream = upstream_of(*this);
  if (!upstream) return 0;
  const upstream::UpstreamMemory::Shape pools = memory_shape(*this, *upstream);
  const std::uint64_t under_way = max_in_flight + kCriticalMax;
  const std::uint64_t places = std::uint64_t{ordinary_places(*this)} + kCriticalMax;
  constexpr std::uint64_t kGrowth = 2;  // a body of unknown length moves to a larger string
  return places * (sizeof(ClientCall) + std::uint64_t{request_head_max} + request_body_max) +
         under_way * (std::uint64_t{response_head_max} + kGrowth * response_body_max) +
         pools.heads * pools.head_bytes + pools.bodies * pools.body_bytes +
         pools.regions * pools.region_bytes + pools.sessions * pools.session_bytes +
         std::uint64_t{loops} * max_connections * upstream::connection_bytes();
}

}  // namespace weir::inline v0::inline client
