#include <utility>

#include "scenario_reader.h"

// Several gateways before one service: each has its own limiter and sees a part of the calls.

namespace weir::inline v0::sim {
namespace {

ServiceSpec gateway_of(const ServiceSpec& service, std::uint32_t to, std::uint32_t number) {
  ServiceSpec gateway;
  gateway.name = service.name + "-gateway-" + std::to_string(number);
  gateway.group = "gateways of " + service.name;
  gateway.is_gateway = true;
  gateway.gateway = number;
  gateway.workers = 1'000'000;
  gateway.holds_worker = false;
  gateway.timeout = service.timeout;
  gateway.admission = service.admission;
  gateway.calls.push_back({to, {}});
  return gateway;
}

}  // namespace

void add_gateways(NodeReader& reader, Scenario& scenario) {
  const std::size_t named = scenario.services.size();
  for (std::uint32_t at = 0; at < named; ++at) {
    const std::uint32_t count = scenario.services[at].gateways;
    if (count == 1) continue;
    if (!scenario.services[at].admission) {
      reader.fault("service", scenario.services[at].name + " has gateways and no admission",
                   "gateways only with [service.admission]");
      continue;
    }
    const auto first = static_cast<std::uint32_t>(scenario.services.size());
    for (std::uint32_t i = 1; i <= count; ++i) {
      ServiceSpec gateway = gateway_of(scenario.services[at], at, i);
      scenario.services.push_back(std::move(gateway));
    }
    scenario.services[at].first_gateway = first;
    scenario.services[at].admission.reset();
    scenario.services[at].timeout = {};
    for (LoadSpec& load : scenario.loads) {
      if (load.to != at) continue;
      load.to = first;
      load.spread = count;
      if (load.actors > 0 || load.peers > 0) {
        reader.fault("load", load.name + " has actors or peers",
                     "none of them in front of several gateways");
      }
    }
  }
}

}  // namespace weir::inline v0::sim
