#pragma once

#include <string>
#include <vector>

#include "weir/experimental/config/option_apply.h"
#include "weir/experimental/config/weir_config.h"

namespace weir::inline v0::config {

/// One option that a reload would change.
struct ConfigChange {
  std::string key;     // "admission.max_concurrent", "upstream.app.endpoints", "route[0].path"
  std::string before;  // as TOML; empty when it did not exist
  std::string after;   // as TOML; empty when it is gone
  OptionApply apply = OptionApply::kRestart;

  [[nodiscard]] bool live() const noexcept { return is_live(apply); }  // a reload is enough
  bool operator==(const ConfigChange&) const = default;
};

/// What differs, in the order of the table. Upstreams are matched by name: one that appears or
/// disappears is one change. Routes are matched by position. TLS towards clients is switched on and
/// off by a restart only.
[[nodiscard]] std::vector<ConfigChange> diff(const Config& before, const Config& after);

/// `before` with every live option of `after`: the configuration in force after a reload. Upstreams
/// and routes are those of `after`.
[[nodiscard]] Config with_live_options(const Config& before, const Config& after);

/// Whether an upstream changes in what is fixed while it exists (OptionApply::kReplace), so that a
/// new one takes its place.
[[nodiscard]] bool needs_replacing(const upstream::UpstreamConfig& before,
                                   const upstream::UpstreamConfig& after);

}  // namespace weir::inline v0::config
