#include "operator_actions.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "weir/base/duration_text.h"
#include "weir/base/number_text.h"
#include "weir/experimental/http/field.h"

#include "effective_config.h"
#include "identity.h"

namespace weir::inline v0::gateway {
namespace {

using Json = nlohmann::ordered_json;

AdminPage answer_page(const Json& json, std::uint16_t status = 200) {
  return {.status = status,
          .body = json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n"};
}

Json override_json(const Override& one, TimePoint now, std::int64_t unix_now) {
  Json json = {{"id", one.number == 0 ? Json() : Json(one.id())},
               {"kind", name_of(one.kind)},
               {"what", one.what()},
               {"left_s", one.seconds_left(now)},
               {"until", unix_now + one.seconds_left(now)}};
  if (!one.upstream.empty()) json["upstream"] = one.upstream;
  if (one.kind == OverrideKind::kDrain) json["endpoint"] = one.target;
  if (one.kind == OverrideKind::kShadow) json["rule"] = one.target;
  if (one.kind == OverrideKind::kCap) json["limit"] = one.limit;
  if (one.focus != nullptr) json["lines_left"] = one.focus->lines_left();
  return json;
}

/// Texts of a request must not look like other lines of the log.
std::string printable(std::string text) {
  constexpr std::size_t kMost = 400;
  text.resize(std::min(text.size(), kMost));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

/// "drain app 10.0.0.1:80 for 10m", as it was asked for.
std::string words_of_order(const ActionOrder& order) {
  std::string text(name_of(order.kind));
  for (const std::string* word :
       {&order.upstream, &order.endpoint, &order.rule, &order.actor, &order.id}) {
    if (!word->empty()) text += " " + *word;
  }
  if (order.route) text += " route " + std::to_string(*order.route);
  if (order.limit > 0) text += " to " + std::to_string(order.limit);
  if (order.time > Duration(0)) text += " for " + to_string(order.time);
  if (order.force) text += " with force";
  return text;
}

std::string per_second(double rate) {
  return std::to_string(static_cast<std::uint64_t>(std::llround(rate))) + "/s";
}

}  // namespace

/// An endpoint of an upstream.
struct OperatorActions::Place {
  std::shared_ptr<ServedUpstream> upstream;
  std::shared_ptr<const upstream::EndpointSet> set;
  std::size_t index = 0;

  [[nodiscard]] const upstream::EndpointSet::Member& member() const { return set->members[index]; }
};

AdminPage OperatorActions::perform(const AdminRequest& request, TimePoint now) {
  constexpr Duration kPace = std::chrono::seconds(1);
  const ActionKind kind = *action_at(request.path);
  const auto who = who_acts(request, setup_.core.config_in_force().admin);
  if (!who) {
    if (now >= told_until_) {
      constexpr Duration kQuiet = std::chrono::seconds(10);
      told_until_ = now + kQuiet;
      setup_.log.say("weir: action " + std::string(name_of(kind)) + ": forbidden, " +
                     printable(who.error().error));
    }
    return refuse(kind, who.error(), ActionResult::kForbidden);
  }
  const auto order = action_order(request.path, request.query, request.body);
  if (!order) {
    const ActionOrder unread{.kind = kind};
    audit(unread, *who, "refused, " + order.error());
    return refuse(kind, {.status = 400, .error = order.error()}, ActionResult::kRefused);
  }
  if (!order->dry_run && last_ != TimePoint{} && now - last_ < kPace) {
    audit(*order, *who, "refused, one action a second");
    return refuse(kind,
                  {.status = 429,
                   .error = "one action a second",
                   .fields = {{.name = "retry-after", .value = "1"}}},
                  ActionResult::kTooMany);
  }
  auto planned = plan(*order, now);
  if (!planned) {
    audit(*order, *who, "refused, " + planned.error().error);
    return refuse(kind, {.status = planned.error().status, .error = planned.error().error},
                  ActionResult::kRefused);
  }
  if (!order->dry_run) {
    last_ = now;
    if (const std::string why = carry_out(*order, *planned, now); !why.empty()) {
      audit(*order, *who, "refused, " + why);
      return refuse(kind, {.status = 409, .error = why}, ActionResult::kRefused);
    }
  }
  const ActionResult result = order->dry_run ? ActionResult::kDryRun : ActionResult::kDone;
  Json page = {{"done", !order->dry_run}, {"dry_run", order->dry_run}};
  std::string told(order->dry_run ? "dry run, " + planned->preview : "done");
  for (const Override& one : planned->put) {
    page["override"] = override_json(one, now, setup_.unix_seconds());
    if (!order->dry_run) {
      told += ", " + one.id() + " until " +
              std::to_string(setup_.unix_seconds() + one.seconds_left(now)) + " (Unix time)";
    }
  }
  page["preview"] = planned->preview;
  audit(*order, *who, told);
  count(kind, result);
  return answer_page(page);
}

std::string OperatorActions::carry_out(const ActionOrder& order, Plan& plan, TimePoint now) {
  if (order.kind == ActionKind::kReload) {
    return setup_.reload ? setup_.reload() : "nothing is there to be read again";
  }
  bool full = false;
  const bool changed = setup_.live.change_overrides(
      [&](OverrideTable& table) {
        for (const std::string& id : plan.remove) static_cast<void>(table.remove(id));
        for (Override& one : plan.put) {
          const Override* const put = table.put(one);
          full = put == nullptr;
          if (put != nullptr) one.number = put->number;
        }
      },
      now);
  if (!changed) return "a reload is under way; try again";
  if (full) {
    return std::to_string(OverrideTable::kMost) +
           " overrides are in force, as many as there may be; remove one";
  }
  return {};
}

Result<OperatorActions::Plan, OperatorActions::Failure> OperatorActions::plan(
    const ActionOrder& order, TimePoint now) {
  auto made = [&]() -> Result<Plan, Failure> {
    switch (order.kind) {
      case ActionKind::kDrain:
        return plan_drain(order, now);
      case ActionKind::kUndrain:
        return plan_undrain(order);
      case ActionKind::kShadow:
        return plan_shadow(order);
      case ActionKind::kCap:
        return plan_cap(order, now);
      case ActionKind::kLog:
        return plan_log(order);
      case ActionKind::kRemove:
        return plan_remove(order);
      case ActionKind::kReload:
        break;
    }
    return Plan{.preview = "the configuration is read again; the log says what changed"};
  }();
  if (made) {
    for (Override& one : made->put) one.until = now + order.time;
  }
  return made;
}

Result<OperatorActions::Place, OperatorActions::Failure> OperatorActions::find_endpoint(
    const ActionOrder& order) const {
  const auto upstreams = setup_.core.upstreams.in_force();
  if (!order.upstream.empty() && upstreams->find(order.upstream) == nullptr) {
    return unexpected(Failure{404, "upstream: there is no upstream " + order.upstream});
  }
  std::vector<Place> found;
  for (const auto& one : upstreams->all) {
    if (!order.upstream.empty() && one->name() != order.upstream) continue;
    const auto set = one->upstream.endpoints();
    for (std::size_t i = 0; i < set->members.size(); ++i) {
      if (set->members[i].endpoint->label() == order.endpoint) found.push_back({one, set, i});
    }
  }
  if (found.empty()) {
    return unexpected(Failure{404, "endpoint: no upstream has an endpoint " + order.endpoint});
  }
  if (found.size() > 1) {
    return unexpected(Failure{400, "upstream: several have this endpoint; name one of them"});
  }
  return found.front();
}

Result<OperatorActions::Plan, OperatorActions::Failure> OperatorActions::plan_drain(
    const ActionOrder& order, TimePoint now) {
  const auto place = find_endpoint(order);
  if (!place) return unexpected(place.error());
  if (place->member().draining) {
    return unexpected(Failure{409, "its source says that it drains; nothing to do"});
  }
  const std::size_t all = place->set->members.size();
  std::size_t open = 0;
  for (const auto& member : place->set->members) open += member.endpoint->open() ? 1U : 0U;
  const std::size_t left = open - (place->member().endpoint->open() ? 1U : 0U);
  std::string preview = std::to_string(left) + " of " + std::to_string(all) + " remain";
  const ScopeStats scope = setup_.core.controller.scope_stats(place->upstream->scope(), now);
  if (scope.latency_avg > Duration(0) && open > 0) {
    const double most = scope.limit / to_seconds(scope.latency_avg);
    preview += ", est. " + per_second(most * static_cast<double>(left) / static_cast<double>(open));
    preview += ", answered now " + per_second(scope.drain_per_second);
  }
  if (!order.force && (left == 0 || 2 * left < all)) {
    return unexpected(Failure{409, preview + ": less than half of the endpoints would be open; "
                                             "force does it nevertheless"});
  }
  return Plan{.preview = preview,
              .put = {{.kind = OverrideKind::kDrain,
                       .upstream = place->upstream->name(),
                       .target = order.endpoint,
                       .endpoint = place->member().endpoint->name()}}};
}

Result<OperatorActions::Plan, OperatorActions::Failure> OperatorActions::plan_undrain(
    const ActionOrder& order) {
  const std::vector<Override> all = setup_.core.overrides();
  for (const Override& one : all) {
    if (one.kind != OverrideKind::kDrain || one.target != order.endpoint) continue;
    if (!order.upstream.empty() && one.upstream != order.upstream) continue;
    return Plan{.preview = "ends " + one.sentence(), .put = {}, .remove = {one.id()}};
  }
  const auto place = find_endpoint(order);
  if (!place) return unexpected(place.error());
  return unexpected(Failure{409, place->member().draining
                                     ? "its source says that it drains: change it there"
                                     : "no override drains it"});
}

Result<OperatorActions::Plan, OperatorActions::Failure> OperatorActions::plan_shadow(
    const ActionOrder& order) {
  const config::Config config = setup_.core.config_in_force();
  if (mode_of(config.admission.modes, order.rule) == nullptr) {
    return unexpected(Failure{400, "rule: wanted is one of " + rule_names()});
  }
  Override one{.kind = OverrideKind::kShadow, .target = order.rule};
  if (!why_ended(one, config).empty()) {
    return unexpected(Failure{409, "the configuration does not enforce this rule"});
  }
  return Plan{.preview = "rule " + order.rule + " counts what it would refuse, and refuses nothing",
              .put = {one}};
}

Result<OperatorActions::Plan, OperatorActions::Failure> OperatorActions::plan_cap(
    const ActionOrder& order, TimePoint now) {
  const config::Config config = setup_.core.config_in_force();
  const auto upstream = setup_.core.upstreams.in_force()->find(order.upstream);
  if (upstream == nullptr) {
    return unexpected(Failure{404, "upstream: there is no upstream " + order.upstream});
  }
  Override one{.kind = OverrideKind::kCap, .upstream = order.upstream, .limit = order.limit};
  if (const std::string why = why_ended(one, config); !why.empty()) {
    return unexpected(Failure{400, "limit: " + why +
                                       "; a cap is at least the first and less than "
                                       "the second number"});
  }
  const std::uint32_t limit = setup_.core.controller.scope_stats(upstream->scope(), now).limit;
  return Plan{.preview = "the limit of " + order.upstream + " is at most " +
                         std::to_string(order.limit) + "; it is " + std::to_string(limit) + " now",
              .put = {one}};
}

Result<OperatorActions::Plan, OperatorActions::Failure> OperatorActions::plan_log(
    const ActionOrder& order) {
  Override one{.kind = OverrideKind::kLog};
  LogFocus::Of of;
  if (order.route) {
    const std::vector<RouteConfig> routes = setup_.core.config_in_force().routes_in_force();
    if (*order.route >= routes.size()) {
      return unexpected(Failure{
          404, "route: the number of a [[route]], 0 to " + std::to_string(routes.size() - 1)});
    }
    one.route = routes[*order.route];
    one.route_number = *order.route;
    one.target = "route " + std::to_string(*order.route);
    of.route = *order.route;
  } else {
    // A name, or the id that /actors shows; a number may be both.
    of.actors = {named_actor(order.actor, setup_.core.controller).key.low,
                 parse_number<std::uint64_t>(order.actor).value_or(0)};
    one.target = "actor " + printable(order.actor);
  }
  one.focus = std::make_shared<LogFocus>(of, OverrideTable::kLogLines);
  return Plan{.preview = "requests of " + one.target + " are written to the access log, at most " +
                         std::to_string(OverrideTable::kLogLines) + " lines",
              .put = {one}};
}

Result<OperatorActions::Plan, OperatorActions::Failure> OperatorActions::plan_remove(
    const ActionOrder& order) {
  const std::vector<Override> all = setup_.core.overrides();
  for (const Override& one : all) {
    if (one.id() != order.id) continue;
    return Plan{.preview = "ends " + one.sentence(), .put = {}, .remove = {one.id()}};
  }
  return unexpected(Failure{404, "id: there is no override " + order.id});
}

void OperatorActions::expire(TimePoint now) {
  const std::vector<Override> all = setup_.core.overrides();
  if (std::none_of(all.begin(), all.end(), [&](const Override& one) { return one.until <= now; })) {
    return;
  }
  std::vector<Override> over;
  static_cast<void>(
      setup_.live.change_overrides([&](OverrideTable& table) { over = table.expire(now); }, now));
  for (const Override& one : over) {
    setup_.log.say("weir: override " + one.id() + " (" + one.sentence() + ") is over");
  }
}

void OperatorActions::end() {
  const std::vector<Override> all = setup_.core.overrides();
  for (const Override& one : all) {
    setup_.log.say("weir: override " + one.id() + " (" + one.sentence() +
                   ") ends with this process; one that takes over does not have it");
  }
}

void OperatorActions::audit(const ActionOrder& order, const std::string& who,
                            const std::string& result) {
  setup_.log.say(printable("weir: action " + words_of_order(order) + " by " + who + ": " + result));
}

AdminPage OperatorActions::refuse(ActionKind kind, const ActionRefusal& why, ActionResult result) {
  count(kind, result);
  AdminPage page = answer_page({{"error", why.error}}, why.status);
  page.fields = why.fields;
  return page;
}

void OperatorActions::count(ActionKind kind, ActionResult result) noexcept {
  ++counts_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(result)];
}

std::vector<AdminActions::Count> OperatorActions::counts() const {
  std::vector<Count> all;
  for (std::size_t kind = 0; kind < kActionKinds; ++kind) {
    for (std::size_t result = 0; result < kActionResults; ++result) {
      all.push_back({.action = name_of(static_cast<ActionKind>(kind)),
                     .result = name_of(static_cast<ActionResult>(result)),
                     .count = counts_[kind][result]});
    }
  }
  return all;
}

AdminPage overrides_page(const std::vector<Override>& overrides, TimePoint now,
                         std::int64_t unix_now) {
  Json list = Json::array();
  for (const Override& one : overrides) list.push_back(override_json(one, now, unix_now));
  return answer_page({{"overrides", list}});
}

std::string overrides_comment(const std::vector<Override>& overrides, TimePoint now) {
  std::string text;
  for (const Override& one : overrides) {
    text += "# override " + one.id() + ": " + one.sentence() + ", " +
            std::to_string(one.seconds_left(now)) + " s left\n";
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace weir::inline v0::gateway
