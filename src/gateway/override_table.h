#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/enum_names.h"
#include "weir/base/time.h"
#include "weir/experimental/gateway/route_config.h"
#include "weir/experimental/io/address.h"

#include "log_focus.h"

namespace weir::inline v0::gateway {

/// What an operator may change for a time.
enum class OverrideKind : std::uint8_t {
  kDrain,   // an endpoint gets no new requests
  kShadow,  // a rule counts what it would refuse, and refuses nothing
  kCap,     // the limit of an upstream stays below a number
  kLog,     // every request of an actor or a route is logged
};
WEIR_ENUM_NAMES(OverrideKind, "drain", "shadow", "cap", "log")

/// A temporary deviation from the configuration. It ends by itself.
struct Override {
  std::uint32_t number = 0;  // given by the table
  OverrideKind kind = OverrideKind::kDrain;
  std::string upstream{};   // drain, cap
  std::string target{};     // drain: the endpoint; shadow: the rule; log: "actor alice", "route 3"
  std::uint32_t limit = 0;  // cap
  TimePoint until{};
  io::SocketName endpoint{};           // drain
  std::optional<RouteConfig> route{};  // log of a route: as it is when the override begins
  std::uint32_t route_number = 0;      // the same
  std::shared_ptr<LogFocus> focus{};   // log

  [[nodiscard]] std::string id() const { return "o" + std::to_string(number); }
  /// "app 10.0.0.1:80", "limit", "app to 40", "actor alice": what it is about, without its kind.
  [[nodiscard]] std::string what() const;
  /// Whole seconds, rounded up.
  [[nodiscard]] std::int64_t seconds_left(TimePoint now) const noexcept;
  [[nodiscard]] std::string sentence() const { return std::string(name_of(kind)) + " " + what(); }
};

/// The overrides in force.
///
/// Promises: at most kMost; at most one of each kind for the same target, and one log; none is
/// longer than kLongest of its kind. Deterministic: `now` is an argument. Thread-safety: none.
class OverrideTable {
 public:
  static constexpr std::size_t kMost = 16;
  static constexpr std::uint32_t kLogLines = 1000;
  /// The longest time of one kind, and what it lasts if nothing is said.
  [[nodiscard]] static Duration longest(OverrideKind kind) noexcept;
  [[nodiscard]] static Duration usual(OverrideKind kind) noexcept;

  /// Adds it; one of the same kind and target is replaced and its number kept. nullptr: there are
  /// kMost.
  [[nodiscard]] const Override* put(Override one);
  /// Removes one; nullopt: there is none of that id.
  std::optional<Override> remove(std::string_view id);
  /// Removes those whose time is over.
  std::vector<Override> expire(TimePoint now);
  /// The one of that kind and target.
  [[nodiscard]] const Override* find(OverrideKind kind, std::string_view upstream,
                                     std::string_view target) const noexcept;
  /// The earliest end; TimePoint::max() if there is none.
  [[nodiscard]] TimePoint next_end() const noexcept;
  [[nodiscard]] const std::vector<Override>& all() const noexcept { return all_; }

 private:
  [[nodiscard]] static bool same(const Override& a, const Override& b) noexcept;

  std::vector<Override> all_;
  std::uint32_t last_number_ = 0;
};

}  // namespace weir::inline v0::gateway
