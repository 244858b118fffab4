#include "live_options.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "weir/experimental/config/load.h"

namespace weir::inline v0::gateway {
namespace {

std::string sentence_of(const RotatedCertificate& one) {
  const std::string before =
      one.expires_before.empty() ? "none" : one.subject_before + ", expires " + one.expires_before;
  return "certificate " + one.file + ": " + one.subject + ", expires " + one.expires +
         "; before: " + before;
}

}  // namespace

ReloadReport LiveOptions::reload(const config::Config& next) {
  ReloadReport report;
  const config::Config before = core_.config_in_force();
  config::Config now = with_live_options(before, next);
  report.refused = objection_to(next, now);
  // Files are read again even if no option changed: a certificate may have.
  const auto dial_tls = consumers_.read_dial_tls(now);
  if (report.ok() && !dial_tls) report.refused = dial_tls.error();
  if (report.ok()) {
    const auto read = consumers_.set_tls(now.server.tls);
    if (!read) {
      report.refused =
          read.error().key + " = " + read.error().value + ": wanted is " + read.error().allowed;
    } else {
      for (const RotatedCertificate& one : *read) report.rotated.push_back(sentence_of(one));
    }
  }
  std::set<config::OptionApply> wanted;
  for (config::ConfigChange& change : diff(before, next)) {
    if (!change.live()) {
      report.deferred.push_back(std::move(change));
    } else if (report.ok()) {
      wanted.insert(change.apply);
      report.applied.push_back(std::move(change));
    }
  }
  for (const config::OptionApply which : wanted) apply(which, now);
  if (report.ok()) {
    (*dial_tls)();
    core_.set_config(std::move(now));
  }
  return report;
}

void LiveOptions::apply(config::OptionApply which, const config::Config& now) {
  switch (which) {
    case config::OptionApply::kRestart:
    case config::OptionApply::kTls:      // done before the others, because it may fail
    case config::OptionApply::kDialTls:  // the same
    case config::OptionApply::kOnUse:
      return;
    case config::OptionApply::kAdmission:
      core_.controller.reconfigure(now.admission_for_scopes());  // valid: objection_to() checked it
      return;
    case config::OptionApply::kLimits:
      for (std::size_t i = 0; i < core_.names.size(); ++i) {
        core_.controller.set_limit(core_.scope_of(i), now.limit_of(now.upstreams[i]));
      }
      return;
    case config::OptionApply::kTimeouts:
      for (std::size_t i = 0; i < core_.names.size(); ++i) {
        core_.upstreams[i]->set_timeouts(timeouts_of(now.upstreams[i]));
      }
      return;
    case config::OptionApply::kRetries:
      for (std::size_t i = 0; i < core_.names.size(); ++i) {
        core_.upstreams[i]->set_budget_rules(policy::redundancy_budget_rules(
            now.upstreams[i].retry_budget_pct, now.upstreams[i].retry_budget_tokens_max));
      }
      return;
    case config::OptionApply::kEndpoints:
      return consumers_.set_endpoints(now);
    case config::OptionApply::kRules:
      return consumers_.set_rules(std::make_shared<const Rules>(now, core_.names));
  }
}

/// Why the live options of `next`, which yield the configuration `now`, cannot be applied without
/// the other options of `next`; empty if they can.
std::string LiveOptions::objection_to(const config::Config& next, const config::Config& now) const {
  for (const RouteConfig& route : next.routes) {
    if (std::find(core_.names.begin(), core_.names.end(), route.upstream) == core_.names.end()) {
      return "a route leads to upstream " + route.upstream +
             ", which is new: upstreams are added by a restart";
    }
  }
  constexpr std::string_view kTogether = "together with what only a restart can change, ";
  const ConfigErrors errors = now.validate();
  if (!errors.empty()) return std::string(kTogether) + config::to_text(errors.front());
  const std::uint64_t entries = core_.controller.config().actor_table_size;
  if (2 * now.admission_for_scopes().pinned_max() > entries) {
    return std::string(kTogether) +
           "admission.waiting_max = " + std::to_string(now.admission.waiting_max) +
           ": more could wait for " + std::to_string(core_.names.size()) +
           " upstreams than the actor table of " + std::to_string(entries) + " has room for";
  }
  const std::uint32_t buffers = GatewaySizes(now).request_heads;
  if (buffers > core_.sizes.request_heads) {
    return std::string(kTogether) +
           "admission.max_concurrent = " + std::to_string(now.admission.max_concurrent) +
           " and admission.waiting_max = " + std::to_string(now.admission.waiting_max) + " need " +
           std::to_string(buffers) + " request heads: there are " +
           std::to_string(core_.sizes.request_heads) + ", laid out at start";
  }
  return {};
}

}  // namespace weir::inline v0::gateway
