#include "socket_places.h"

#include <algorithm>

namespace weir::inline v0::gateway {

std::vector<SocketPlace> socket_places(const config::Config& config) {
  std::vector<SocketPlace> all;
  for (const std::string& one : config.server.listen) all.push_back({SocketRole::kListen, one});
  if (config.server.tls.enabled()) {
    for (const std::string& one : config.server.tls.listen) all.push_back({SocketRole::kTls, one});
  }
  if (config.admin.listen) all.push_back({SocketRole::kAdmin, to_string(*config.admin.listen)});
  if (config.admin.actions == ActionsMode::kSocket) {
    all.push_back({SocketRole::kAdmin, "unix:" + config.admin.actions_socket});
  }
  return all;
}

std::vector<std::optional<std::size_t>> match_sockets(std::span<const SocketPlace> places,
                                                      std::span<const SocketOffer> offers,
                                                      bool by_role) {
  std::vector<std::optional<std::size_t>> matched(places.size());
  std::vector<bool> used(offers.size());
  const auto fill = [&](auto fits) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (std::size_t j = 0; j < offers.size() && !matched[i]; ++j) {
        if (used[j] || !fits(places[i], offers[j])) continue;
        used[j] = true;
        matched[i] = j;
      }
    }
  };
  const auto bound_to = [](const SocketPlace& place, const SocketOffer& offer) {
    const auto name = io::parse_socket_name(place.address);
    return name && *name == offer.bound;
  };
  fill([](const SocketPlace& place, const SocketOffer& offer) {
    return offer.role == place.role && offer.configured == place.address;
  });
  fill([&](const SocketPlace& place, const SocketOffer& offer) {
    return bound_to(place, offer) && offer.role.value_or(place.role) == place.role;
  });
  fill(bound_to);
  if (by_role) {
    fill([](const SocketPlace& place, const SocketOffer& offer) {
      return offer.role == place.role;
    });
  }
  return matched;
}

std::string unused_objection(std::span<const SocketOffer> offers,
                             std::span<const std::optional<std::size_t>> matched) {
  std::string unused;
  for (std::size_t j = 0; j < offers.size(); ++j) {
    if (std::find(matched.begin(), matched.end(), j) != matched.end()) continue;
    unused += (unused.empty() ? "" : ", ") + offers[j].bound.to_string();
  }
  if (unused.empty()) return {};
  return "the service manager passed " + unused +
         ", which no address of listen.addresses, tls.listen or admin.listen stands for: add it "
         "there, or give the socket one of the names listen, tls and admin (FileDescriptorName=)";
}

}  // namespace weir::inline v0::gateway
