#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "weir/base/enum_names.h"
#include "weir/base/ip_range.h"
#include "weir/base/result.h"

namespace weir::inline v0::http {

/// The first bytes of a connection in the PROXY protocol, version 1 or 2: a proxy that forwards
/// bytes says with them for whom it does.
struct ProxyHeader {
  struct Endpoint {
    IpAddress ip;  // v4 if it was written as v4-mapped
    std::uint16_t port = 0;

    bool operator==(const Endpoint&) const = default;
  };
  enum class Kind : std::uint8_t {
    kAddress,  // source and destination are announced
    kUnix,     // the client uses a Unix socket of the proxy's machine: it has no address
    kUnknown,  // the proxy does not say who the client is (UNKNOWN, UNSPEC)
    kLocal,    // the proxy speaks for itself, as health checks do (LOCAL)
  };

  Kind kind = Kind::kUnknown;
  std::uint8_t version = 1;
  Endpoint source;  // the client
  Endpoint destination;
  std::size_t size = 0;  // bytes of the header; what follows belongs to the client

  bool operator==(const ProxyHeader&) const = default;
};

/// Why bytes are not a PROXY header.
enum class ProxyFault : std::uint8_t {
  kMissing,  // they begin differently
  kTooLong,
  kLine,      // v1: not five words, or the line does not end with CR LF
  kVersion,   // v2: not 2
  kCommand,   // v2: neither LOCAL nor PROXY
  kFamily,    // v1: not TCP4, TCP6 or UNKNOWN; v2: not a stream over IPv4, IPv6 or a Unix socket
  kLength,    // v2: too short for the addresses of its family
  kAddress,   // v1: not an address of its family
  kPort,      // v1: not 0 to 65535 without leading zeros
  kTlv,       // v2: a field that exceeds the header, or two checksums
  kChecksum,  // v2: the CRC-32C field is wrong
};
WEIR_ENUM_NAMES(ProxyFault, "no PROXY header", "too long", "bad line", "bad version", "bad command",
                "bad family", "bad length", "bad address", "bad port", "bad TLV", "bad checksum")

inline constexpr std::size_t kProxyV1BytesMax = 107;     // with CR LF, as the protocol says
inline constexpr std::size_t kProxyV2FixedBytes = 16;    // signature, command, family, length …
inline constexpr std::size_t kProxyV2PayloadMax = 1024;  // … and what the length counts
inline constexpr std::size_t kProxyHeaderBytesMax = kProxyV2FixedBytes + kProxyV2PayloadMax;

/// Reads a PROXY header from the first bytes of a connection; nullopt: more bytes are needed.
///
/// Promises: a result depends on the bytes of the header only, not on how many follow or on how
/// they were cut: what is a fault stays one, and kProxyHeaderBytesMax bytes are always decided.
/// Nothing is guessed: bytes that cannot become a header are kMissing from the first such byte on.
/// Optional fields (TLVs) are skipped, except the CRC-32C, which must be right if it is there. What
/// UNKNOWN, UNSPEC and LOCAL carry is ignored, as the protocol asks.
/// Cost: O(bytes of the header), no allocation; a version 2 header that is incomplete: O(1).
[[nodiscard]] Result<std::optional<ProxyHeader>, ProxyFault> parse_proxy_header(
    std::span<const std::byte> bytes) noexcept;

}  // namespace weir::inline v0::http
