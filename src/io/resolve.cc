#include "weir/experimental/io/resolve.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include <netdb.h>

#include "sockaddr.h"

namespace weir::inline v0::io {
namespace {

struct FreeAnswer {
  void operator()(addrinfo* answer) const noexcept { ::freeaddrinfo(answer); }
};

Result<std::vector<SocketName>, std::string_view> resolve_name(const NetAddress& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const std::string port = std::to_string(address.port);
  const int failed = ::getaddrinfo(address.text.c_str(), port.c_str(), &hints, &raw);
  if (failed != 0) return unexpected(std::string_view(::gai_strerror(failed)));
  const std::unique_ptr<addrinfo, FreeAnswer> answer(raw);
  std::vector<SocketName> found;
  for (const addrinfo* at = answer.get(); at != nullptr; at = at->ai_next) {
    RawAddress name;
    if (at->ai_addrlen > sizeof name.local) continue;
    std::memcpy(&name.local, at->ai_addr, at->ai_addrlen);
    name.size = at->ai_addrlen;
    SocketName one{.address = from_raw(name), .path = {}};
    if (std::find(found.begin(), found.end(), one) == found.end()) found.push_back(one);
  }
  if (found.empty()) return unexpected(std::string_view(::gai_strerror(EAI_NONAME)));
  return found;
}

}  // namespace

Result<std::vector<SocketName>, std::string_view> resolve(const NetAddress& address) {
  if (address.kind == NetAddressKind::kName) return resolve_name(address);
  return std::vector<SocketName>{socket_name_of(address)};
}

}  // namespace weir::inline v0::io
