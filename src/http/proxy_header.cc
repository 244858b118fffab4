#include "http/proxy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace weir::inline v0::http {
namespace {

using Parsed = Result<std::optional<ProxyHeader>, ProxyFault>;
using Kind = ProxyHeader::Kind;

constexpr std::string_view kV1Begin = "PROXY ";
constexpr std::string_view kV2Signature("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr std::size_t kVersionAt = 12;
constexpr std::size_t kFamilyAt = 13;
constexpr std::size_t kLengthAt = 14;

/// What one family of version 2 writes: twice an address, then twice a port.
struct FamilyShape {
  std::uint8_t code;
  Kind kind;
  std::size_t address_bytes;
  bool ports;

  [[nodiscard]] constexpr std::size_t bytes() const {
    return 2 * (address_bytes + (ports ? 2 : 0));
  }
};
constexpr std::array<FamilyShape, 4> kFamilies = {{
    {0x00, Kind::kUnknown, 0, false},
    {0x11, Kind::kAddress, 4, true},
    {0x21, Kind::kAddress, 16, true},
    {0x31, Kind::kUnix, 108, false},
}};

constexpr std::uint8_t kTlvChecksum = 0x03;
constexpr std::size_t kTlvHeadBytes = 3;
constexpr std::size_t kChecksumBytes = 4;

/// CRC-32C (Castagnoli), a byte at a time.
constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  constexpr std::uint32_t kReversed = 0x82F63B78U;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kReversed : 0U);
    table[byte] = crc;
  }
  return table;
}();

std::uint8_t at(std::string_view text, std::size_t index) noexcept {
  return static_cast<std::uint8_t>(text[index]);
}

std::size_t two_bytes(std::string_view text, std::size_t index) noexcept {
  return (std::size_t{at(text, index)} << 8U) | at(text, index + 1);
}

/// As far as there are bytes.
bool may_begin(std::string_view text, std::string_view with) noexcept {
  const std::size_t size = std::min(text.size(), with.size());
  return text.substr(0, size) == with.substr(0, size);
}

std::optional<std::uint16_t> read_port(std::string_view text) noexcept {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

Parsed read_words(std::string_view line, ProxyHeader header) noexcept {
  std::array<std::string_view, 5> words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool last = i + 1 == words.size();
    const std::size_t end = last ? line.size() : line.find(' ');
    if (end == std::string_view::npos) return unexpected(ProxyFault::kLine);
    words[i] = line.substr(0, end);
    line.remove_prefix(last ? end : end + 1);
  }
  const bool v6 = words[0] == "TCP6";
  if (!v6 && words[0] != "TCP4") return unexpected(ProxyFault::kFamily);
  const auto source = parse_ip(words[1]);
  const auto destination = parse_ip(words[2]);
  if (!source || !destination || source->v6 != v6 || destination->v6 != v6) {
    return unexpected(ProxyFault::kAddress);
  }
  const auto source_port = read_port(words[3]);
  const auto destination_port = read_port(words[4]);
  if (!source_port || !destination_port) return unexpected(ProxyFault::kPort);
  header.kind = Kind::kAddress;
  header.source = {source->normalized(), *source_port};
  header.destination = {destination->normalized(), *destination_port};
  return std::optional(header);
}

Parsed read_v1(std::string_view text) noexcept {
  text = text.substr(0, kProxyV1BytesMax);
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) {
    if (text.size() == kProxyV1BytesMax) return unexpected(ProxyFault::kTooLong);
    return std::optional<ProxyHeader>();
  }
  if (text[end - 1] != '\r') return unexpected(ProxyFault::kLine);
  const std::string_view line = text.substr(kV1Begin.size(), end - 1 - kV1Begin.size());
  const ProxyHeader header{
      .kind = Kind::kUnknown, .version = 1, .source = {}, .destination = {}, .size = end + 1};
  if (line == "UNKNOWN" || line.starts_with("UNKNOWN ")) return std::optional(header);
  return read_words(line, header);
}

/// The checksum is that of the header with its own four bytes as zero.
bool checksum_holds(std::string_view header, std::size_t checksum_at) noexcept {
  std::uint32_t crc = ~std::uint32_t{0};
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool own = i >= checksum_at && i < checksum_at + kChecksumBytes;
    crc = kCrcTable[(crc ^ (own ? 0U : at(header, i))) & 0xffU] ^ (crc >> 8U);
  }
  const std::size_t stated =
      (two_bytes(header, checksum_at) << 16U) | two_bytes(header, checksum_at + 2);
  return stated == static_cast<std::uint32_t>(~crc);
}

