#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/experimental/gateway/route_config.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/http/method.h"

#include "path_reading.h"
#include "route_edits.h"
#include "upstream/read_class.h"

namespace weir::inline v0::gateway {

/// The settings of a route for its requests.
struct Route {
  std::uint16_t upstream = 0;     // index; not that of any if the route has an answer
  std::uint16_t index = 0;        // of the route itself, for /explain
  upstream::ReadClass reads = 0;  // of its upstream
  RouteConfig config;             // `identity` is empty only if actors are off
  RuleOverrides modes;            // of its requests
  RouteEdits edits;

  bool operator==(const Route&) const = default;
};

/// Routes compiled for matching; the first match is used.
///
///   scheme       http or https
///   host         exact, or every name below "*.domain"; port and case are ignored
///   path         exact, without the query
///   path_prefix  whole segments: "/api" matches /api and /api/x, not /apix
///   methods      case-sensitive
///   headers      all of them: any line with this name, and with this value if one is given
///
/// A path that servers read differently (path_reading.h) matches only if every reading selects a
/// route that treats the request alike; otherwise its spelling would choose its class or cost.
/// Thread-safety: const after construction. Cost: a few comparisons per route, for unusual paths
/// once per reading; no allocation.
class RouteTable {
 public:
  RouteTable() = default;
  /// `upstreams` in the order of their indices; every route without an answer of its own names one
  /// of them (asserted).
  RouteTable(std::span<const RouteConfig> routes, std::span<const std::string> upstreams,
             std::span<const IdentityKind> default_identity);

  struct Match {
    const Route* route = nullptr;  // nullptr if none matches
    bool ambiguous = false;        // another reading of the path is treated differently
  };
  /// `scratch` is at least as long as the path; its content is overwritten.
  struct Asked {
    const http::RequestMeta& meta;
    const http::HeaderList& headers;
    http::Method method;
    Scheme scheme = Scheme::kHttp;
  };
  [[nodiscard]] Match match(const Asked& asked, std::span<char> scratch) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  bool operator==(const RouteTable&) const = default;

 private:
  enum class HostKind : std::uint8_t { kAny, kExact, kBelow };
  enum class PathKind : std::uint8_t { kAny, kExact, kPrefix };
  struct HeaderRule {
    http::FieldId id = http::FieldId::kOther;
    std::string name;
    std::string value;
    bool any_value = false;

    bool operator==(const HeaderRule&) const = default;
  };
  struct Entry {
    HostKind host_kind = HostKind::kAny;
    PathKind path_kind = PathKind::kAny;
    std::string host;  // lower case; kBelow: with its leading dot
    std::array<std::string, kPathReadings.size()> paths;  // as each reading has it
    std::uint32_t methods = 0;                            // bit per Method; 0: any
    std::vector<std::string> method_tokens;               // methods without a Method value
    std::vector<HeaderRule> headers;
    Route route;

    bool operator==(const Entry&) const = default;
  };

  [[nodiscard]] static Entry entry_of(const RouteConfig& config);
  [[nodiscard]] static bool header_fits(const HeaderRule& rule,
                                        const http::HeaderList& headers) noexcept;
  [[nodiscard]] static bool host_fits(const Entry& entry, std::string_view host) noexcept;
  [[nodiscard]] static bool path_fits(const Entry& entry, std::string_view path,
                                      std::size_t reading) noexcept;
  [[nodiscard]] static bool method_fits(const Entry& entry, const http::RequestMeta& meta,
                                        http::Method method) noexcept;
  [[nodiscard]] const Route* first_match(const Asked& asked, std::string_view path,
                                         std::size_t reading) const noexcept;

  std::vector<Entry> entries_;
  bool paths_matter_ = false;  // some route has a path
};

/// The host of an authority: without port, brackets kept, one final dot removed.
[[nodiscard]] std::string_view host_of(std::string_view authority) noexcept;

}  // namespace weir::inline v0::gateway
