#include "discovery/endpoint_file.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "weir/base/net_address.h"
#include "weir/experimental/io/resolve.h"

namespace weir::inline v0::upstream {
namespace {

constexpr std::uint32_t kWeightMax = 65535;
constexpr std::size_t kZoneBytesMax = 64;

std::string_view take_until(std::string_view& text, std::string_view ends) {
  const std::size_t end = std::min(text.find_first_of(ends), text.size());
  const std::string_view out = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return out;
}

/// The next word of a line; empty at its end.
std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
  return take_until(line, " \t\r");
}

std::string quoted(std::string_view word) {
  return '"' + std::string(word) + '"';
}

/// Sets the address; returns what is wrong, or nothing.
std::string set_address(DiscoveredEndpoint& endpoint, std::string_view word) {
  const auto parsed = parse_net_address(word);
  const bool numeric = parsed && parsed->can_connect() && parsed->kind != NetAddressKind::kName;
  if (!numeric) {
    return quoted(word) +
           ": allowed are addresses with port (127.0.0.1:80, [::1]:80) and unix:/path; names are "
           "for dns: sources";
  }
  endpoint.address = io::resolve(*parsed)->front();  // of an address: itself
  if (parsed->kind == NetAddressKind::kIp) endpoint.host = to_string(parsed->ip);
  return {};
}

std::string set_weight(DiscoveredEndpoint& endpoint, std::string_view value) {
  std::uint32_t weight = 0;
  const char* end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, weight);
  if (error != std::errc() || at != end || weight < 1 || weight > kWeightMax) {
    return "weight=" + std::string(value) + ": allowed is 1 to " + std::to_string(kWeightMax);
  }
  endpoint.weight = weight;
  return {};
}

std::string set_zone(DiscoveredEndpoint& endpoint, std::string_view value) {
  const bool printable = std::all_of(value.begin(), value.end(),
                                     [](char c) { return c > ' ' && c < '\x7F' && c != '"'; });
  if (value.empty() || value.size() > kZoneBytesMax || !printable) {
    return "zone=" + std::string(value) + ": allowed are 1 to " + std::to_string(kZoneBytesMax) +
           " printable characters";
  }
  endpoint.zone = value;
  return {};
}

std::string set_drain(DiscoveredEndpoint& endpoint, std::string_view value) {
  if (value != "true" && value != "false") {
    return "drain=" + std::string(value) + ": allowed are true and false";
  }
  endpoint.draining = value == "true";
  return {};
}

std::string set_attribute(DiscoveredEndpoint& endpoint, std::string_view word) {
  std::string_view value = word;
  const std::string_view key = take_until(value, "=");
  if (key.size() == word.size()) {
    return quoted(word) + ": allowed are weight=N, zone=Z and drain=true";
  }
  if (key == "weight") return set_weight(endpoint, value);
  if (key == "zone") return set_zone(endpoint, value);
  if (key == "drain") return set_drain(endpoint, value);
  return quoted(key) + ": allowed are weight=N, zone=Z and drain=true";
}

}  // namespace

Result<std::vector<DiscoveredEndpoint>, std::string> parse_endpoint_file(std::string_view text) {
  if (text.empty()) return unexpected(std::string("the file is empty"));
  std::vector<DiscoveredEndpoint> all;
  std::vector<std::size_t> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view rest = take_until(text, "\n");
    std::string_view line = take_until(rest, "#");
    const auto wrong = [number](const std::string& what) {
      return unexpected("line " + std::to_string(number) + ": " + what);
    };
    const std::string_view address = next_word(line);
    if (address.empty()) continue;
    DiscoveredEndpoint endpoint;
    std::string fault = set_address(endpoint, address);
    for (std::string_view word = next_word(line); fault.empty() && !word.empty();
         word = next_word(line)) {
      fault = set_attribute(endpoint, word);
    }
    if (!fault.empty()) return wrong(fault);
    const auto same = std::find_if(all.begin(), all.end(), [&](const DiscoveredEndpoint& one) {
      return one.address == endpoint.address;
    });
    if (same != all.end()) {
      const auto at = static_cast<std::size_t>(same - all.begin());
      return wrong(quoted(address) + " is in line " + std::to_string(lines[at]) + " already");
    }
    if (all.size() == kFileEndpointsMax) {
      return wrong("allowed are at most " + std::to_string(kFileEndpointsMax) + " endpoints");
    }
    all.push_back(std::move(endpoint));
    lines.push_back(number);
  }
  return all;
}

}  // namespace weir::inline v0::upstream
