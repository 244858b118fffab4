#include "weir/experimental/config/diff.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "config/option_table.h"

namespace weir::inline v0::config {
namespace {

/// TLS resources are allocated at start, so only a server with TLS enabled can reload TLS options.
OptionApply apply_of(const OptionRow& row, const Config& before, const Config& after) {
  const bool switched = before.server.tls.enabled() != after.server.tls.enabled();
  return row.apply == OptionApply::kTls && switched ? OptionApply::kRestart : row.apply;
}
template <class Owner>
OptionApply apply_of(const OptionRow& row, const Owner&, const Owner&) {
  return row.apply;
}

template <class Owner>
void compare(std::vector<ConfigChange>& changes, std::span<const Option<Owner>> options,
             const Owner& before, const Owner& after, std::string_view prefix) {
  for (const Option<Owner>& option : options) {
    std::string old_text = option.print(before, option.row);
    std::string new_text = option.print(after, option.row);
    if (old_text == new_text) continue;
    const std::string key =
        prefix.empty() ? option.row.key() : std::string(prefix) + key_inside(option.row);
    changes.push_back(
        {key, std::move(old_text), std::move(new_text), apply_of(option.row, before, after)});
  }
}

const upstream::UpstreamConfig* find(const std::vector<upstream::UpstreamConfig>& upstreams,
                                     std::string_view name) {
  const auto found =
      std::find_if(upstreams.begin(), upstreams.end(),
                   [&](const upstream::UpstreamConfig& upstream) { return upstream.name == name; });
  return found == upstreams.end() ? nullptr : &*found;
}

void compare_upstreams(std::vector<ConfigChange>& changes, const Config& before,
                       const Config& after) {
  for (const upstream::UpstreamConfig& old_one : before.upstreams) {
    const std::string key = "upstream." + old_one.name;
    const upstream::UpstreamConfig* new_one = find(after.upstreams, old_one.name);
    if (new_one == nullptr) {
      changes.push_back({key, quoted_text(old_one.name), "", OptionApply::kReplace});
    } else {
      compare(changes, upstream_options(), old_one, *new_one, key + ".");
    }
  }
  for (const upstream::UpstreamConfig& new_one : after.upstreams) {
    if (find(before.upstreams, new_one.name) != nullptr) continue;
    changes.push_back(
        {"upstream." + new_one.name, "", quoted_text(new_one.name), OptionApply::kReplace});
  }
}

void compare_routes(std::vector<ConfigChange>& changes, const Config& before, const Config& after) {
  const std::size_t count = std::max(before.routes.size(), after.routes.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = "route[" + std::to_string(i) + "]";
    if (i >= after.routes.size()) {
      changes.push_back({key, quoted_text(before.routes[i].upstream), "", OptionApply::kRules});
    } else if (i >= before.routes.size()) {
      changes.push_back({key, "", quoted_text(after.routes[i].upstream), OptionApply::kRules});
    } else {
      compare(changes, route_options(), before.routes[i], after.routes[i], key + ".");
    }
  }
}

template <class Owner>
void copy_live(std::span<const Option<Owner>> options, Owner& to, const Owner& from) {
  const Owner before = to;
  for (const Option<Owner>& option : options) {
    if (is_live(apply_of(option.row, before, from))) option.copy(to, from);
  }
}

}  // namespace

Config with_live_options(const Config& before, const Config& after) {
  Config result = before;
  copy_live(config_options(), result, after);
  result.upstreams = after.upstreams;
  result.routes = after.routes;
  return result;
}

bool needs_replacing(const upstream::UpstreamConfig& before,
                     const upstream::UpstreamConfig& after) {
  const std::span<const Option<upstream::UpstreamConfig>> options = upstream_options();
  return std::any_of(options.begin(), options.end(), [&](const auto& option) {
    return option.row.apply == OptionApply::kReplace &&
           option.print(before, option.row) != option.print(after, option.row);
  });
}

std::vector<ConfigChange> diff(const Config& before, const Config& after) {
  std::vector<ConfigChange> changes;
  compare(changes, config_options(), before, after, "");
  compare_upstreams(changes, before, after);
  compare_routes(changes, before, after);
  return changes;
}

}  // namespace weir::inline v0::config
