#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/ip_range.h"
#include "weir/experimental/gateway/gateway_config.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/io/address.h"

namespace weir::inline v0::gateway {

/// Who sent a request, as far as we can know.
struct Caller {
  std::optional<IpAddress> socket;  // the other end of the connection; none for Unix sockets
  std::optional<IpAddress> client;  // behind trusted proxies; else the socket's
  std::string_view certificate;     // the subject of its verified certificate; lives in on_headers
  bool peer = false;                // its x-weir headers count
  bool proxy = false;               // what it says about the client's address counts
};

/// Whose word counts. Decided by the socket's address and the client's certificate alone: nothing a
/// request says can make its sender trusted.
///
/// Thread-safety: const after construction. Cost: a compare per configured range.
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
  [[nodiscard]] bool is_peer(const io::Address& socket) const noexcept;
  [[nodiscard]] Forwarded forwarded() const noexcept { return forwarded_; }

 private:
  /// The nearest address of X-Forwarded-For that is not a proxy of ours, read from the right.
  [[nodiscard]] std::optional<IpAddress> client_behind(
      const http::HeaderList& headers) const noexcept;

  [[nodiscard]] bool certified(std::string_view certificate) const noexcept;

  std::vector<IpRange> peers_;
  std::vector<std::string> certificates_;
  std::vector<IpRange> proxies_;
  Forwarded forwarded_ = Forwarded::kSet;
};

/// The IP address of a socket; nothing for other families. v4-mapped ones as v4.
[[nodiscard]] std::optional<IpAddress> ip_of(const io::Address& address) noexcept;

}  // namespace weir::inline v0::gateway
