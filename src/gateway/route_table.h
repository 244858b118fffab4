#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/experimental/gateway/route_config.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/http/method.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::gateway {

/// What a request that took a route is worth, and where it goes.
struct Route {
  std::uint16_t upstream = 0;  // index
  std::uint16_t index = 0;     // of the route itself, for explanations
  std::uint32_t cost = 1;
  std::uint64_t max_body = 0;          // 0: no bound
  std::optional<Priority> priority;    // unset: a trusted peer's word, else normal
  std::vector<IdentityKind> identity;  // never empty unless actors are off
};

/// Routes compiled for matching: the first that fits wins.
///
///   host         exact, or every name below "*.domain"; port and case do not count
///   path         exact, without the query
///   path_prefix  whole segments: "/api" fits /api and /api/x, not /apix
///   methods      case-sensitive, as methods are
///
/// A path with dot segments, plain or percent-encoded, fits only routes that name no path: what it
/// means is decided behind us, so it must not pick a class here.
/// Thread-safety: const after construction. Cost: a few compares per route, no allocation.
class RouteTable {
 public:
  RouteTable() = default;
  /// `upstreams` in the order of their indices; every route names one of them (asserted).
  RouteTable(std::span<const RouteConfig> routes, std::span<const std::string> upstreams,
             std::span<const IdentityKind> default_identity);

  /// nullptr when none fits.
  [[nodiscard]] const Route* match(const http::RequestMeta& meta,
                                   http::Method method) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  enum class HostKind : std::uint8_t { kAny, kExact, kBelow };
  enum class PathKind : std::uint8_t { kAny, kExact, kPrefix };
  struct Entry {
    HostKind host_kind = HostKind::kAny;
    PathKind path_kind = PathKind::kAny;
    std::string host;  // lower case; kBelow: with its leading dot
    std::string path;
    std::uint32_t methods = 0;               // bit per Method; 0: any
    std::vector<std::string> method_tokens;  // those without a Method of their own
    Route route;
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
