#pragma once

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "run.h"
#include "scenario_reader.h"

namespace weir::inline v0::sim {

/// Reads a scenario; the test fails if it is not valid.
inline Scenario scenario_of(const std::string& text, const std::vector<std::string>& set = {}) {
  const FileSource none = [](const std::string&) { return std::optional<std::string>(); };
  auto scenario = read_scenario_text(text, "test.toml", set, none);
  EXPECT_TRUE(scenario.has_value()) << (scenario ? "" : printed(scenario.error()));
  return scenario ? std::move(scenario).value() : Scenario{};
}

/// The totals of the calls of a scenario's only load.
inline const CallTotals& only(const RunResult& result) {
  return result.recorder.spans().front().calls.at(0);
}

/// One of the files under scenarios/.
[[nodiscard]] std::string scenario_file(const std::string& name);

/// One service, one load; the test sets the rest.
inline const char* const kPlain = R"(
duration = "20s"
seed = 7
[[service]]
name = "api"
workers = 8
time = { kind = "exponential", mean = "10ms" }
[service.admission]
[[load]]
name = "web"
to = "api"
rate = 1200
)";

/// A gateway that hedges, and a sender of messages to it.
inline const char* const kHedgedAndSent = R"(
duration = "5s"
[[service]]
name = "api"
workers = 20
time = { kind = "exponential", mean = "5ms" }
[service.replicas]
count = 2
[service.replicas.hedge]
[[sender]]
name = "node"
[[load]]
name = "l"
to = "api"
rate = 100
[[load]]
name = "m"
sender = "node"
to = "api"
rate = 100
[[verdict]]
measure = "no_hedge"
reason = "overload"
max = 0
[[verdict]]
measure = "latency_p99"
load = "l"
against = "m"
max = 2
)";

}  // namespace weir::inline v0::sim
