#include "weir/experimental/sim/replay.h"

#include <algorithm>
#include <optional>
#include <ostream>
#include <span>
#include <utility>

#include "weir/experimental/config/load.h"

#include "config/nearest.h"
#include "config/option_table.h"
#include "policy/recording.h"
#include "replay_report.h"
#include "replay_run.h"

namespace weir::inline v0::sim {
namespace {

constexpr int kOk = 0;
constexpr int kDoesNotFit = 1;
constexpr int kUnusable = 2;
constexpr std::uint64_t kFewest = 200;  // decisions of an upstream that are worth a replay

using Loaded = Result<config::Config, std::string>;

Loaded checked(config::LoadedConfig loaded) {
  if (loaded.ok()) return std::move(loaded.config);
  std::string text;
  for (const ConfigError& error : loaded.errors) {
    text += (text.empty() ? "" : "\n") + config::to_text(error);
  }
  return unexpected(std::move(text));
}

/// --set admission.limit.max_limit=64, or upstream.app.max_limit=64: what decides about admission.
class Assigner {
 public:
  explicit Assigner(config::Config& config) : config_(config) {}

  /// Empty, or what is wrong.
  std::string set(std::string_view assignment) {
    keys_.emplace_back(assignment.substr(0, assignment.find('=')));
    const std::size_t equals = assignment.find('=');
    const std::string_view key = assignment.substr(0, equals);
    if (equals == std::string_view::npos || key.empty()) {
      return "--set " + std::string(assignment) +
             ": must be key=value, as in admission.limit.max_limit=64";
    }
    value_ = assignment.substr(equals + 1);
    for (upstream::UpstreamConfig& upstream : config_.upstreams) {
      const std::string prefix = "upstream." + upstream.name + ".";
      if (key.starts_with(prefix)) {
        return in(upstream, config::upstream_options(), key, key.substr(prefix.size()), "limit.");
      }
    }
    return in(config_, config::config_options(), key, key, "admission.");
  }

  /// Lets initial_limit follow the bounds that were set, unless it was set too: max_limit=64 asks
  /// what a limit of at most 64 would have done, whatever the recorded initial_limit is. Returns
  /// what that changed for the upstream.
  std::vector<std::string> follow_bounds(std::string_view replayed) {
    std::vector<std::string> changed;
    const auto follow = [&](const std::string& owner, const LimitConfig& limit) {
      const std::uint32_t initial = followed(limit, owner);
      if (initial == limit.initial_limit) return std::optional<std::uint32_t>();
      if (owner == kCommon || owner == "upstream." + std::string(replayed) + ".") {
        changed.push_back(owner + "initial_limit=" + std::to_string(initial) +
                          (initial < limit.initial_limit ? " (lowered with max_limit)"
                                                         : " (raised with min_limit)"));
      }
      return std::optional(initial);
    };
    LimitConfig& common = config_.admission.limit;
    common.initial_limit = follow(kCommon, common).value_or(common.initial_limit);
    for (upstream::UpstreamConfig& upstream : config_.upstreams) {
      const auto initial = follow("upstream." + upstream.name + ".", config_.limit_of(upstream));
      if (initial) upstream.limit.initial_limit = initial;
    }
    return changed;
  }

 private:
  static constexpr const char* kCommon = "admission.limit.";

  [[nodiscard]] bool was_set(const std::string& owner, std::string_view name) const {
    return std::any_of(keys_.begin(), keys_.end(), [&](const std::string& key) {
      return key == owner + std::string(name) || key == kCommon + std::string(name);
    });
  }

  [[nodiscard]] std::uint32_t followed(const LimitConfig& limit, const std::string& owner) const {
    std::uint32_t initial = limit.initial_limit;
    if (was_set(owner, "initial_limit")) return initial;
    if (was_set(owner, "min_limit")) initial = std::max(initial, limit.min_limit);
    if (was_set(owner, "max_limit")) initial = std::min(initial, limit.max_limit);
    return initial;
  }

  template <class Owner>
  std::string in(Owner& owner, std::span<const config::Option<Owner>> options, std::string_view key,
                 std::string_view wanted, std::string_view fields) {
    std::vector<std::string> known;
    for (const config::Option<Owner>& option : options) {
      if (!option.row.field.starts_with(fields)) continue;
      const std::string name = fields == "limit." ? std::string(option.row.name) : option.row.key();
      if (name == wanted) {
        const auto refusal = option.assign(
            owner, config::raw_from_text(std::string(value_), option.row), option.row);
        return refusal ? "--set " + std::string(key) + "=" + std::string(value_) + ": must be " +
                             *refusal
                       : std::string();
      }
      known.push_back(name);
    }
    const std::vector<std::string_view> names(known.begin(), known.end());
    const std::string_view meant = config::nearest(wanted, names);
    return "--set " + std::string(key) + ": no option of admission" +
           (meant.empty() ? std::string() : "; did you mean " + std::string(meant) + "?");
  }

