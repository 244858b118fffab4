#include "http/websocket_key.h"

#include <algorithm>
#include <bit>
#include <span>

#include "weir/base/assert.h"

namespace weir::inline v0::http {
namespace {

using Digest = std::array<std::uint8_t, 20>;

using State = std::array<std::uint32_t, 5>;

/// One round function of SHA-1 and its constant (FIPS 180-4 §4.1.1, §4.2.1).
struct Round {
  std::uint32_t mixed;
  std::uint32_t constant;
};
constexpr Round round_of(std::size_t t, const State& state) noexcept {
  const std::uint32_t b = state[1];
  const std::uint32_t c = state[2];
  const std::uint32_t d = state[3];
  if (t < 20) return {(b & c) ^ (~b & d), 0x5a827999};
  if (t < 40) return {b ^ c ^ d, 0x6ed9eba1};
  if (t < 60) return {(b & c) ^ (b & d) ^ (c & d), 0x8f1bbcdc};
  return {b ^ c ^ d, 0xca62c1d6};
}

constexpr std::size_t kBlock = 64;

void add_block(State& state, std::span<const std::uint8_t, kBlock> block) noexcept {
  std::array<std::uint32_t, 80> w{};
  for (std::size_t t = 0; t < 16; ++t) {
    for (std::size_t i = 0; i < 4; ++i) w[t] = w[t] << 8U | block[4 * t + i];
  }
  for (std::size_t t = 16; t < w.size(); ++t) {
    w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
  }
  State next = state;
  for (std::size_t t = 0; t < w.size(); ++t) {
    const Round round = round_of(t, next);
    const std::uint32_t first =
        std::rotl(next[0], 5) + round.mixed + next[4] + round.constant + w[t];
    next = {first, next[0], std::rotl(next[1], 30), next[2], next[3]};
  }
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += next[i];
}

/// SHA-1 of a short text, without the allocations of a general library. RFC 6455 asks for it; it
/// protects nothing here.
Digest sha1(std::string_view text) noexcept {
  constexpr std::size_t kLengthBytes = 8;
  std::array<std::uint8_t, 2 * kBlock> padded{};
  WEIR_ASSERT(text.size() < padded.size() - kLengthBytes);
  std::copy(text.begin(), text.end(), padded.begin());
  padded[text.size()] = 0x80;
  const std::size_t size = text.size() + kLengthBytes < kBlock ? kBlock : padded.size();
  const std::size_t bits = text.size() * 8;
  padded[size - 2] = static_cast<std::uint8_t>(bits >> 8U);
  padded[size - 1] = static_cast<std::uint8_t>(bits);
  State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  for (std::size_t at = 0; at < size; at += kBlock) {
    add_block(state, std::span(padded).subspan(at).first<kBlock>());
  }
  Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

/// `out` has 4 characters for each 3 bytes, rounded up.
void write_base64(std::span<const std::uint8_t> bytes, std::span<char> out) noexcept {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  WEIR_ASSERT(out.size() == (bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t bit = i * 6;
    const std::size_t byte = bit / 8;
    if (byte >= bytes.size()) {
      out[i] = '=';
      continue;
    }
    const std::uint32_t next = byte + 1 < bytes.size() ? bytes[byte + 1] : 0U;
    const std::uint32_t pair = std::uint32_t{bytes[byte]} << 8U | next;
    out[i] = kDigits[pair >> (10 - bit % 8) & 63U];
  }
}

}  // namespace

WebSocketAccept::WebSocketAccept(std::string_view key) noexcept {
  constexpr std::string_view kFixed = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<char, 64 + kFixed.size()> joined;
  WEIR_ASSERT(key.size() <= joined.size() - kFixed.size());
  char* const end = std::copy(key.begin(), key.end(), joined.data());
  std::copy(kFixed.begin(), kFixed.end(), end);
  const Digest digest = sha1({joined.data(), key.size() + kFixed.size()});
  write_base64(digest, text_);
}

WebSocketKey WebSocketKey::draw(Rng& rng) noexcept {
  std::array<std::uint8_t, 16> bytes;
  for (std::size_t half = 0; half < 2; ++half) {
    std::uint64_t word = rng.next_u64();
    for (std::size_t i = 0; i < 8; ++i, word >>= 8U) {
      bytes[half * 8 + i] = static_cast<std::uint8_t>(word);
    }
  }
  WebSocketKey key;
  write_base64(bytes, key.text_);
  return key;
}

}  // namespace weir::inline v0::http
