#include "live/live_json.h"

#include <array>
#include <cmath>

namespace weir::inline v0::gateway {

LiveJson number(double value) {
  if (!std::isfinite(value) || value == 0) return 0;
  const double digits = std::floor(std::log10(std::abs(value)));
  const double scale = std::pow(10.0, 2 - digits);
  const double rounded = std::round(value * scale) / scale;
  constexpr double kWhole = 1e15;  // above, a double has no fraction and may not fit
  if (rounded == std::floor(rounded) && std::abs(rounded) < kWhole) {
    return static_cast<std::int64_t>(rounded);
  }
  return rounded;
}

std::string json_text(const LiveJson& json) {
  return json.dump(-1, ' ', true, LiveJson::error_handler_t::replace);
}

LiveJson verdict_json(const LiveUpstream& upstream) {
  const policy::CauseFacts& facts = facts_of(upstream.diagnosis.cause);
  const policy::Evidence& evidence = upstream.diagnosis.evidence;
  return {{"upstream", upstream.name},
          {"cause", facts.name},
          {"sentence", facts.sentence},
          {"next_step", facts.next_step},
          {"for_s", upstream.cause_seconds},
          {"evidence",
           {{"offered", number(evidence.offered)},
            {"answered", number(evidence.answered)},
            {"refused", number(evidence.refused)},
            {"latency_ms", number(evidence.latency_ms)},
            {"usual_offered", number(evidence.usual_offered)},
            {"usual_latency_ms", number(evidence.usual_latency_ms)},
            {"best_answered", number(evidence.best_answered)}}}};
}

std::string_view state_text(OperatorState state) noexcept {
  constexpr std::array<std::string_view, 3> kTexts = {"HEALTHY", "PRESSURED", "OVERLOADED"};
  return kTexts[static_cast<std::size_t>(state)];
}

}  // namespace weir::inline v0::gateway
