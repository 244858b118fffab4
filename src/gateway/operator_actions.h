#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/enum_names.h"
#include "weir/base/result.h"
#include "weir/base/time.h"

#include "action_guard.h"
#include "action_order.h"
#include "admin_request.h"
#include "core.h"
#include "live_options.h"
#include "operator_log.h"

namespace weir::inline v0::gateway {

/// How an action ended.
enum class ActionResult : std::uint8_t {
  kDone,
  kDryRun,
  kRefused,    // it cannot be done, or is not understood
  kForbidden,  // nobody who may act asks for it
  kTooMany,    // more than one a second
};
WEIR_ENUM_NAMES(ActionResult, "done", "dry_run", "refused", "forbidden", "too_many")
inline constexpr std::size_t kActionResults = 5;

/// Carries out what an operator asks for: overrides with a time to live, and a reload.
///
/// Promises: nothing is changed unless who_acts() believes the request; at most one action a second
/// is carried out; every action is one line of the log: what, who, until when, with what result.
/// Every override ends at its time, at most a second late. Thread-safety: the thread of the admin
/// endpoint; end() when that has stopped.
class OperatorActions final : public AdminActions {
 public:
  struct Setup {
    GatewayCore& core;
    LiveOptions& live;
    OperatorLog& log;
    std::int64_t (*unix_seconds)();  // for the ends of overrides, as a client reads them
    /// Reads the configuration again, later. Returns why that is not possible; empty if it is.
    std::function<std::string()> reload;
  };
  explicit OperatorActions(Setup setup) : setup_(std::move(setup)) {}

  [[nodiscard]] bool has(std::string_view path) const override {
    return action_at(path).has_value();
  }
  [[nodiscard]] AdminPage perform(const AdminRequest& request, TimePoint now) override;
  [[nodiscard]] std::vector<Count> counts() const override;
  /// Ends overrides whose time is over. Call it once a second.
  void expire(TimePoint now);
  /// The process ends: says which overrides end with it.
  void end();

 private:
  struct Failure {
    std::uint16_t status = 409;
    std::string error;
  };
  /// What an action would do, and does.
  struct Plan {
    std::string preview;
    std::vector<Override> put{};        // one, or none
    std::vector<std::string> remove{};  // the id of one, or none
  };
  [[nodiscard]] Result<Plan, Failure> plan(const ActionOrder& order, TimePoint now);
  [[nodiscard]] Result<Plan, Failure> plan_drain(const ActionOrder& order, TimePoint now);
  [[nodiscard]] Result<Plan, Failure> plan_undrain(const ActionOrder& order);
  [[nodiscard]] Result<Plan, Failure> plan_shadow(const ActionOrder& order);
  [[nodiscard]] Result<Plan, Failure> plan_cap(const ActionOrder& order, TimePoint now);
  [[nodiscard]] Result<Plan, Failure> plan_log(const ActionOrder& order);
  [[nodiscard]] Result<Plan, Failure> plan_remove(const ActionOrder& order);
  struct Place;
  [[nodiscard]] Result<Place, Failure> find_endpoint(const ActionOrder& order) const;
  /// Why it cannot be done now; empty: it is done, and the override has its number.
  [[nodiscard]] std::string carry_out(const ActionOrder& order, Plan& plan, TimePoint now);
  void audit(const ActionOrder& order, const std::string& who, const std::string& result);
  AdminPage refuse(ActionKind kind, const ActionRefusal& why, ActionResult result);
  void count(ActionKind kind, ActionResult result) noexcept;

  Setup setup_;
  TimePoint last_{};        // action
  TimePoint told_until_{};  // no line about a forbidden action before that
  std::array<std::array<std::uint64_t, kActionResults>, kActionKinds> counts_{};
};

/// The page /overrides: those in force.
[[nodiscard]] AdminPage overrides_page(const std::vector<Override>& overrides, TimePoint now,
                                       std::int64_t unix_now);
/// The same as comments of a configuration; empty if there is none.
[[nodiscard]] std::string overrides_comment(const std::vector<Override>& overrides, TimePoint now);

}  // namespace weir::inline v0::gateway
