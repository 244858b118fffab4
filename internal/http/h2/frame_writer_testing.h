#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/h2/frame.h"

/// Builds frames byte by byte, so that the codec is not tested against itself.

namespace weir::inline v0::http::h2::wire {

using Fields = std::vector<std::pair<std::string, std::string>>;

inline std::string u8(unsigned value) {
  return std::string(1, static_cast<char>(value));
}
inline std::string u16(unsigned value) {
  return u8(value >> 8U & 0xffU) + u8(value & 0xffU);
}
inline std::string u32(std::uint32_t value) {
  return u16(value >> 16U) + u16(value & 0xffffU);
}

inline std::string frame(unsigned type, unsigned flags, std::uint32_t stream,
                         std::string_view payload) {
  const auto length = static_cast<unsigned>(payload.size());
  return u8(length >> 16U & 0xffU) + u16(length & 0xffffU) + u8(type) + u8(flags) + u32(stream) +
         std::string(payload);
}

/// RFC 7541 §5.1 with `bits` in the first byte, whose upper bits are `first`.
inline std::string hpack_int(unsigned first, unsigned bits, std::uint64_t value) {
  const unsigned most = (1U << bits) - 1;
  if (value < most) return u8(first | static_cast<unsigned>(value));
  std::string out = u8(first | most);
  for (value -= most; value >= 128; value >>= 7U) out += u8((value & 0x7fU) | 0x80U);
  return out + u8(static_cast<unsigned>(value));
}
inline std::string hpack_string(std::string_view text) {
  return hpack_int(0, 7, text.size()) + std::string(text);
}
/// A literal without indexing, a new name, no Huffman code.
inline std::string literal(std::string_view name, std::string_view value) {
  return u8(0) + hpack_string(name) + hpack_string(value);
}
/// A literal that enters the dynamic table.
inline std::string indexed_literal(std::string_view name, std::string_view value) {
  return u8(0x40) + hpack_string(name) + hpack_string(value);
}
inline std::string index(unsigned number) {
  return hpack_int(0x80, 7, number);
}

inline std::string block(const Fields& fields) {
  std::string out;
  for (const auto& [name, value] : fields) out += literal(name, value);
  return out;
}

inline Fields get(std::string_view path = "/") {
  return {
      {":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", std::string(path)}};
}
inline Fields post() {
  return {{":method", "POST"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/"}};
}
inline Fields with(Fields fields, Fields more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

inline constexpr unsigned kEnd = 0x1;
inline constexpr unsigned kAck = 0x1;
inline constexpr unsigned kEndHeaders = 0x4;
inline constexpr unsigned kPadded = 0x8;
inline constexpr unsigned kPriority = 0x20;

inline std::string preface() {
  return std::string(kClientPreface);
}
inline std::string settings(const std::vector<std::pair<unsigned, std::uint32_t>>& entries = {}) {
  std::string payload;
  for (const auto& [id, value] : entries) payload += u16(id) + u32(value);
  return frame(4, 0, 0, payload);
}
inline std::string settings_ack() {
  return frame(4, kAck, 0, "");
}
inline std::string headers(std::uint32_t stream, const Fields& fields, unsigned flags = kEnd) {
  return frame(1, flags | kEndHeaders, stream, block(fields));
}
inline std::string headers_raw(std::uint32_t stream, std::string_view fragment, unsigned flags) {
  return frame(1, flags, stream, fragment);
}
inline std::string continuation(std::uint32_t stream, std::string_view fragment,
                                unsigned flags = kEndHeaders) {
  return frame(9, flags, stream, fragment);
}
inline std::string data(std::uint32_t stream, std::string_view payload, unsigned flags = 0) {
  return frame(0, flags, stream, payload);
}
inline std::string rst(std::uint32_t stream, std::uint32_t code = 8) {
  return frame(3, 0, stream, u32(code));
}
inline std::string ping(unsigned flags = 0) {
  return frame(6, flags, 0, "weirping");
}
inline std::string window_update(std::uint32_t stream, std::uint32_t bytes) {
  return frame(8, 0, stream, u32(bytes));
}
inline std::string priority(std::uint32_t stream, std::uint32_t parent) {
  return frame(2, 0, stream, u32(parent) + u8(16));
}
inline std::string goaway(std::uint32_t last, std::uint32_t code) {
  return frame(7, 0, 0, u32(last) + u32(code));
}

}  // namespace weir::inline v0::http::h2::wire
