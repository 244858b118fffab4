#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/experimental/gateway/route_config.h"
#include "weir/experimental/server/stream.h"

#include "local_answer.h"

namespace weir::inline v0::gateway {

/// What a route changes in heads, compiled from its options.
///
/// A removed name also removes names with '_' for '-': many applications cannot tell them apart.
/// Thread-safety: const after construction. Cost: for each field of a head one comparison per name
/// to be removed; no allocation.
class RouteEdits {
 public:
  RouteEdits() = default;
  explicit RouteEdits(const RouteConfig& config);
  bool operator==(const RouteEdits&) const = default;

  struct Field {
    std::string name;  // lower case, as HTTP/2 needs it
    std::string value;
    bool operator==(const Field&) const = default;
  };
  [[nodiscard]] std::span<const Field> request_add() const noexcept { return request_add_; }
  [[nodiscard]] std::span<const Field> response_add() const noexcept { return response_add_; }
  [[nodiscard]] bool removes_from_request(std::string_view name) const noexcept {
    return !request_remove_.empty() && contains(request_remove_, name);
  }
  [[nodiscard]] bool removes_from_response(std::string_view name) const noexcept {
    return !response_remove_.empty() && contains(response_remove_, name);
  }
  /// The host for the upstream; empty: as it came.
  [[nodiscard]] std::string_view host() const noexcept { return host_; }

  /// The path for the upstream, with its query; it is `path` itself, or is written to `out`.
  /// Refused: a path that does not fit, or in whose rest servers find different segments
  /// (has_one_reading()); behind another prefix its dot segments could lead out of it.
  [[nodiscard]] Result<std::string_view, GatewayRefusal> path_for(
      std::string_view path, std::span<char> out) const noexcept;

 private:
  [[nodiscard]] static bool contains(const std::vector<std::string>& names,
                                     std::string_view name) noexcept;

  bool rewrites_path_ = false;
  std::string from_;  // without a final slash
  std::string to_;    // the same
  std::string host_;
  std::vector<Field> request_add_;
  std::vector<Field> response_add_;
  std::vector<std::string> request_remove_;
  std::vector<std::string> response_remove_;
};

}  // namespace weir::inline v0::gateway
