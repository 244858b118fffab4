#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/experimental/gateway/route_config.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/http/method.h"

namespace weir::inline v0::gateway {

/// The settings of a route for its requests.
struct Route {
  std::uint16_t upstream = 0;  // index
  std::uint16_t index = 0;     // of the route itself, for /explain
  RouteConfig config;          // `identity` is empty only if actors are off

  bool operator==(const Route&) const = default;
};

/// Routes compiled for matching; the first match is used.
///
///   host         exact, or every name below "*.domain"; port and case are ignored
///   path         exact, without the query
///   path_prefix  whole segments: "/api" matches /api and /api/x, not /apix
///   methods      case-sensitive
///
/// A path with dot segments, plain or percent-encoded, matches only routes without a path: the
/// upstream decides what it means, so it must not select a class here.
/// Thread-safety: const after construction. Cost: a few comparisons per route, no allocation.
class RouteTable {
 public:
  RouteTable() = default;
  /// `upstreams` in the order of their indices; every route names one of them (asserted).
  RouteTable(std::span<const RouteConfig> routes, std::span<const std::string> upstreams,
             std::span<const IdentityKind> default_identity);

  /// nullptr if none matches.
  [[nodiscard]] const Route* match(const http::RequestMeta& meta,
                                   http::Method method) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  bool operator==(const RouteTable&) const = default;

 private:
  enum class HostKind : std::uint8_t { kAny, kExact, kBelow };
  enum class PathKind : std::uint8_t { kAny, kExact, kPrefix };
  struct Entry {
    HostKind host_kind = HostKind::kAny;
    PathKind path_kind = PathKind::kAny;
    std::string host;  // lower case; kBelow: with its leading dot
    std::string path;
    std::uint32_t methods = 0;               // bit per Method; 0: any
    std::vector<std::string> method_tokens;  // methods without a Method value
    Route route;

    bool operator==(const Entry&) const = default;
  };

  [[nodiscard]] static bool host_fits(const Entry& entry, std::string_view host) noexcept;
  [[nodiscard]] static bool path_fits(const Entry& entry, std::string_view path) noexcept;
  [[nodiscard]] static bool method_fits(const Entry& entry, const http::RequestMeta& meta,
                                        http::Method method) noexcept;

  std::vector<Entry> entries_;
};

/// The host of an authority: without port, brackets kept, one final dot removed.
[[nodiscard]] std::string_view host_of(std::string_view authority) noexcept;

/// Whether some segment is "." or "..", plain or percent-encoded.
[[nodiscard]] bool has_dot_segment(std::string_view path) noexcept;

}  // namespace weir::inline v0::gateway