  config::Config& config_;
  std::string_view value_;
  std::vector<std::string> keys_;  // that were set
};

/// Admission for one upstream of a configuration, as the simulator has it: one scope.
std::optional<AdmissionConfig> admission_of(const config::Config& config, std::string_view name) {
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    if (upstream.name != name) continue;
    AdmissionConfig admission = config.admission;
    admission.limit = config.limit_of(upstream);
    return admission;
  }
  return std::nullopt;
}

class Replay {
 public:
  Replay(const ReplayOptions& options, std::ostream& out, std::ostream& err)
      : options_(options), out_(out), err_(err) {}

  int run() {
    auto recording = policy::read_recording(std::as_bytes(std::span(options_.bytes)));
    if (!recording) return bad(options_.name + ": " + recording.error());
    title_.file = options_.name;
    title_.decisions = recording->decisions.size();
    title_.torn = recording->torn;
    title_.workers = options_.workers;
    const std::optional<std::uint16_t> scope = choose(*recording);
    if (!scope) return kUnusable;
    Loaded then = recorded_config(*recording);
    if (!then) return bad(then.error());
    const auto admission = admission_of(*then, title_.upstream);
    if (!admission) return bad(nowhere("the recorded configuration"));
    std::optional<ReplayCase> other;
    if (const std::string wrong = read_other(*then, other); !wrong.empty()) return bad(wrong);
    const ReplayResult result =
        replay_and_compare(load_of_scope(*recording, *scope), *admission, other);
    if (result.load.decisions.size() < kFewest || result.fit.samples == 0) {
      return bad(options_.name + ": only " + std::to_string(result.load.decisions.size()) +
                 " decisions about " + title_.upstream + " can be replayed; at least " +
                 std::to_string(kFewest) + " are needed, some of them served");
    }
    out_ << (options_.json ? replay_json(title_, result) : replay_text(title_, result));
    return result.fits() ? kOk : kDoesNotFit;
  }

 private:
  int bad(const std::string& text) {
    err_ << "weir replay: " << text << "\n";
    return kUnusable;
  }
  [[nodiscard]] std::string nowhere(const std::string& where) const {
    return where + " has no upstream " + title_.upstream;
  }

  std::optional<std::uint16_t> choose(const policy::Recording& recording) {
    const policy::RecordingHeader::Scope* chosen = nullptr;
    std::int64_t most = -1;
    for (const auto& scope : recording.header.scopes) {
      const std::int64_t count =
          std::count_if(recording.decisions.begin(), recording.decisions.end(),
                        [&](const auto& one) { return one.scope == scope.id; });
      const bool named = scope.name == options_.upstream;
      if (!options_.upstream.empty() ? !named : count <= most) continue;
      most = count;
      chosen = &scope;
    }
    for (const auto& scope : recording.header.scopes) {
      if (&scope != chosen) title_.others.push_back(scope.name);
    }
    if (chosen == nullptr) {
      std::string names;
      for (const std::string& name : title_.others) names += " " + name;
      bad(options_.name + ": there is no upstream " + options_.upstream +
          (names.empty() ? "; it names none" : "; there are" + names));
      return std::nullopt;
    }
    title_.upstream = chosen->name;
    return chosen->id;
  }

  Loaded recorded_config(const policy::Recording& recording) {
    if (!options_.recorded_config.empty()) {
      return checked(config::load_config_file(options_.recorded_config));
    }
    Loaded loaded =
        checked(config::load_config(recording.header.config, options_.name + " (its header)"));
    if (loaded) return loaded;
    return unexpected(loaded.error() + "\nGive the configuration of then with --recorded-config");
  }

  std::string read_other(const config::Config& then, std::optional<ReplayCase>& other) {
    if (options_.config.empty() && options_.assignments.empty() && options_.workers == 0) return {};
    Loaded next = then;
    if (!options_.config.empty()) next = checked(config::load_config_file(options_.config));
    if (!next) return next.error();
    Assigner assigner(*next);
    for (const std::string& assignment : options_.assignments) {
      if (std::string wrong = assigner.set(assignment); !wrong.empty()) return wrong;
    }
    const std::vector<std::string> followed = assigner.follow_bounds(title_.upstream);
    for (const ConfigError& error : next->validate()) return config::to_text(error);
    const auto admission = admission_of(*next, title_.upstream);
    if (!admission) return nowhere(options_.config);
    std::vector<std::string>& changes = title_.changes;
    if (!options_.config.empty()) changes.push_back(options_.config);
    changes.insert(changes.end(), options_.assignments.begin(), options_.assignments.end());
    changes.insert(changes.end(), followed.begin(), followed.end());
    other = ReplayCase{.admission = *admission, .workers = options_.workers};
    return {};
  }

  const ReplayOptions& options_;
  std::ostream& out_;
  std::ostream& err_;
  ReplayTitle title_;
};

}  // namespace

int replay(const ReplayOptions& options, std::ostream& out, std::ostream& err) {
  return Replay(options, out, err).run();
}

}  // namespace weir::inline v0::sim
