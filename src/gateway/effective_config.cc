#include "effective_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "weir/experimental/gateway/route_modes_config.h"

namespace weir::inline v0::gateway {
namespace {

struct RuleRow {
  std::string_view name;  // as in admission.mode_<name>
  RuleMode RuleModes::*mode;
  std::optional<RuleMode> RouteModes::*of_route;
};
constexpr std::array kRules = {
    RuleRow{"deadline", &RuleModes::deadline, &RouteModes::deadline},
    RuleRow{"memory", &RuleModes::memory, &RouteModes::memory},
    RuleRow{"peer", &RuleModes::peer, &RouteModes::peer},
    RuleRow{"actor", &RuleModes::actor, &RouteModes::actor},
    RuleRow{"bytes", &RuleModes::bytes, &RouteModes::bytes},
    RuleRow{"class_cap", &RuleModes::class_cap, &RouteModes::class_cap},
    RuleRow{"limit", &RuleModes::limit, &RouteModes::limit},
};

const RuleRow* row_of(std::string_view rule) noexcept {
  const auto found = std::find_if(kRules.begin(), kRules.end(),
                                  [&](const RuleRow& row) { return row.name == rule; });
  return found == kRules.end() ? nullptr : &*found;
}

const upstream::UpstreamConfig* upstream_of(const config::Config& config, std::string_view name) {
  const auto found = std::find_if(config.upstreams.begin(), config.upstreams.end(),
                                  [&](const auto& one) { return one.name == name; });
  return found == config.upstreams.end() ? nullptr : &*found;
}

void shadow(config::Config& config, std::string_view rule) {
  const RuleRow* const row = row_of(rule);
  if (row == nullptr) return;
  RuleMode& mode = config.admission.modes.*row->mode;
  if (mode == RuleMode::kEnforce) mode = RuleMode::kShadow;
  for (RouteConfig& route : config.routes) {
    std::optional<RuleMode>& own = route.modes.*row->of_route;
    if (own == RuleMode::kEnforce) own = RuleMode::kShadow;
  }
}

bool enforces(const config::Config& config, std::string_view rule) {
  const RuleRow* const row = row_of(rule);
  if (row == nullptr) return false;
  if (config.admission.modes.*row->mode == RuleMode::kEnforce) return true;
  return std::any_of(config.routes.begin(), config.routes.end(), [&](const RouteConfig& route) {
    return route.modes.*row->of_route == RuleMode::kEnforce;
  });
}

void cap(config::Config& config, const Override& one) {
  for (upstream::UpstreamConfig& upstream : config.upstreams) {
    if (upstream.name != one.upstream) continue;
    const LimitConfig now = config.limit_of(upstream);
    upstream.limit.max_limit = std::min(now.max_limit, one.limit);
    upstream.limit.initial_limit = std::min(now.initial_limit, one.limit);
    upstream.limit.min_limit = std::min(now.min_limit, one.limit);
  }
}

}  // namespace

config::Config with_overrides(config::Config config, std::span<const Override> overrides) {
  for (const Override& one : overrides) {
    if (one.kind == OverrideKind::kShadow) shadow(config, one.target);
    if (one.kind == OverrideKind::kCap) cap(config, one);
  }
  return config;
}

std::string why_ended(const Override& one, const config::Config& config) {
  const auto no_upstream = [&] { return "there is no upstream " + one.upstream + " any more"; };
  switch (one.kind) {
    case OverrideKind::kDrain:
      return upstream_of(config, one.upstream) == nullptr ? no_upstream() : std::string();
    case OverrideKind::kShadow:
      return enforces(config, one.target) ? std::string()
                                          : "the configuration does not enforce the rule any more";
    case OverrideKind::kCap: {
      const upstream::UpstreamConfig* const upstream = upstream_of(config, one.upstream);
      if (upstream == nullptr) return no_upstream();
      const LimitConfig limit = config.limit_of(*upstream);
      return one.limit >= limit.effective_min() && one.limit < limit.max_limit
                 ? std::string()
                 : "the configured limit is " + std::to_string(limit.effective_min()) + " to " +
                       std::to_string(limit.max_limit) + " now";
    }
    case OverrideKind::kLog:
      break;
  }
  if (!one.route) return {};
  const std::vector<RouteConfig> routes = config.routes_in_force();
  const bool there = one.route_number < routes.size() && routes[one.route_number] == *one.route;
  return there ? std::string() : "the route is another one now";
}

const RuleMode* mode_of(const RuleModes& modes, std::string_view rule) noexcept {
  const RuleRow* const row = row_of(rule);
  return row == nullptr ? nullptr : &(modes.*row->mode);
}

std::string rule_names() {
  std::string all;
  for (const RuleRow& row : kRules) all += (all.empty() ? "" : ", ") + std::string(row.name);
  return all;
}

std::shared_ptr<LogFocus> focus_of(std::span<const Override> overrides) noexcept {
  for (const Override& one : overrides) {
    if (one.kind == OverrideKind::kLog) return one.focus;
  }
  return nullptr;
}

std::vector<io::SocketName> drained_of(std::span<const Override> overrides,
                                       std::string_view upstream) {
  std::vector<io::SocketName> all;
  for (const Override& one : overrides) {
    if (one.kind == OverrideKind::kDrain && one.upstream == upstream) all.push_back(one.endpoint);
  }
  return all;
}

}  // namespace weir::inline v0::gateway
