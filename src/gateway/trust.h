#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/ip_range.h"
#include "weir/experimental/gateway/gateway_config.h"
#include "weir/experimental/gateway/route_config.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/io/address.h"

namespace weir::inline v0::gateway {

/// The sender of a request, as far as it is known.
struct Caller {
  std::optional<IpAddress> socket;  // the other end of the connection, or as its PROXY header says
  std::optional<IpAddress> client;  // as trusted proxies report it; otherwise the socket's address
  std::string_view certificate;     // subject of its verified certificate; valid in on_headers
  bool peer = false;                // its x-weir headers are used
  bool proxy = false;               // its X-Forwarded-For and X-Forwarded-Proto are used
};

/// Which senders are trusted. Only the socket's address and the client's certificate decide; the
/// content of a request cannot make its sender trusted. On a listener that requires a PROXY header,
/// the address in it takes the place of the socket's: only a trusted proxy can write it there, and
/// the proxy's own address says nothing about its clients.
///
/// Thread-safety: const after construction. Cost: a comparison per configured range.
class TrustTable {
 public:
  TrustTable() = default;
  explicit TrustTable(const TrustConfig& config)
      : peers_(config.peers),
        certificates_(config.peer_certificates),
        proxies_(config.proxies),
        forwarded_(config.forwarded) {}

  [[nodiscard]] Caller judge(const io::Address& socket, const http::HeaderList& headers,
                             std::string_view certificate = {}) const noexcept;
  /// The sender of a request that a proxy forwards without saying for whom. The address is that of
  /// the proxy, so it proves nothing; a certificate does.
  [[nodiscard]] Caller judge_unknown(const io::Address& proxy,
                                     std::string_view certificate) const noexcept;
  [[nodiscard]] bool is_peer(const io::Address& socket) const noexcept;
  [[nodiscard]] bool is_proxy(const io::Address& socket) const noexcept;
  [[nodiscard]] Forwarded forwarded() const noexcept { return forwarded_; }
  bool operator==(const TrustTable&) const = default;

 private:
  /// The nearest address of X-Forwarded-For that is not a trusted proxy, read from the right.
  [[nodiscard]] std::optional<IpAddress> client_behind(
      const http::HeaderList& headers) const noexcept;

  [[nodiscard]] bool certified(std::string_view certificate) const noexcept;

  std::vector<IpRange> peers_;
  std::vector<std::string> certificates_;
  std::vector<IpRange> proxies_;
  Forwarded forwarded_ = Forwarded::kSet;
};

/// How the client reached the gateway: by the connection, or as a trusted proxy says in
/// X-Forwarded-Proto. Of several values the last is used: the proxy itself wrote it. What a request
/// says of itself (:scheme, an absolute target) is not used: it cannot change what was on the wire.
[[nodiscard]] Scheme scheme_of(const Caller& caller, bool secure,
                               const http::HeaderList& headers) noexcept;

/// The IP address of a socket; nullopt for other families. A v4-mapped address is returned as v4.
[[nodiscard]] std::optional<IpAddress> ip_of(const io::Address& address) noexcept;

}  // namespace weir::inline v0::gateway
