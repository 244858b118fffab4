#include "discovery/endpoint_file.h"

#include <algorithm>
#include <utility>

#include "weir/base/net_address.h"
#include "weir/experimental/io/resolve.h"
#include "weir/experimental/upstream/endpoint_attributes_config.h"

namespace weir::inline v0::upstream {
namespace {

std::string_view take_until(std::string_view& text, std::string_view ends) {
  const std::size_t end = std::min(text.find_first_of(ends), text.size());
  const std::string_view out = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return out;
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
    const std::string_view address = take_word(line);
    if (address.empty()) continue;
    DiscoveredEndpoint endpoint;
    EndpointAttributes attributes;
    std::string fault = set_address(endpoint, address);
    for (std::string_view word = take_word(line); fault.empty() && !word.empty();
         word = take_word(line)) {
      fault = attributes.set(word);
    }
    if (!fault.empty()) return wrong(fault);
    endpoint.weight = attributes.weight;
    endpoint.zone = attributes.zone;
    endpoint.draining = attributes.draining;
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
