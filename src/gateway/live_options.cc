#include "live_options.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "weir/base/assert.h"
#include "weir/experimental/config/load.h"

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
  put_in_force(prepared, wanted);
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
  const std::vector<std::shared_ptr<ServedUpstream>>& upstreams = prepared.upstreams->all;
  for (std::size_t i = 0; i < upstreams.size(); ++i) {
    const config::Config& now = prepared.now;
    // Also for one that came back before the last request of the old one had finished.
    core_.controller.set_limit(upstreams[i]->scope(), now.limit_of(now.upstreams[i]));
    const bool context = i < prepared.contexts.size() && prepared.contexts[i] != nullptr;
    if (context) upstreams[i]->upstream.set_tls(prepared.contexts[i]);
  }
  consumers_.take({.upstreams = prepared.upstreams,
                   .rules = std::make_shared<const Rules>(prepared.now, prepared.upstreams->names(),
                                                          prepared.identity)});
  core_.upstreams.put_in_force(prepared.upstreams);
  consumers_.keep_endpoints(*prepared.upstreams);
  core_.set_config(prepared.now);
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
      const ConfigErrors errors = core_.controller.reconfigure(in_controller(now.admission));
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
