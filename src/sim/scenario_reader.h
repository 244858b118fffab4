#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "weir/base/config_error.h"
#include "weir/base/result.h"

#include "config_node.h"
#include "node_reader.h"
#include "scenario.h"

namespace weir::inline v0::sim {

/// Reads a file named in a scenario (a trace); nullopt if it cannot be read. The path is relative
/// to the scenario.
using FileSource = std::function<std::optional<std::string>(const std::string& path)>;

/// Creates a scenario from a parsed file, or returns everything that is wrong with it.
///
/// Promises: an accepted scenario can be run: all names resolve, all numbers are in range, the
/// calls between services have no cycle, every admission configuration is valid.
[[nodiscard]] Result<Scenario, ConfigErrors> read_scenario(const ConfigNode& root,
                                                           const std::string& file,
                                                           const FileSource& files);

/// The same from TOML text, with `--set` assignments applied first.
[[nodiscard]] Result<Scenario, ConfigErrors> read_scenario_text(
    std::string_view text, const std::string& file, std::span<const std::string> assignments,
    const FileSource& files);

/// One line per fault: `file:line: key = value: allowed …`.
[[nodiscard]] std::string printed(const ConfigErrors& errors);

// ---- the parts, each in its own file

/// Names that references in a scenario resolve to.
struct ScenarioNames {
  std::vector<std::string> services{};
  std::vector<std::string> loads{};
  std::vector<std::string> senders{};
};

void read_distribution(NodeReader& reader, std::string_view key, Distribution& out);
void read_rate_points(NodeReader& reader, std::string_view key, std::string_view value_key,
                      std::vector<RatePoint>& out);
void read_reference(NodeReader& reader, std::string_view key, const std::vector<std::string>& names,
                    std::uint32_t& out);
void read_link(NodeReader& reader, LinkSpec& out);
void read_caller(NodeReader& reader, CallerSpec& out);
void read_sender(NodeReader& reader, SenderSpec& out);
void read_load(NodeReader& reader, const ScenarioNames& names, const FileSource& files,
               LoadSpec& out);
void read_service(NodeReader& reader, const ScenarioNames& names, const FileSource& files,
                  ServiceSpec& out);
void read_replicas(NodeReader& reader, ServiceSpec& out);
/// Puts the replicas of services (`[service.replicas]`) behind them, as services of their own.
void add_replicas(Scenario& scenario);
void read_admission(NodeReader& reader, AdmissionConfig& out);
void read_hedge(NodeReader& reader, policy::HedgeConfig& out);
void read_verdict(NodeReader& reader, const ScenarioNames& names, const Scenario& scenario,
                  VerdictSpec& out);
/// Puts the gateways that services ask for (`gateways = N`) before them, as services of their own.
void add_gateways(NodeReader& reader, Scenario& scenario);
void read_phase(NodeReader& reader, const Scenario& scenario, PhaseSpec& out);
/// What a phase demands, as verdicts.
[[nodiscard]] std::vector<VerdictSpec> verdicts_of(const PhaseSpec& phase,
                                                   const Scenario& scenario);
/// The highest p99 from dispatch that a phase allows; zero: latency is not judged.
[[nodiscard]] Duration latency_bound(const PhaseSpec& phase, const Scenario& scenario);
/// The service whose limiter a comparison with a fixed limit is about: the first with admission.
[[nodiscard]] std::uint32_t first_guarded(const Scenario& scenario) noexcept;

}  // namespace weir::inline v0::sim
