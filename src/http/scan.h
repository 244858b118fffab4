#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// Byte classes of HTTP, and loops that find the end of a run of allowed bytes. Sixteen bytes at a
/// time where the target has SSE2 (every x86-64); by table elsewhere and for the last fifteen
/// bytes, so that no load leaves [p, end).

namespace weir::inline v0::http::scan {

enum ByteClass : std::uint8_t {
  kToken = 1,   // RFC 9110 tchar
  kValue = 2,   // field value: visible, space, tab, 0x80 and above
  kTarget = 4,  // request target: visible ASCII but " # < >
  kHost = 8,    // registered name or IPv4: letters, digits, - . _ ~
  kDigit = 16,
  kHex = 32,
};

namespace internal {

consteval std::array<std::uint8_t, 256> byte_classes() {
  std::array<std::uint8_t, 256> table{};
  for (unsigned c = 0; c < 256; ++c) {
    const bool digit = c >= '0' && c <= '9';
    const bool alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool visible = c > 0x20 && c < 0x7f;
    unsigned bits = 0;
    bool mark = false;
    for (const char t :
         {'!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~'})
      mark = mark || c == static_cast<unsigned char>(t);
    if (digit || alpha || mark) bits |= kToken;
    if (visible || c == ' ' || c == '\t' || c >= 0x80) bits |= kValue;
    if (visible && c != '"' && c != '#' && c != '<' && c != '>') bits |= kTarget;
    if (digit || alpha || c == '-' || c == '.' || c == '_' || c == '~') bits |= kHost;
    if (digit) bits |= kDigit;
    if (digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) bits |= kHex;
    table[c] = static_cast<std::uint8_t>(bits);
  }
  return table;
}

}  // namespace internal

inline constexpr std::array<std::uint8_t, 256> kByteClasses = internal::byte_classes();

[[nodiscard]] inline bool is(char c, ByteClass byte_class) noexcept {
  return (kByteClasses[static_cast<unsigned char>(c)] & byte_class) != 0;
}

/// The first byte in [p, end) that is not in the class, or end.
[[nodiscard]] inline const char* skip_by_table(const char* p, const char* end,
                                               ByteClass byte_class) noexcept {
  while (p != end && is(*p, byte_class)) ++p;
  return p;
}

#if defined(__SSE2__)

namespace internal {

[[nodiscard]] inline __m128i load(const char* p) noexcept {
  __m128i x;
  std::memcpy(&x, p, sizeof x);  // an unaligned load
  return x;
}
[[nodiscard]] inline __m128i splat(unsigned c) noexcept {
  return _mm_set1_epi8(static_cast<char>(c));
}
[[nodiscard]] inline __m128i at_most(__m128i x, unsigned c) noexcept {
  return _mm_cmpeq_epi8(_mm_min_epu8(x, splat(c)), x);
}
[[nodiscard]] inline __m128i equal(__m128i x, unsigned c) noexcept {
  return _mm_cmpeq_epi8(x, splat(c));
}
[[nodiscard]] inline unsigned mask(__m128i x) noexcept {
  return static_cast<unsigned>(_mm_movemask_epi8(x));
}

[[nodiscard]] inline __m128i not_value(__m128i x) noexcept {
  return _mm_or_si128(_mm_andnot_si128(equal(x, '\t'), at_most(x, 0x1f)), equal(x, 0x7f));
}
[[nodiscard]] inline __m128i not_target(__m128i x) noexcept {
  const __m128i outside = _mm_or_si128(
      at_most(x, 0x20), _mm_cmpeq_epi8(_mm_max_epu8(x, splat(0x7f)), x));  // blank, DEL, ≥ 0x80
  const __m128i quote_hash = equal(_mm_and_si128(x, splat(0xfe)), 0x22);   // " #
  const __m128i angles = equal(_mm_and_si128(x, splat(0xfd)), 0x3c);       // < >
  return _mm_or_si128(outside, _mm_or_si128(quote_hash, angles));
}
/// Letters, digits, '-': all bytes of common names. The other token bytes use the table.
[[nodiscard]] inline __m128i plain_token(__m128i x) noexcept {
  const __m128i letter = at_most(_mm_sub_epi8(_mm_or_si128(x, splat(0x20)), splat('a')), 25);
  const __m128i digit = at_most(_mm_sub_epi8(x, splat('0')), 9);
  return _mm_or_si128(_mm_or_si128(letter, digit), equal(x, '-'));
}

}  // namespace internal

namespace internal {

/// All of 4 to 15 bytes, some of them twice, so that no load leaves [p, p + size).
[[nodiscard]] inline __m128i load_short(const char* p, std::size_t size) noexcept {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  if (size >= 8) {
    std::memcpy(&low, p, 8);
    std::memcpy(&high, p + size - 8, 8);
  } else {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::memcpy(&first, p, 4);
    std::memcpy(&last, p + size - 4, 4);
    low = high = first | std::uint64_t{last} << 32U;
  }
  return _mm_set_epi64x(static_cast<std::int64_t>(high), static_cast<std::int64_t>(low));
}

/// Whether `is_bad` is false for each byte of a range of at least four.
template <typename IsBad>
[[nodiscard]] inline bool none_of(const char* p, std::size_t size, IsBad is_bad) noexcept {
  if (size < 16) return mask(is_bad(load_short(p, size))) == 0;
  for (const char* const last = p + size - 16; p < last; p += 16) {
    if (mask(is_bad(load(p))) != 0) return false;
    if (last - p < 16) return mask(is_bad(load(last))) == 0;
  }
  return mask(is_bad(load(p))) == 0;
}

}  // namespace internal

/// Whether all bytes of [p, p + size) are of the class.
[[nodiscard]] inline bool all_value(const char* p, std::size_t size) noexcept {
  if (size < 4) return skip_by_table(p, p + size, kValue) == p + size;
  return internal::none_of(p, size, internal::not_value);
}
[[nodiscard]] inline bool all_token(const char* p, std::size_t size) noexcept {
  const auto not_plain = [](__m128i x) {
    return _mm_andnot_si128(internal::plain_token(x), internal::splat(0xff));
  };
  if (size >= 4 && internal::none_of(p, size, not_plain)) return true;
  return skip_by_table(p, p + size, kToken) == p + size;
}

[[nodiscard]] inline const char* skip_value(const char* p, const char* end) noexcept {
  for (; end - p >= 16; p += 16)
    if (const unsigned m = internal::mask(internal::not_value(internal::load(p))); m != 0)
      return p + std::countr_zero(m);
  return skip_by_table(p, end, kValue);
}

[[nodiscard]] inline const char* skip_target(const char* p, const char* end) noexcept {
  for (; end - p >= 16; p += 16)
    if (const unsigned m = internal::mask(internal::not_target(internal::load(p))); m != 0)
      return p + std::countr_zero(m);
  return skip_by_table(p, end, kTarget);
}

[[nodiscard]] inline const char* skip_token(const char* p, const char* end) noexcept {
  for (; end - p >= 16; p += 16)
    if (const unsigned m = internal::mask(internal::plain_token(internal::load(p))); m != 0xffff) {
      p += std::countr_one(m);
      break;
    }
  return skip_by_table(p, end, kToken);
}

#else

[[nodiscard]] inline bool all_value(const char* p, std::size_t size) noexcept {
  return skip_by_table(p, p + size, kValue) == p + size;
}
[[nodiscard]] inline bool all_token(const char* p, std::size_t size) noexcept {
  return skip_by_table(p, p + size, kToken) == p + size;
}
[[nodiscard]] inline const char* skip_value(const char* p, const char* end) noexcept {
  return skip_by_table(p, end, kValue);
}
[[nodiscard]] inline const char* skip_target(const char* p, const char* end) noexcept {
  return skip_by_table(p, end, kTarget);
}
[[nodiscard]] inline const char* skip_token(const char* p, const char* end) noexcept {
  return skip_by_table(p, end, kToken);
}

#endif

}  // namespace weir::inline v0::http::scan
