#include "recorder_pages.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include "weir/base/number_text.h"
#include "weir/experimental/io/entropy.h"

#include "decision_recorder.h"
#include "local_answer.h"

namespace weir::inline v0::gateway {
namespace {

using Json = nlohmann::ordered_json;
using policy::RecordedDecision;

AdminPage indented_page(const Json& json, std::uint16_t status) {
  constexpr int kIndent = 2;
  return {.status = status,
          .content_type = "application/json",
          .body = json.dump(kIndent, ' ', true, Json::error_handler_t::replace) + "\n"};
}

/// "43.2 s"
std::string seconds_text(Duration time) {
  const auto tenths = static_cast<std::int64_t>(std::lround(to_seconds(time) * 10));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

std::string reach_of(const GatewayCore& core, TimePoint now) {
  const std::size_t count = core.recorder.all().size();
  if (count == 0) return "the recorder is empty";
  const Duration back = core.recorder.since_start(now) - core.recorder.complete_since();
  return "the recorder has the last " + std::to_string(count) + " decisions and reaches " +
         seconds_text(std::max(back, Duration(0))) + " back";
}

Json decision_json(const RecordedDecision& decision, const GatewayCore& core, TimePoint now) {
  const std::string upstream = upstream_of(decision, core);
  Json page = {{"request",
                {{"upstream", upstream.empty() ? Json() : Json(upstream)},
                 {"class", name_of(decision.priority)},
                 {"bytes", decision.bytes},
                 {"cost", decision.cost},
                 {"hedge", decision.hedge}}},
               {"verdict", decision.refused() ? "refused" : "admitted"}};
  if (decision.reason > 0) {
    page["reason"] = reason_of(decision);
    page["status"] = GatewayReason::at(decision.reason).facts().http;
    page["sentence"] = GatewayReason::at(decision.reason).facts().sentence;
  }
  if (!decision.refused()) page["outcome"] = name_of(decision.end);
  page["age_ms"] = to_millis(core.recorder.since_start(now) - decision.at);
  page["limit"] = decision.limit;
  page["limit_mode"] = name_of(decision.mode);
  page["in_flight"] = decision.in_flight;
  page["waiting"] = decision.waiting;
  page["waited_ms"] = to_millis(decision.wait);
  page["latency_ms"] = to_millis(decision.latency);
  return page;
}

}  // namespace

AdminPage decided_page(const GatewayCore& core, std::string_view query, TimePoint now) {
  const std::string id = query_value(query, "id");
  if (query.find('&') != std::string_view::npos || id.empty()) {
    return indented_page(
        {{"error", "id: the x-request-id of one request, without other parameters"}}, 400);
  }
  if (const auto decision = core.recorder.find(id)) {
    return indented_page(decision_json(*decision, core, now), 200);
  }
  return indented_page(
      {{"error", "no decision about this request is recorded; " + reach_of(core, now)}}, 404);
}

AdminPage recording_page(const GatewayCore& core, std::string_view query, TimePoint now) {
  constexpr std::uint32_t kSecondsMax = 86'400;
  Duration oldest = Duration::min();
  if (!query.empty()) {
    const auto seconds = parse_number<std::uint32_t>(query_value(query, "seconds"));
    if (!seconds || *seconds == 0 || *seconds > kSecondsMax) {
      return indented_page({{"error", "seconds: how far back, 1 to 86400; nothing else"}}, 400);
    }
    oldest = core.recorder.since_start(now) - std::chrono::seconds(*seconds);
  }
  const std::vector<policy::DecisionWords> all = core.recorder.all();
  Rng rng(io::random_seed());
  const SipKey key{.k0 = rng.next_u64(), .k1 = rng.next_u64()};
  std::string records;
  records.reserve(all.size() * policy::kDecisionBytes);
  for (const policy::DecisionWords& words : all) {
    const auto decision = policy::unpack(words);
    if (!decision || decision->ended_at() < oldest) continue;
    policy::append_decision(records, policy::pack(policy::with_tags(*decision, key)));
  }
  return {.status = 200,
          .content_type = "application/octet-stream",
          .body = policy::encode_header(
                      recording_header(core, records.size() / policy::kDecisionBytes)) +
                  records};
}

}  // namespace weir::inline v0::gateway
