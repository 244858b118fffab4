#include <array>

#include "weir/experimental/config/load.h"
#include "weir/experimental/config/weir_config.h"

#include "config/option_table.h"
#include "config/raw_config.h"
#include "scenario_reader.h"

namespace weir::inline v0::sim {
namespace {

void read_fault(NodeReader& reader, const ServiceSpec& service, FaultSpec& out) {
  constexpr std::array<std::string_view, 9> kKinds = {
      "pause", "slow", "crash", "errors", "workers", "gateways", "baseline", "absent", "stall"};
  const auto replicas =
      static_cast<std::uint32_t>(service.replicas ? service.replicas->each.size() : 0);
  reader.require("at", "an instant of the run, such as \"30s\"");
  reader.duration("at", out.at);
  reader.require("kind",
                 "one of pause, slow, crash, errors, workers, gateways, baseline, absent, "
                 "stall");
  reader.choice("kind", out.kind, kKinds);
  if (out.kind != FaultKind::kWorkers) reader.duration("lasts", out.lasts);
  reader.duration("every", out.every);
  if (out.every.count() > 0 && out.every <= out.lasts) {
    reader.fault("every", "not longer than lasts", "longer than lasts");
  }
  if (replicas > 0) reader.whole("replica", out.replica, 1U, replicas);
  switch (out.kind) {
    case FaultKind::kStall:
      if (replicas == 0) reader.fault("kind", "stall", "only with [service.replicas]");
      [[fallthrough]];
    case FaultKind::kPause:
    case FaultKind::kCrash:
      reader.require("lasts", "how long, such as \"2s\"");
      break;
    case FaultKind::kSlow:
      reader.require("factor", "0.01 to 1000");
      reader.number("factor", out.factor, 0.01, 1000.0);
      break;
    case FaultKind::kErrors:
      reader.require("share", "0 to 1");
      reader.number("share", out.factor, 0.0, 1.0);
      reader.duration("time", out.time);
      break;
    case FaultKind::kAbsent:
      reader.require("share", "0 to 1");
      reader.number("share", out.factor, 0.0, 1.0);
      break;
    case FaultKind::kWorkers:
      reader.require("workers", "1 to 1000000");
      reader.whole("workers", out.workers, 1U, 1'000'000U);
      break;
    case FaultKind::kGateways:
      reader.require("gateways", "how many of the gateways get calls");
      reader.whole("gateways", out.gateways, 1U, service.gateways);
      break;
    case FaultKind::kBaseline:
      reader.require("gateway", "which gateway, counted from 1");
      reader.whole("gateway", out.gateway, 1U, service.gateways);
      reader.require("factor", "0.01 to 1000");
      reader.number("factor", out.factor, 0.01, 1000.0);
      break;
  }
}

void read_memory(NodeReader& reader, MemorySpec& out) {
  read_rate_points(reader, "used", "used", out.used);
  reader.number("per_request", out.per_request, 0.0, 1.0);
  reader.duration("restart", out.restart);
  for (const RatePoint& point : out.used) {
    if (point.value > 1) reader.fault("used", "above 1", "shares of the memory limit, 0 to 1");
  }
}

config::RawValue raw_of(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::kString:
      return {node.text};
    case ConfigNode::Kind::kInteger:
      return {node.integer};
    case ConfigNode::Kind::kFloat:
      return {node.number};
    case ConfigNode::Kind::kBoolean:
      return {node.boolean};
    case ConfigNode::Kind::kTable:
    case ConfigNode::Kind::kArray:
    case ConfigNode::Kind::kOther:
      break;
  }
  return {config::RawOther{name_of(node.kind)}};
}

/// A section of weir.toml, and where its options are in the configuration.
struct Section {
  std::string_view name;
  std::string_view fields;
};

// Names, kinds and ranges come from the one table of options.
void read_section(NodeReader& reader, const Section& section, config::Config& config) {
  for (const config::Option<config::Config>& option : config::config_options()) {
    if (option.row.section != section.name) continue;
    if (!option.row.field.starts_with(section.fields)) continue;
    const ConfigNode* node = reader.raw(option.row.name);
    if (node == nullptr) continue;
    if (const config::Refusal refusal = option.assign(config, raw_of(*node), option.row)) {
      reader.fault(option.row.name, node->printed(), *refusal);
    }
  }
}

}  // namespace

void read_admission(NodeReader& reader, AdmissionConfig& out) {
  config::Config config;
  config.admission = out;
  constexpr std::string_view kFields = "admission.";
  read_section(reader, {"admission", kFields}, config);
  for (const std::string_view part : {"limit", "actors", "priority", "memory"}) {
    const std::string section = part == "limit" ? "admission.limit" : std::string(part);
    reader.table(part, [&](NodeReader& r) { read_section(r, {section, kFields}, config); });
  }
  out = config.admission;
  reader.adopt(out.validate());
}

void read_hedge(NodeReader& reader, policy::HedgeConfig& out) {
  config::Config config;
  config.hedge = out;
  read_section(reader, {"hedge", "hedge."}, config);
  out = config.hedge;
  reader.adopt(out.validate());
}

// Admission as a gateway with that configuration has it.
void read_config_file(NodeReader& reader, const FileSource& files, ServiceSpec& out) {
  std::string path;
  reader.text("config", path);
  if (path.empty()) return;
  const auto text = files(path);
  if (!text) return reader.fault("config", path, "a weir.toml that can be read");
  config::LoadedConfig loaded = config::load_config(*text, path);
  for (const ConfigError& error : loaded.errors) {
    reader.fault("config", config::to_text(error), "a valid weir.toml; see weir check");
  }
  out.admission = loaded.config.admission;
  if (!out.replicas || out.replicas->hedge || !loaded.config.hedge.enabled) return;
  out.replicas->hedge = loaded.config.hedge;
}

void read_service(NodeReader& reader, const ScenarioNames& names, const FileSource& files,
                  ServiceSpec& out) {
  reader.text("name", out.name);
  reader.whole("gateways", out.gateways, 1U, 1000U);
  reader.boolean("shared_baseline", out.shared_baseline);
  reader.text("group", out.group);
  reader.require("workers", "1 to 1000000");
  reader.whole("workers", out.workers, 1U, 1'000'000U);
  reader.require("time", "a duration or a distribution");
  read_distribution(reader, "time", out.time);
  reader.number("contention", out.contention, 0.0, 10.0);
  reader.boolean("sharing", out.sharing);
  reader.boolean("holds_worker", out.holds_worker);
  reader.boolean("stops_running", out.stops_running);
  reader.whole("queue_max", out.queue_max, 0U, 100'000'000U);
  reader.duration("timeout", out.timeout);
  reader.each("call", [&](NodeReader& r) {
    CallSpec& call = out.calls.emplace_back();
    r.require("to", "the name of a service");
    read_reference(r, "to", names.services, call.to);
    read_caller(r, call.caller);
  });
  read_replicas(reader, out);
  reader.each("fault", [&](NodeReader& r) { read_fault(r, out, out.faults.emplace_back()); });
  reader.table("memory", [&](NodeReader& r) { read_memory(r, out.memory.emplace()); });
  read_config_file(reader, files, out);
  reader.table("admission", [&](NodeReader& r) {
    if (!out.admission) out.admission.emplace();
    read_admission(r, *out.admission);
  });
}

}  // namespace weir::inline v0::sim
