#include "weir/policy/hedge_config.h"

#include "weir/base/config_check.h"

namespace weir::inline v0::inline policy {

ConfigErrors HedgeConfig::validate() const {
  using std::chrono::microseconds;
  using std::chrono::seconds;
  ConfigErrors errors;
  check_range(errors, "budget_pct", budget_pct, 0.0, 1.0);
  check_range(errors, "max_budget_tokens", max_budget_tokens, 0U, 1'000'000U);
  check_range(errors, "max_delay_ms", max_delay, Duration(microseconds(1)), Duration(seconds(60)));
  check_range(errors, "min_delay_ms", min_delay, Duration(0), max_delay);
  check_range(errors, "default_delay_ms", default_delay, min_delay, max_delay);
  check_range(errors, "alpha", alpha, 0.001, 1.0);
  check_range(errors, "quantile", quantile, 0.5, 0.999);
  check_range(errors, "window_ms", window, Duration(seconds(1)), Duration(seconds(3600)));
  return errors;
}

}  // namespace weir::inline v0::inline policy
