#include "node_options.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

namespace valuestore {
namespace {

/// Sets an option from its text; false: it is not one of the allowed values.
using Setter = std::function<bool(NodeOptions&, const std::string&)>;

template <class Number>
Setter number(Number NodeOptions::*member, Number min, Number max) {
  return [=](NodeOptions& options, const std::string& text) {
    Number value = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || at != end || value < min || value > max) return false;
    options.*member = value;
    return true;
  };
}

Setter on_off(bool NodeOptions::*member) {
  return [=](NodeOptions& options, const std::string& text) {
    options.*member = text == "on";
    return text == "on" || text == "off";
  };
}

Setter word(std::string NodeOptions::*member) {
  return [=](NodeOptions& options, const std::string& text) {
    options.*member = text;
    return !text.empty();
  };
}

/// "a=127.0.0.1:7070,b=…"
bool set_nodes(NodeOptions& options, const std::string& text) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string node = text.substr(at, end - at);
    const std::size_t equals = node.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == node.size()) return false;
    options.names.push_back(node.substr(0, equals));
    options.addresses.push_back(node.substr(equals + 1));
    at = end + 1;
  }
  std::vector<std::string> sorted = options.names;
  std::sort(sorted.begin(), sorted.end());
  return options.names.size() >= 2 && options.names.size() <= 16 &&
         std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

struct Option {
  Setter set;
  std::string_view allowed;
};

const std::map<std::string, Option, std::less<>>& table() {
  using N = NodeOptions;
  static const std::map<std::string, Option, std::less<>> options = {
      {"--name", {word(&N::name), "one of the names in --nodes"}},
      {"--nodes", {set_nodes, "2 to 16 different name=address, separated by commas"}},
      {"--data", {word(&N::data), "a folder"}},
      {"--cache-mb", {number<std::size_t>(&N::cache_mb, 0, 4096), "0 to 4096"}},
      {"--hints-max", {number<std::uint64_t>(&N::hints_max, 0, 100000000), "0 to 100000000"}},
      {"--workers", {number<std::size_t>(&N::workers, 1, 256), "1 to 256"}},
      {"--readers", {number<std::size_t>(&N::readers, 1, 256), "1 to 256"}},
      {"--read-ms", {number<std::uint32_t>(&N::read_ms, 0, 10000), "0 to 10000"}},
      {"--max-concurrent", {number<std::uint32_t>(&N::max_concurrent, 1, 8192), "1 to 8192"}},
      {"--initial-limit", {number<std::uint32_t>(&N::initial_limit, 1, 1024), "1 to 1024"}},
      {"--admission", {on_off(&N::admission), "on or off"}},
      {"--hedging", {on_off(&N::hedging), "on or off"}},
      {"--first-owner-only", {on_off(&N::first_owner_only), "on or off"}},
      {"--rebuild", {on_off(&N::rebuild), "on or off"}},
  };
  return options;
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): lives as long as the program
}

}  // namespace

weir::Result<NodeOptions, std::string> NodeOptions::parse(
    const std::vector<std::string>& arguments) {
  NodeOptions options;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const auto option = table().find(arguments[i]);
    if (option == table().end()) return weir::unexpected(arguments[i] + ": no such option");
    if (i + 1 == arguments.size() || !option->second.set(options, arguments[i + 1])) {
      return weir::unexpected(arguments[i] + ": must be " + std::string(option->second.allowed));
    }
  }
  const auto own = std::find(options.names.begin(), options.names.end(), options.name);
  if (own == options.names.end()) {
    return weir::unexpected("--name: must be " + std::string(table().at("--name").allowed));
  }
  if (options.data.empty()) return weir::unexpected(std::string("--data: must be a folder"));
  options.self = static_cast<std::size_t>(own - options.names.begin());
  return options;
}

}  // namespace valuestore