std::optional<ProxyFault> check_tlvs(std::string_view header, std::size_t from) noexcept {
  std::size_t checksum_at = 0;
  while (from < header.size()) {
    if (header.size() - from < kTlvHeadBytes) return ProxyFault::kTlv;
    const std::size_t value = from + kTlvHeadBytes;
    const std::size_t size = two_bytes(header, from + 1);
    if (size > header.size() - value) return ProxyFault::kTlv;
    if (at(header, from) == kTlvChecksum) {
      if (size != kChecksumBytes || checksum_at != 0) return ProxyFault::kTlv;
      checksum_at = value;
    }
    from = value + size;
  }
  if (checksum_at != 0 && !checksum_holds(header, checksum_at)) return ProxyFault::kChecksum;
  return std::nullopt;
}

ProxyHeader::Endpoint read_endpoint(std::string_view address, std::size_t port) noexcept {
  IpAddress ip{.bytes = {}, .v6 = address.size() == 16};
  std::transform(address.begin(), address.end(), ip.bytes.begin(),
                 [](char c) { return static_cast<std::uint8_t>(c); });
  return {ip.normalized(), static_cast<std::uint16_t>(port)};
}

/// `text`: the whole header.
Parsed read_v2_body(std::string_view text, const FamilyShape& family) noexcept {
  ProxyHeader header{
      .kind = family.kind, .version = 2, .source = {}, .destination = {}, .size = text.size()};
  if (family.kind == Kind::kUnknown) return std::optional(header);
  if (const auto fault = check_tlvs(text, kProxyV2FixedBytes + family.bytes())) {
    return unexpected(*fault);
  }
  if (family.kind == Kind::kAddress) {
    const std::string_view body = text.substr(kProxyV2FixedBytes);
    const std::size_t each = family.address_bytes;
    header.source = read_endpoint(body.substr(0, each), two_bytes(body, 2 * each));
    header.destination = read_endpoint(body.substr(each, each), two_bytes(body, 2 * each + 2));
  }
  return std::optional(header);
}

/// The signature is complete. Each fault is reported as soon as its byte is there.
Parsed read_v2(std::string_view text) noexcept {
  const Parsed more = std::optional<ProxyHeader>();
  if (text.size() <= kVersionAt) return more;
  const unsigned command = at(text, kVersionAt) & 0xfU;
  if (at(text, kVersionAt) >> 4U != 2) return unexpected(ProxyFault::kVersion);
  if (command > 1) return unexpected(ProxyFault::kCommand);
  const bool local = command == 0;
  if (text.size() <= kFamilyAt) return more;
  const auto* const family =
      std::find_if(kFamilies.begin(), kFamilies.end(),
                   [&](const FamilyShape& one) { return one.code == at(text, kFamilyAt); });
  if (!local && family == kFamilies.end()) return unexpected(ProxyFault::kFamily);
  if (text.size() < kProxyV2FixedBytes) return more;
  const std::size_t length = two_bytes(text, kLengthAt);
  if (length > kProxyV2PayloadMax) return unexpected(ProxyFault::kTooLong);
  if (!local && length < family->bytes()) return unexpected(ProxyFault::kLength);
  const std::size_t size = kProxyV2FixedBytes + length;
  if (text.size() < size) return more;
  if (!local) return read_v2_body(text.substr(0, size), *family);
  return std::optional(ProxyHeader{
      .kind = Kind::kLocal, .version = 2, .source = {}, .destination = {}, .size = size});
}

}  // namespace

Result<std::optional<ProxyHeader>, ProxyFault> parse_proxy_header(
    std::span<const std::byte> bytes) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.empty()) return std::optional<ProxyHeader>();
  if (may_begin(text, kV2Signature)) {
    if (text.size() < kV2Signature.size()) return std::optional<ProxyHeader>();
    return read_v2(text);
  }
  if (!may_begin(text, kV1Begin)) return unexpected(ProxyFault::kMissing);
  return read_v1(text);
}

}  // namespace weir::inline v0::http
