#include "live_options.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "weir/base/assert.h"
#include "weir/experimental/config/load.h"
#include "weir/experimental/io/clock.h"

#include "effective_config.h"

namespace weir::inline v0::gateway {
namespace {

std::string sentence_of(const RotatedCertificate& one) {
  const std::string before =
      one.expires_before.empty() ? "none" : one.subject_before + ", expires " + one.expires_before;
  return "certificate " + one.file + ": " + one.subject + ", expires " + one.expires +
         "; before: " + before;
}

std::string counted(std::uint64_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

/// What became of each upstream that came, went or was replaced.
std::vector<std::string> sentences_of(const UpstreamSet& before, const UpstreamSet& after) {
  std::vector<std::string> all;
  const auto finishing = [](const ServedUpstream& upstream) {
    const std::uint32_t requests = upstream.requests_left.load();
    return counted(requests, "request") + (requests == 1 ? " finishes" : " finish");
  };
  for (const auto& one : after.all) {
    if (before.has(*one)) continue;
    const std::string endpoints = counted(one->upstream.endpoints()->members.size(), "endpoint");
    const std::shared_ptr<ServedUpstream> replaced = before.find(one->name());
    all.push_back("upstream " + one->name() +
                  (replaced == nullptr ? ": added, " + endpoints
                                       : ": replaced, " + endpoints + "; " + finishing(*replaced) +
                                             " at the one before"));
  }
  for (const auto& one : before.all) {
    if (after.find(one->name()) != nullptr) continue;
    all.push_back("upstream " + one->name() + ": removed; " + finishing(*one));
  }
  return all;
}

}  // namespace

ReloadReport LiveOptions::reload(const config::Config& next) {
  const std::scoped_lock lock(mutex_);
  ReloadReport report;
  const config::Config before = core_.config_in_force();
  const std::shared_ptr<const UpstreamSet> upstreams_before = core_.upstreams.in_force();
  Prepared prepared{
      .now = with_live_options(before, next), .contexts = {}, .upstreams = {}, .identity = {}};
  report.refused = prepare(before, prepared);
  if (report.ok()) {
    // Files are read again even if no option changed: a certificate may have.
    const auto read = consumers_.set_tls(prepared.now.server.tls);
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
  if (!report.ok()) {
    consumers_.keep_endpoints(*upstreams_before);
    return report;
  }
  end_overrides(prepared.now, report);
  put_in_force(prepared, wanted);
  end_drains(*prepared.upstreams, report);
  report.upstreams = sentences_of(*upstreams_before, *prepared.upstreams);
  return report;
}

/// Does everything that may fail and changes nothing yet. Returns why it failed.
std::string LiveOptions::prepare(const config::Config& before, Prepared& prepared) {
  std::string objection = objection_to(prepared.now);
  if (!objection.empty()) return objection;
  const UpstreamTable::Change change{.before = before, .after = prepared.now};
  objection = core_.upstreams.objection(change);
  if (!objection.empty() && !core_.upstreams.leaving().empty()) {
    // One that was removed just before may be about to free its room.
    consumers_.wait_briefly([&] {
      objection = core_.upstreams.objection(change);
      return objection.empty();
    });
  }
  if (!objection.empty()) return objection;
  if (objection = actions_objection(prepared.now); !objection.empty()) return objection;
  auto identity = read_identity_files(prepared.now.actors);
  if (!identity) return identity.error();
  prepared.identity = std::move(*identity);
  auto contexts = consumers_.read_dial_tls(prepared.now);
  if (!contexts) return contexts.error();
  prepared.contexts = std::move(*contexts);
  prepared.upstreams = core_.upstreams.made_for(change, prepared.contexts);
  return consumers_.find_endpoints(*prepared.upstreams, prepared.now);
}

void LiveOptions::put_in_force(const Prepared& prepared,
                               const std::set<config::OptionApply>& wanted) {
  for (const config::OptionApply which : wanted) apply(which, prepared);
  const UpstreamSet& upstreams = *prepared.upstreams;
  const config::Config effective = with_overrides(prepared.now, overrides_.all());
  // Also for one that came back before the last request of the old one had finished.
  set_limits(effective, upstreams);
  for (std::size_t i = 0; i < prepared.contexts.size(); ++i) {
    if (prepared.contexts[i] == nullptr) continue;
    upstreams.all[i]->upstream.set_tls(prepared.contexts[i]);
  }
  set_drained(upstreams, io::monotonic_now());
  rules_ = std::make_shared<const Rules>(effective, upstreams.names(), prepared.identity,
                                         focus_of(overrides_.all()));
  consumers_.take({.upstreams = prepared.upstreams, .rules = rules_});
  core_.upstreams.put_in_force(prepared.upstreams);
  consumers_.keep_endpoints(upstreams);
  core_.set_config(prepared.now);
  core_.set_overrides(overrides_.all());
}

void LiveOptions::set_limits(const config::Config& effective, const UpstreamSet& upstreams) {
  for (std::size_t i = 0; i < upstreams.all.size(); ++i) {
    core_.controller.set_limit(upstreams.all[i]->scope(),
                               effective.limit_of(effective.upstreams[i]));
  }
}

void LiveOptions::set_drained(const UpstreamSet& upstreams, TimePoint now) {
  for (const auto& one : upstreams.all) {
    one->upstream.set_drained(drained_of(overrides_.all(), one->name()), now);
  }
}

bool LiveOptions::change_overrides(const std::function<void(OverrideTable&)>& change,
                                   TimePoint now) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  const std::vector<Override> before = overrides_.all();
  change(overrides_);
  const config::Config configured = core_.config_in_force();
  const config::Config effective = with_overrides(configured, overrides_.all());
  const std::shared_ptr<const UpstreamSet> upstreams = core_.upstreams.in_force();
  const ConfigErrors errors = core_.controller.reconfigure(in_controller(effective.admission));
  WEIR_ASSERT(errors.empty());  // only modes differ from what is in force
  set_limits(effective, *upstreams);
  set_drained(*upstreams, now);
  const bool routes = with_overrides(configured, before).routes != effective.routes;
  if (routes || focus_of(before) != focus_of(overrides_.all())) {
    rules_ = std::make_shared<const Rules>(
        rules_->with(effective, upstreams->names(), focus_of(overrides_.all())));
    consumers_.take({.upstreams = upstreams, .rules = rules_});
  }
  core_.set_overrides(overrides_.all());
  return true;
}

void LiveOptions::end_overrides(const config::Config& config, ReloadReport& report) {
  const std::vector<Override> all = overrides_.all();
  for (const Override& one : all) {
    const std::string why = why_ended(one, config);
    if (why.empty()) continue;
    report.overrides.push_back("override " + one.id() + " (" + one.sentence() + ") ends: " + why);
    overrides_.remove(one.id());
  }
}

/// Endpoints are known when their sources have been asked. An upstream without any has news to
/// come.
void LiveOptions::end_drains(const UpstreamSet& upstreams, ReloadReport& report) {
  const std::vector<Override> all = overrides_.all();
  for (const Override& one : all) {
    if (one.kind != OverrideKind::kDrain) continue;
    const std::shared_ptr<ServedUpstream> upstream = upstreams.find(one.upstream);
    const auto set = upstream->upstream.endpoints();
    const bool there =
        std::any_of(set->members.begin(), set->members.end(),
                    [&](const auto& member) { return member.endpoint->name() == one.endpoint; });
    if (there || set->members.empty()) continue;
    report.overrides.push_back("override " + one.id() + " (" + one.sentence() +
                               ") ends: the upstream has no such endpoint any more");
    overrides_.remove(one.id());
  }
  if (overrides_.all().size() == all.size()) return;
  set_drained(upstreams, io::monotonic_now());
  core_.set_overrides(overrides_.all());
}

void LiveOptions::apply(config::OptionApply which, const Prepared& prepared) {
  const config::Config& now = prepared.now;
  const auto each = [&](auto change) {
    for (std::size_t i = 0; i < now.upstreams.size(); ++i) {
      change(prepared.upstreams->all[i]->upstream, now.upstreams[i]);
    }
  };
  switch (which) {
    case config::OptionApply::kRestart:
    case config::OptionApply::kTls:      // done before the others, because it may fail
    case config::OptionApply::kDialTls:  // the same
    case config::OptionApply::kLimits:   // every reload sets these three: see put_in_force()
    case config::OptionApply::kReplace:
    case config::OptionApply::kRules:
    case config::OptionApply::kOnUse:
      return;
    case config::OptionApply::kAdmission: {
      const config::Config effective = with_overrides(now, overrides_.all());
      const ConfigErrors errors = core_.controller.reconfigure(in_controller(effective.admission));
      WEIR_ASSERT(errors.empty());  // objection_to() has checked it
      return;
    }
    case config::OptionApply::kTimeouts:
      return each([](upstream::Upstream& upstream, const upstream::UpstreamConfig& config) {
        upstream.set_timeouts(timeouts_of(config));
      });
    case config::OptionApply::kRetries:
    case config::OptionApply::kHedge:
      return each([&](upstream::Upstream& upstream, const upstream::UpstreamConfig& config) {
        upstream.set_budget_rules(budget_rules_of(config, now.hedge));
        upstream.set_hedge(now.hedge);
      });
    case config::OptionApply::kEndpoints:
      return consumers_.set_endpoints(*prepared.upstreams, now);
  }
}

/// The rules with the sizes that the controller has. Limits are set for each scope.
AdmissionConfig LiveOptions::in_controller(AdmissionConfig rules) const {
  const AdmissionConfig now = core_.controller.config();
  rules.limit = now.limit;
  rules.actor_table_size = now.actor_table_size;
  rules.peer_table_size = now.peer_table_size;
  rules.scopes_max = now.scopes_max;
  return rules;
}

/// Why the configuration `now`, the live options of a file with what only a restart can change,
/// cannot be put in force; empty if it can.
std::string LiveOptions::objection_to(const config::Config& now) const {
  constexpr std::string_view kTogether = "together with what only a restart can change, ";
  const ConfigErrors errors = now.validate();
  if (!errors.empty()) return std::string(kTogether) + config::to_text(errors.front());
  const AdmissionConfig admission = in_controller(now.admission);
  if (2 * admission.pinned_max() > admission.actor_table_size) {
    return std::string(kTogether) +
           "admission.waiting_max = " + std::to_string(now.admission.waiting_max) +
           ": more could wait for " + std::to_string(admission.scopes_max) +
           " upstreams than the actor table of " + std::to_string(admission.actor_table_size) +
           " has room for";
  }
  const std::uint32_t buffers = GatewaySizes::heads_for(now, admission.scopes_max);
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
