#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weir::inline v0::io {

/// A name as in the message but in lower case and without pointers: length, label, length, …, 0.
using DnsWireName = std::string;

/// Reads numbers and names of a DNS message.
///
/// Promises: never reads outside of the message; after the first error everything is 0 or empty and
/// bad() is true. A name costs at most kPointersMax jumps. Copying copies the position.
class DnsReader {
 public:
  explicit DnsReader(std::span<const std::byte> message) : message_(message) {}

  [[nodiscard]] bool bad() const noexcept { return bad_; }
  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  void fail() noexcept { bad_ = true; }
  void seek(std::size_t at) noexcept {
    bad_ = bad_ || at > message_.size();
    at_ = at;
  }
  std::uint8_t u8() noexcept {
    if (bad_ || at_ >= message_.size()) {
      bad_ = true;
      return 0;
    }
    return std::to_integer<std::uint8_t>(message_[at_++]);
  }
  std::uint16_t u16() noexcept {
    const unsigned high = u8();
    return static_cast<std::uint16_t>(high << 8U | u8());
  }
  std::uint32_t u32() noexcept {
    const std::uint32_t high = u16();
    return high << 16U | u16();
  }

  /// A pointer leads back to before the place where this name began, or where the last one led to.
  DnsWireName name() {
    DnsWireName out;
    std::size_t after = 0;  // the first pointer
    std::size_t before = at_;
    int pointers = 0;
    while (!bad_) {
      const std::uint8_t size = u8();
      if ((size & 0xC0U) == 0xC0U) {
        const std::size_t to = (size & 0x3FU) << 8U | u8();
        if (after == 0) after = at_;
        if (to >= before || ++pointers > kPointersMax) bad_ = true;
        before = to;
        at_ = to;
        continue;
      }
      if (size > kLabelBytesMax || out.size() + size + 1 > kNameBytesMax) bad_ = true;
      if (bad_) break;
      out.push_back(static_cast<char>(size));
      if (size == 0) break;
      for (std::uint8_t i = 0; i < size; ++i) out.push_back(lower(u8()));
    }
    if (after != 0) at_ = after;
    return out;
  }

 private:
  static constexpr std::size_t kNameBytesMax = 255;  // RFC 1035, 3.1
  static constexpr std::size_t kLabelBytesMax = 63;
  static constexpr int kPointersMax = 128;  // a name has fewer labels

  static char lower(std::uint8_t c) noexcept {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  }

  std::span<const std::byte> message_;
  std::size_t at_ = 0;
  bool bad_ = false;
};

}  // namespace weir::inline v0::io
