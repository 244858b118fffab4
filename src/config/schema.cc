#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "weir/experimental/config/print.h"

#include "config/option_table.h"

namespace weir::inline v0::config {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSizePattern = "^[0-9]+( *([bB]|[kKmMgGtT][iI]?[bB]))?$";
constexpr std::string_view kTimePattern = "^[0-9]+ *(h|m|s|ms|us|ns)$";
constexpr std::string_view kAddressPattern =
    R"(^(unix:[/@].+|([A-Za-z0-9_.*-]*|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})$)";
constexpr std::string_view kNoneOrAddressPattern =
    R"(^(|unix:[/@].+|([A-Za-z0-9_.*-]*|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})$)";
constexpr std::string_view kRangePattern = "^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$";

/// What parse_source() accepts, as far as a pattern can say it.
constexpr std::string_view kSourcePattern =
    R"(^(file:/[^ ]+|srv:_[^ ]+|unix:[/@][^ ]+|)"
    R"((dns:)?([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}))"
    R"(( +(weight=[0-9]{1,5}|zone=[!-~]{1,64}|drain=(true|false)))*$)";

Json text_like(std::string_view pattern) {
  return {{"type", "string"}, {"pattern", pattern}};
}

Json list_of(Json items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}

Json whole_number(const OptionRow& row) {
  return {{"type", "integer"},
          {"minimum", static_cast<std::int64_t>(row.low)},
          {"maximum", static_cast<std::int64_t>(row.high)}};
}

Json value_of(const OptionRow& row, Words words) {
  switch (row.kind) {
    case OptionKind::kFlag:
      return {{"type", "boolean"}};
    case OptionKind::kCount:
      return whole_number(row);
    case OptionKind::kSize:
      return {{"anyOf", {whole_number(row), text_like(kSizePattern)}}};
    case OptionKind::kTime:
      return {{"anyOf", {whole_number(row), text_like(kTimePattern)}}};
    case OptionKind::kRatio:
      return {{"type", "number"}, {"minimum", row.low}, {"maximum", row.high}};
    case OptionKind::kText:
      return {{"type", "string"}};
    case OptionKind::kTexts:
      return list_of({{"type", "string"}});
    case OptionKind::kChoice:
      return {{"enum", words}};
    case OptionKind::kChoices:
      return list_of({{"enum", words}});
    case OptionKind::kAddress:
      return text_like(kNoneOrAddressPattern);
    case OptionKind::kAddresses:
      return list_of(text_like(kAddressPattern));
    case OptionKind::kSources:
      return list_of(text_like(kSourcePattern));
    case OptionKind::kRanges:
      return list_of(text_like(kRangePattern));
  }
  return {};
}

Json table() {
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
}

template <class Owner>
void add(Json& section, const Option<Owner>& option, const Owner& defaults) {
  Json value = value_of(option.row, option.choices(defaults));
  value["description"] = option.row.help;
  // For every kind of option, a TOML literal is also a JSON literal.
  const std::string text = option.print(defaults, option.row);
  if (!text.empty()) value["default"] = Json::parse(text);
  section["properties"][std::string(option.row.name)] = std::move(value);
}

/// [[name]]: keys for which the default is refused are required.
template <class Owner>
Json array_of(std::span<const Option<Owner>> options, const ConfigErrors& faults_of_default) {
  Json one = table();
  for (const Option<Owner>& option : options) {
    const std::size_t dot = option.row.section.find('.');
    if (dot == std::string_view::npos) {
      add(one, option, Owner());
      continue;
    }
    Json& inner = one["properties"][std::string(option.row.section.substr(dot + 1))];
    if (inner.is_null()) inner = table();
    add(inner, option, Owner());
  }
  for (const ConfigError& fault : faults_of_default) one["required"].push_back(fault.key);
  return list_of(std::move(one));
}

}  // namespace

std::string print_schema() {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "weir.toml"}};
  schema.update(table());
  const Config defaults;
  for (const Option<Config>& option : config_options()) {
    Json* section = &schema;
    std::string_view path = option.row.section;
    while (!path.empty()) {  // "admission.limit" is a table in a table
      const std::string_view name = path.substr(0, path.find('.'));
      Json& inner = (*section)["properties"][std::string(name)];
      if (inner.is_null()) inner = table();
      section = &inner;
      path.remove_prefix(std::min(path.size(), name.size() + 1));
    }
    add(*section, option, defaults);
  }
  Json& all = schema["properties"];
  all["upstream"] =
      array_of(upstream_options(), upstream::UpstreamConfig().validate(LimitConfig()));
  all["route"] = array_of(route_options(), {});
  Json& ways = all["route"]["items"]["anyOf"];  // a route leads to an upstream, or answers
  for (const char* key : {"upstream", "redirect", "respond"}) {
    ways.push_back({{"required", Json::array({key})}});
  }
  return schema.dump(2) + "\n";
}

}  // namespace weir::inline v0::config
