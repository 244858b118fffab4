#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/net_address.h"
#include "weir/base/result.h"

namespace weir::inline v0::upstream {

/// Where endpoints come from.
enum class SourceKind : std::uint8_t {
  kAddress,  // "127.0.0.1:80", "[::1]:80", "unix:/path": one endpoint; "name:80": as kDns
  kDns,      // "dns:name:80": the A and AAAA records
  kSrv,      // "srv:_http._tcp.name": the SRV records, and the addresses of their targets
  kFile,     // "file:/path": one endpoint per line, watched
};
inline constexpr std::array<std::string_view, 4> kSourceKindNames = {"address", "dns", "srv",
                                                                     "file"};
[[nodiscard]] constexpr std::string_view name_of(SourceKind kind) noexcept {
  return kSourceKindNames[static_cast<std::size_t>(kind)];
}

/// One entry of `endpoints`, as an operator writes it. Nothing is resolved here.
struct SourceSpec {
  SourceKind kind = SourceKind::kAddress;
  NetAddress address;  // kAddress, kDns
  std::string text;    // kSrv: the name; kFile: the path

  bool operator==(const SourceSpec&) const = default;

  /// Whether its endpoints may change while the program runs.
  [[nodiscard]] bool dynamic() const noexcept {
    return kind != SourceKind::kAddress || address.kind == NetAddressKind::kName;
  }
};

/// What parse_source() accepts, for the `allowed` field of a ConfigError.
inline constexpr std::string_view kSourceSyntax =
    "host:port, unix:/path, dns:name:port, srv:_service._proto.name or file:/path";

/// Reads one entry of `endpoints`. The error says what is wrong with this text.
[[nodiscard]] Result<SourceSpec, std::string_view> parse_source(std::string_view text);

/// The text that parse_source() reads back.
[[nodiscard]] std::string to_string(const SourceSpec& spec);

}  // namespace weir::inline v0::upstream
