#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/enum_names.h"
#include "weir/base/net_address.h"
#include "weir/base/result.h"
#include "weir/experimental/upstream/endpoint_attributes_config.h"

namespace weir::inline v0::upstream {

/// Where endpoints come from.
enum class SourceKind : std::uint8_t {
  kAddress,  // "127.0.0.1:80", "[::1]:80", "unix:/path": one endpoint; "name:80": like kDns
  kDns,      // "dns:name:80": the A and AAAA records
  kSrv,      // "srv:_http._tcp.name": the SRV records, and the addresses of their targets
  kFile,     // "file:/path": one endpoint per line, watched
};
WEIR_ENUM_NAMES(SourceKind, "address", "dns", "srv", "file")

/// One entry of `endpoints`, as an operator writes it: a source, and attributes for all endpoints
/// that it has ("dns:api:8080 zone=b"). Nothing is resolved here.
struct SourceSpec {
  SourceKind kind = SourceKind::kAddress;
  NetAddress address;  // kAddress, kDns
  std::string text;    // kSrv: the name; kFile: the path
  EndpointAttributes attributes;

  bool operator==(const SourceSpec&) const = default;

  /// Whether its endpoints may change while the program runs.
  [[nodiscard]] bool dynamic() const noexcept {
    return kind != SourceKind::kAddress || address.kind == NetAddressKind::kName;
  }
  /// The source alone, without attributes.
  [[nodiscard]] std::string source() const;
  /// The text that parse_source() reads back.
  [[nodiscard]] std::string to_string() const { return source() + attributes.to_string(); }
};

/// The most endpoints that a source may have, if an answer of DNS has at most `records_max` records
/// that are used.
[[nodiscard]] inline std::size_t endpoints_max(const SourceSpec& spec, std::size_t records_max) {
  constexpr std::size_t kInFile = 1024;
  if (!spec.dynamic()) return 1;
  return spec.kind == SourceKind::kFile ? kInFile : records_max;
}

/// What parse_source() accepts, for the `allowed` field of a ConfigError.
inline constexpr std::string_view kSourceSyntax =
    "host:port, unix:/path, dns:name:port, srv:_service._proto.name or file:/path, and behind it "
    "weight=N, zone=Z, drain=true";

/// Reads one entry of `endpoints`. The error says what is wrong with this text.
[[nodiscard]] Result<SourceSpec, std::string> parse_source(std::string_view text);

namespace source_text {

[[nodiscard]] inline Result<NetAddress, std::string_view> address(std::string_view text) {
  using E = std::string_view;
  const auto parsed = parse_net_address(text);
  if (!parsed) {
    switch (parsed.error()) {
      case NetAddressFault::kEmpty:
        return unexpected(E("it is empty"));
      case NetAddressFault::kNoPort:
        return unexpected(E("it has no port"));
      case NetAddressFault::kBadPort:
        return unexpected(E("its port is not 1 to 65535"));
      case NetAddressFault::kBadHost:
        return unexpected(E("its host is neither an address nor a name ([::1]:80 for IPv6)"));
      case NetAddressFault::kBadPath:
        return unexpected(E("its path does not start with / or @, or is too long"));
    }
  }
  if (parsed->kind == NetAddressKind::kAny) return unexpected(E("it has no host to connect to"));
  if (!parsed->can_connect()) return unexpected(E("its port is not 1 to 65535"));
  return *parsed;
}

/// A name whose first two labels are "_service" and "_tcp" (or another protocol).
[[nodiscard]] inline bool is_service_name(std::string_view name) {
  const std::size_t first = name.find('.');
  if (first == std::string_view::npos || first < 2 || name[0] != '_') return false;
  const std::string_view rest = name.substr(first + 1);
  const std::size_t second = rest.find('.');
  if (second == std::string_view::npos || second < 2 || rest[0] != '_') return false;
  const auto as_host = parse_net_address(std::string(name) + ":1");
  return rest.size() > second + 1 && as_host && as_host->kind == NetAddressKind::kName;
}

/// A source without attributes.
[[nodiscard]] inline Result<SourceSpec, std::string_view> bare_source(std::string_view text) {
  using E = std::string_view;
  SourceSpec spec;
  if (text.starts_with("srv:")) {
    spec.kind = SourceKind::kSrv;
    spec.text = text.substr(4);
    if (is_service_name(spec.text)) return spec;
    return unexpected(E("an SRV name has the form _service._proto.name"));
  }
  if (text.starts_with("file:")) {
    spec.kind = SourceKind::kFile;
    spec.text = text.substr(5);
    const bool rooted = spec.text.size() > 1 && spec.text[0] == '/';
    if (rooted && spec.text.find('\0') == std::string::npos) return spec;
    return unexpected(E("its path does not start with /"));
  }
  const bool dns = text.starts_with("dns:");
  const auto found = address(dns ? text.substr(4) : text);
  if (!found) return unexpected(found.error());
  if (dns && found->kind != NetAddressKind::kName) {
    return unexpected(E("after dns: comes a host name, not an address"));
  }
  spec.kind = dns ? SourceKind::kDns : SourceKind::kAddress;
  spec.address = *found;
  return spec;
}

}  // namespace source_text

inline Result<SourceSpec, std::string> parse_source(std::string_view text) {
  std::string_view rest = text;
  auto bare = source_text::bare_source(take_word(rest));
  if (!bare) return unexpected(std::string(bare.error()));
  SourceSpec spec = std::move(*bare);
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    if (spec.kind == SourceKind::kFile) {
      return unexpected(std::string("attributes of its endpoints are in the file itself"));
    }
    if (spec.kind == SourceKind::kSrv && word.starts_with("weight=")) {
      return unexpected(std::string("SRV records have weights of their own"));
    }
    if (std::string fault = spec.attributes.set(word); !fault.empty()) return unexpected(fault);
  }
  return spec;
}

inline std::string SourceSpec::source() const {
  switch (kind) {
    case SourceKind::kAddress:
      return weir::to_string(address);
    case SourceKind::kDns:
      return "dns:" + weir::to_string(address);
    case SourceKind::kSrv:
      return "srv:" + text;
    case SourceKind::kFile:
      return "file:" + text;
  }
  return {};
}

}  // namespace weir::inline v0::upstream
