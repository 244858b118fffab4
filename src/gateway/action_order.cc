#include "action_order.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "json_members.h"

namespace weir::inline v0::gateway {
namespace {

using std::string_view_literals::operator""sv;

/// The members of each action; those that it must have are checked when they are read.
std::span<const std::string_view> members_of(ActionKind kind) noexcept {
  static constexpr std::array kDrain = {"upstream"sv, "endpoint"sv, "for_s"sv, "force"sv,
                                        "dry_run"sv};
  static constexpr std::array kUndrain = {"upstream"sv, "endpoint"sv, "dry_run"sv};
  static constexpr std::array kShadow = {"rule"sv, "for_s"sv, "dry_run"sv};
  static constexpr std::array kCap = {"upstream"sv, "limit"sv, "for_s"sv, "dry_run"sv};
  static constexpr std::array kLog = {"actor"sv, "route"sv, "for_s"sv, "dry_run"sv};
  static constexpr std::array kReload = {"dry_run"sv};
  static constexpr std::array kRemove = {"id"sv, "dry_run"sv};
  switch (kind) {
    case ActionKind::kDrain:
      return kDrain;
    case ActionKind::kUndrain:
      return kUndrain;
    case ActionKind::kShadow:
      return kShadow;
    case ActionKind::kCap:
      return kCap;
    case ActionKind::kLog:
      return kLog;
    case ActionKind::kRemove:
      return kRemove;
    case ActionKind::kReload:
      break;
  }
  return kReload;
}

/// Reads members and keeps the first error.
class Reader {
 public:
  explicit Reader(const JsonMembers& members) noexcept : members_(members) {}

  std::string text(std::string_view name) {
    const JsonMembers::Member* const member = members_.find(name);
    if (member == nullptr) return {};
    std::array<char, JsonMembers::kTextMax> space;
    const auto text = members_.text(name, space);
    if (!text || text->empty()) fail(name, "a text of at most 512 bytes");
    return text ? std::string(*text) : std::string();
  }
  std::optional<std::uint32_t> number(std::string_view name, std::uint32_t low,
                                      std::uint32_t high) {
    if (members_.find(name) == nullptr) return std::nullopt;
    const auto number = members_.number(name);
    if (number && *number >= low && *number <= high && std::floor(*number) == *number) {
      return static_cast<std::uint32_t>(*number);
    }
    fail(name, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return low;
  }
  bool flag(std::string_view name) {
    const JsonMembers::Member* const member = members_.find(name);
    if (member == nullptr) return false;
    const bool literal = member->kind == JsonKind::kLiteral;
    if (!literal || (member->value != "true" && member->value != "false")) {
      fail(name, "true or false");
    }
    return member->value == "true";
  }
  void fail(std::string_view name, const std::string& allowed) {
    if (error_.empty()) error_ = std::string(name) + ": wanted is " + allowed;
  }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  const JsonMembers& members_;
  std::string error_;
};

/// The endpoint of "/endpoints/10.0.0.1:80/drain"; empty: it is another path.
std::string_view endpoint_in(std::string_view path) noexcept {
  constexpr std::string_view kBefore = "/endpoints/";
  if (!path.starts_with(kBefore)) return {};
  path.remove_prefix(kBefore.size());
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

std::string unknown_member(const JsonMembers& members, ActionKind kind) {
  const auto known = members_of(kind);
  for (const JsonMembers::Member& member : members.all()) {
    if (std::find(known.begin(), known.end(), member.name) != known.end()) continue;
    std::string text = std::string(member.name) + ": not a member of this action; there are";
    for (const std::string_view one : known) text += " " + std::string(one);
    return text;
  }
  return {};
}

void require(Reader& read, const ActionOrder& order) {
  const auto need = [&](const std::string& value, std::string_view name, const char* what) {
    if (value.empty()) read.fail(name, what);
  };
  switch (order.kind) {
    case ActionKind::kDrain:
    case ActionKind::kUndrain:
      return need(order.endpoint, "endpoint", "an address as in /endpoints");
    case ActionKind::kShadow:
      return need(order.rule, "rule", "the name of a rule");
    case ActionKind::kCap:
      need(order.upstream, "upstream", "the name of an upstream");
      if (order.limit == 0) read.fail("limit", "the highest limit");
      return;
    case ActionKind::kLog:
      if (order.actor.empty() == !order.route) read.fail("actor", "given, or else route");
      return;
    case ActionKind::kRemove:
      return need(order.id, "id", "an id as in /overrides");
    case ActionKind::kReload:
      return;
  }
}

}  // namespace

std::optional<ActionKind> action_at(std::string_view path) noexcept {
  constexpr std::string_view kActions = "/actions/";
  if (path.starts_with(kActions)) return named<ActionKind>(path.substr(kActions.size()));
  if (endpoint_in(path).empty()) return std::nullopt;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name == "drain") return ActionKind::kDrain;
  if (name == "undrain") return ActionKind::kUndrain;
  return std::nullopt;
}

std::optional<OverrideKind> override_of(ActionKind kind) noexcept {
  switch (kind) {
    case ActionKind::kDrain:
      return OverrideKind::kDrain;
    case ActionKind::kShadow:
      return OverrideKind::kShadow;
    case ActionKind::kCap:
      return OverrideKind::kCap;
    case ActionKind::kLog:
      return OverrideKind::kLog;
    case ActionKind::kUndrain:
    case ActionKind::kReload:
    case ActionKind::kRemove:
      break;
  }
  return std::nullopt;
}

Result<ActionOrder, std::string> action_order(std::string_view path, std::string_view query,
                                              std::string_view body) {
  ActionOrder order{.kind = *action_at(path)};
  const auto members = JsonMembers::of(body.empty() ? "{}" : body);
  if (!members) return unexpected(std::string("the body is not one JSON object"));
  if (std::string unknown = unknown_member(*members, order.kind); !unknown.empty()) {
    return unexpected(std::move(unknown));
  }
  Reader read(*members);
  order.upstream = read.text("upstream");
  order.endpoint = read.text("endpoint");
  if (const std::string_view named = endpoint_in(path); !named.empty()) order.endpoint = named;
  order.rule = read.text("rule");
  order.actor = read.text("actor");
  order.id = read.text("id");
  order.route = read.number("route", 0, UINT16_MAX);
  order.limit = read.number("limit", 1, 1'000'000).value_or(0);
  if (const auto made = override_of(order.kind)) {
    const auto most = static_cast<std::uint32_t>(to_seconds(OverrideTable::longest(*made)));
    const auto given = read.number("for_s", 1, most);
    order.time = given ? Duration(std::chrono::seconds(*given)) : OverrideTable::usual(*made);
  }
  order.force = read.flag("force");
  order.dry_run = read.flag("dry_run");
  for (std::string_view rest = query; !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    if (pair == "dry_run" || pair == "dry_run=1" || pair == "dry_run=true") {
      order.dry_run = true;
    } else {
      read.fail(pair.substr(0, pair.find('=')), "dry_run, the only parameter");
    }
  }
  require(read, order);
  if (!read.error().empty()) return unexpected(read.error());
  return order;
}

}  // namespace weir::inline v0::gateway
