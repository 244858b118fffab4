#include "config_node.h"

#include <utility>

#include <toml++/toml.h>

#include "weir/base/number_text.h"

#include "config/toml_reader.h"

namespace weir::inline v0::sim {
namespace {

ConfigNode convert(const toml::node& from) {
  ConfigNode node;
  node.line = static_cast<int>(from.source().begin.line);
  if (const auto* table = from.as_table()) {
    node.kind = ConfigNode::Kind::kTable;
    for (auto&& [key, value] : *table) node.fields.emplace_back(key.str(), convert(value));
  } else if (const auto* array = from.as_array()) {
    node.kind = ConfigNode::Kind::kArray;
    for (auto&& value : *array) node.items.push_back(convert(value));
  } else if (const auto* string = from.as_string()) {
    node.kind = ConfigNode::Kind::kString;
    node.text = string->get();
  } else if (const auto* integer = from.as_integer()) {
    node.kind = ConfigNode::Kind::kInteger;
    node.integer = integer->get();
    node.number = static_cast<double>(integer->get());
  } else if (const auto* number = from.as_floating_point()) {
    node.kind = ConfigNode::Kind::kFloat;
    node.number = number->get();
  } else if (const auto* boolean = from.as_boolean()) {
    node.kind = ConfigNode::Kind::kBoolean;
    node.boolean = boolean->get();
  } else {
    node.kind = ConfigNode::Kind::kOther;
  }
  return node;
}

// Line 0: given on the command line.
void forget_lines(ConfigNode& node) {
  node.line = 0;
  for (auto& [key, field] : node.fields) forget_lines(field);
  for (ConfigNode& item : node.items) forget_lines(item);
}

// "--set" values: 12, 1.5, true, "x", [1, 2], or a bare word.
ConfigNode parse_value(std::string_view text) {
  const auto parsed = parse_config("v = " + std::string(text), "");
  if (parsed) {
    ConfigNode node = *parsed.value().find("v");
    if (node.kind != ConfigNode::Kind::kOther) {
      forget_lines(node);
      return node;
    }
  }
  ConfigNode node;
  node.kind = ConfigNode::Kind::kString;
  node.text = std::string(text);
  return node;
}

bool matches(const ConfigNode& item, std::size_t index, std::string_view part) {
  if (part == "*") return true;
  if (const ConfigNode* name = item.find("name")) {
    if (name->text == part) return true;
  }
  return parse_number<std::size_t>(part) == index;
}

ConfigError no_such(std::string_view whole, std::string_view part, const ConfigNode& list) {
  std::string allowed = "one of";
  for (const ConfigNode& item : list.items) {
    const ConfigNode* name = item.find("name");
    allowed += " " + (name != nullptr ? name->text : std::string("(unnamed)"));
  }
  return {std::string(whole), std::string(part), allowed + ", an index, or *", "--set", 0};
}

Result<void, ConfigError> assign(ConfigNode& at, std::string_view whole, std::string_view path,
                                 const ConfigNode& value) {
  const std::size_t dot = path.find('.');
  const std::string_view part = path.substr(0, dot);
  const bool last = dot == std::string_view::npos;
  const std::string_view rest = last ? std::string_view{} : path.substr(dot + 1);
  if (at.kind == ConfigNode::Kind::kArray) {
    bool found = false;
    for (std::size_t i = 0; i < at.items.size(); ++i) {
      if (!matches(at.items[i], i, part)) continue;
      found = true;
      if (last) {
        at.items[i] = value;
      } else if (auto done = assign(at.items[i], whole, rest, value); !done) {
        return done;
      }
    }
    if (!found) return unexpected(no_such(whole, part, at));
    return {};
  }
  if (at.kind != ConfigNode::Kind::kTable) {
    return unexpected(ConfigError{std::string(whole), std::string(part),
                                  "a key of a table; what stands before it is a value", "--set",
                                  0});
  }
  ConfigNode* child = at.find(part);
  if (last) {
    if (child != nullptr) {
      *child = value;
    } else {
      at.fields.emplace_back(std::string(part), value);
    }
    return {};
  }
  if (child == nullptr) {
    at.fields.emplace_back(std::string(part), ConfigNode{});
    child = &at.fields.back().second;
  }
  return assign(*child, whole, rest, value);
}

}  // namespace

const ConfigNode* ConfigNode::find(std::string_view key) const noexcept {
  for (const auto& [name, node] : fields) {
    if (name == key) return &node;
  }
  return nullptr;
}
ConfigNode* ConfigNode::find(std::string_view key) noexcept {
  return const_cast<ConfigNode*>(std::as_const(*this).find(key));
}

std::string_view name_of(ConfigNode::Kind kind) noexcept {
  constexpr std::string_view kNames[] = {"a table",        "a list",   "a string",
                                         "a whole number", "a number", "true or false",
                                         "a date or time"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string ConfigNode::printed() const {
  switch (kind) {
    case Kind::kString:
      return '"' + text + '"';
    case Kind::kInteger:
      return std::to_string(integer);
    case Kind::kFloat:
      return std::string(NumberText(number).view());
    case Kind::kBoolean:
      return boolean ? "true" : "false";
    case Kind::kTable:
    case Kind::kArray:
    case Kind::kOther:
      break;
  }
  return std::string(name_of(kind));
}

// The gateway's reader checks the text first: it detects input for which the library would end the
// process instead of reporting an error.
Result<ConfigNode, ConfigError> parse_config(std::string_view text, const std::string& file) {
  config::RawConfig checked = config::read_toml(text, file);
  if (!checked.syntax.empty()) {
    return unexpected(std::move(checked.syntax.front()));
  }
  try {
    return convert(toml::parse(text));
  } catch (const toml::parse_error& error) {
    return unexpected(ConfigError{"", std::string(error.description()), "TOML", file,
                                  static_cast<int>(error.source().begin.line)});
  }
}

Result<void, ConfigError> set_value(ConfigNode& root, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return unexpected(ConfigError{"--set", std::string(assignment),
                                  "key=value, as in load.web.rate=2000", "--set", 0});
  }
  const std::string_view path = assignment.substr(0, equals);
  return assign(root, path, path, parse_value(assignment.substr(equals + 1)));
}

}  // namespace weir::inline v0::sim
