#include "weir/base/ip_range.h"

#include <algorithm>
#include <cstddef>

#include "weir/base/number_text.h"

namespace weir::inline v0 {
namespace {

constexpr std::size_t kV4Bytes = 4;
constexpr std::size_t kV6Bytes = 16;
constexpr std::size_t kMappedPrefix = 12;  // ten zero bytes, two 0xff, then the v4 address

bool is_mapped(const std::array<std::uint8_t, kV6Bytes>& bytes) {
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](std::uint8_t b) { return b == 0; }) &&
         bytes[10] == 0xff && bytes[11] == 0xff;
}

/// A whole number without sign or leading zeros.
std::optional<std::uint32_t> parse_part(std::string_view text, std::uint32_t max, int base) {
  if (base == 10 && text.size() > 1 && text[0] == '0') return std::nullopt;
  const auto value = parse_number<std::uint32_t>(text, base);
  return value && *value <= max ? value : std::nullopt;
}

bool parse_v4(std::string_view text, std::uint8_t* out) {
  for (std::size_t i = 0; i < kV4Bytes; ++i) {
    const std::size_t dot = i + 1 < kV4Bytes ? text.find('.') : text.size();
    if (dot == std::string_view::npos) return false;
    const auto value = parse_part(text.substr(0, dot), 255, 10);
    if (!value) return false;
    out[i] = static_cast<std::uint8_t>(*value);
    text.remove_prefix(std::min(dot + 1, text.size()));
  }
  return text.empty();
}

/// Reads groups separated by ':' into bytes; the last may be a v4 address. Empty text has no group.
/// Returns the number of bytes, or nothing.
std::optional<std::size_t> parse_groups(std::string_view text, std::uint8_t* out) {
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t colon = text.find(':');
    const std::string_view group = text.substr(0, colon);
    if (group.find('.') != std::string_view::npos) {
      if (colon != std::string_view::npos || used + kV4Bytes > kV6Bytes) return std::nullopt;
      return parse_v4(group, out + used) ? std::optional(used + kV4Bytes) : std::nullopt;
    }
    const auto value = parse_part(group, 0xffff, 16);
    if (!value || group.size() > 4 || used + 2 > kV6Bytes) return std::nullopt;
    out[used++] = static_cast<std::uint8_t>(*value >> 8U);
    out[used++] = static_cast<std::uint8_t>(*value & 0xffU);
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
    if (text.empty()) return std::nullopt;  // "1:" ends with a lone colon
  }
  return used;
}

bool parse_v6(std::string_view text, std::array<std::uint8_t, kV6Bytes>& out) {
  const std::size_t gap = text.find("::");
  if (gap == std::string_view::npos) return parse_groups(text, out.data()) == kV6Bytes;
  std::array<std::uint8_t, kV6Bytes> tail{};
  const std::string_view left = text.substr(0, gap);
  if (left.find('.') != std::string_view::npos) return false;  // v4 only at the end
  const auto head_size = parse_groups(left, out.data());
  const auto tail_size = parse_groups(text.substr(gap + 2), tail.data());
  if (!head_size || !tail_size || *head_size + *tail_size > kV6Bytes - 2) return false;
  std::copy_n(tail.begin(), *tail_size, out.end() - static_cast<std::ptrdiff_t>(*tail_size));
  return true;
}

struct ZeroRun {
  std::size_t start = 8;  // in groups
  std::size_t length = 1;
};

/// The first longest run of at least two zero groups: what "::" stands for.
ZeroRun longest_zero_run(const std::array<std::uint32_t, 8>& groups) {
  ZeroRun best;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::size_t length = 0;
    while (i + length < groups.size() && groups[i + length] == 0) ++length;
    if (length > best.length) best = {i, length};
  }
  return best;
}

}  // namespace

IpAddress IpAddress::normalized() const noexcept {
  if (!v6 || !is_mapped(bytes)) return *this;
  IpAddress v4;
  std::copy_n(bytes.begin() + kMappedPrefix, kV4Bytes, v4.bytes.begin());
  return v4;
}

std::optional<IpAddress> parse_ip(std::string_view text) noexcept {
  IpAddress address;
  if (text.find(':') == std::string_view::npos) {
    if (!parse_v4(text, address.bytes.data())) return std::nullopt;
    return address;
  }
  address.v6 = true;
  if (!parse_v6(text, address.bytes)) return std::nullopt;
  return address;
}

void IpText::put(std::string_view text) noexcept {
  std::copy(text.begin(), text.end(), bytes_.begin() + size_);
  size_ = static_cast<std::uint8_t>(size_ + text.size());
}

void IpText::put_v4(const std::uint8_t* bytes) noexcept {
  for (std::size_t i = 0; i < kV4Bytes; ++i) {
    if (i > 0) put(".");
    put(NumberText(bytes[i]).view());
  }
}

IpText text_of(const IpAddress& address) noexcept {
  IpText text;
  if (!address.v6) {
    text.put_v4(address.bytes.data());
    return text;
  }
  if (is_mapped(address.bytes)) {
    text.put("::ffff:");
    text.put_v4(address.bytes.data() + kMappedPrefix);
    return text;
  }
  std::array<std::uint32_t, 8> groups{};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i] = (std::uint32_t{address.bytes[2 * i]} << 8U) | address.bytes[2 * i + 1];
  }
  const ZeroRun run = longest_zero_run(groups);
  for (std::size_t i = 0; i < groups.size();) {
    if (i == run.start) {
      text.put("::");
      i += run.length;
      continue;
    }
    if (text.size_ > 0 && text.bytes_[text.size_ - 1U] != ':') text.put(":");
    text.put(NumberText(groups[i++], 16).view());
  }
  return text;
}

std::string to_string(const IpAddress& address) {
  return std::string(text_of(address).view());
}

bool IpRange::contains(const IpAddress& address) const noexcept {
  const IpAddress other = address.normalized();
  if (other.v6 != base.v6) return false;
  const std::size_t whole = bits / 8U;
  if (!std::equal(base.bytes.begin(), base.bytes.begin() + whole, other.bytes.begin())) {
    return false;
  }
  const unsigned rest = bits % 8U;
  if (rest == 0) return true;
  const unsigned mask = 0xff00U >> rest & 0xffU;
  return (base.bytes[whole] & mask) == (other.bytes[whole] & mask);
}

Result<IpRange, IpRangeFault> parse_ip_range(std::string_view text) noexcept {
  const std::size_t slash = text.find('/');
  const auto parsed = parse_ip(text.substr(0, slash));
  if (!parsed) return unexpected(IpRangeFault::kBadAddress);
  const std::uint32_t width = parsed->v6 ? 128 : 32;
  std::uint32_t bits = width;
  if (slash != std::string_view::npos) {
    const auto length = parse_part(text.substr(slash + 1), width, 10);
    if (!length) return unexpected(IpRangeFault::kBadLength);
    bits = *length;
  }
  IpRange range{*parsed, static_cast<std::uint8_t>(bits)};
  for (std::uint32_t i = bits; i < width; ++i) {
    if ((range.base.bytes[i / 8] >> (7U - i % 8U) & 1U) != 0) {
      return unexpected(IpRangeFault::kHostBits);
    }
  }
  const IpAddress normal = parsed->normalized();
  if (normal.v6 != parsed->v6 && bits >= 96) range = {normal, static_cast<std::uint8_t>(bits - 96)};
  return range;
}

std::string to_string(const IpRange& range) {
  return to_string(range.base) + "/" + std::to_string(range.bits);
}

}  // namespace weir::inline v0
