#include <algorithm>

#include "world.h"

// What the gateways before one service know in common.

namespace weir::inline v0::sim {
namespace {

constexpr Duration kExchangeEvery = std::chrono::seconds(1);
constexpr std::uint32_t kFirstExchange = 1;  // the token of the one at the start

ServiceBaseline scaled(ServiceBaseline baseline, double factor) noexcept {
  for (Duration* part : {&baseline.p10, &baseline.p50, &baseline.p90, &baseline.avg}) {
    *part = Duration(static_cast<std::int64_t>(static_cast<double>(part->count()) * factor));
  }
  return baseline;
}

}  // namespace

// Each exchanges at another instant, as machines that do not know of each other would.
void World::build_gateways(Service& service) {
  const std::uint32_t count = service.spec->gateways;
  service.open_gateways = count;
  if (!service.spec->shared_baseline) return;
  service.baseline = std::make_unique<policy::SharedBaseline>(count, now_);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t gateway = service.spec->first_gateway + i;
    schedule(now_, Kind::kExchange, gateway, kFirstExchange);
    schedule(now_ + kExchangeEvery * (i + 1) / count, Kind::kExchange, gateway);
  }
}

void World::refresh_gateways(Service& service) noexcept {
  service.open_gateways = service.spec->gateways;
  for (std::size_t i = 0; i < service.active.size(); ++i) {
    const FaultSpec& fault = service.spec->faults[i];
    if (!service.active[i] || fault.kind != FaultKind::kGateways) continue;
    service.open_gateways = std::min(service.open_gateways, fault.gateways);
  }
}

void World::exchange(Service& gateway, std::uint32_t token) {
  Service& service = services_[gateway.spec->calls.front().to];
  const std::uint32_t number = gateway.spec->gateway;
  if (number <= service.open_gateways) {
    BaselineReport report =
        gateway.controller->exchange_baseline(ScopeId::kFirst, service.baseline->news(now_));
    for (std::size_t i = 0; i < service.active.size(); ++i) {
      const FaultSpec& fault = service.spec->faults[i];
      const bool lies = fault.kind == FaultKind::kBaseline && fault.gateway == number;
      if (lies && service.active[i] && report.measured) {
        report.measured = scaled(*report.measured, fault.factor);
      }
    }
    service.baseline->report(number - 1, report, now_);
  }
  if (token != kFirstExchange && now_ < end_)
    schedule(now_ + kExchangeEvery, Kind::kExchange, gateway.index);
}

}  // namespace weir::inline v0::sim
