#include "gateway_sockets.h"

#include <utility>

#include "weir/experimental/io/listener.h"

namespace weir::inline v0::gateway {

Result<GatewaySockets::Given, std::string> GatewaySockets::assign(const config::Config& config,
                                                                  PassedSockets passed) {
  std::vector<SocketOffer> offers;
  for (const PassedSocket& one : passed.sockets) {
    offers.push_back(
        {.bound = io::bound_name(one.fd.get()), .role = one.role, .configured = one.configured});
  }
  places_ = socket_places(config);
  const auto matched = match_sockets(places_, offers, !passed.from_predecessor);
  if (!passed.from_predecessor) {
    if (std::string unused = unused_objection(offers, matched); !unused.empty()) {
      return unexpected(std::move(unused));
    }
  }
  Given all;
  all.clients.ticket_keys = std::move(passed.ticket_keys);
  all.clients.accept = all.admin.accept = !passed.from_predecessor;
  held_.assign(places_.size(), false);
  taken_.assign(passed.sockets.size(), false);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    GivenSocket given;
    if (matched[i]) {
      PassedSocket& from = passed.sockets[*matched[i]];
      held_[i] = from.held;
      taken_[*matched[i]] = true;
      given = {.fd = std::move(from.fd), .shared = from.held};
    }
    const SocketRole role = places_[i].role;
    std::vector<GivenSocket>& list = role == SocketRole::kAdmin ? all.admin.listen
                                     : role == SocketRole::kTls ? all.clients.tls_listen
                                                                : all.clients.listen;
    list.push_back(std::move(given));
  }
  return all;
}

std::vector<PassedSocket> GatewaySockets::duplicates(const Servers& servers) const {
  std::vector<io::Fd> fds = servers.clients.duplicate_listeners();
  if (servers.admin != nullptr) {
    for (io::Fd& fd : servers.admin->duplicate_listeners()) fds.push_back(std::move(fd));
  }
  std::vector<PassedSocket> all;
  if (fds.size() != places_.size()) return all;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    all.push_back({.fd = std::move(fds[i]),
                   .role = places_[i].role,
                   .configured = places_[i].address,
                   .name = {},
                   .held = held_[i]});
  }
  return all;
}

void GatewaySockets::share(const Servers& servers, const std::vector<bool>& shared) const {
  if (shared.size() != places_.size()) return;
  std::size_t of_admin = 0;
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const bool either = shared[i] || held_[i];
    if (places_[i].role == SocketRole::kAdmin) {
      servers.admin->share_listener(of_admin++, either);
    } else {
      servers.clients.share_listener(i, either);
    }
  }
}

}  // namespace weir::inline v0::gateway
