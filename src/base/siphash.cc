#include "weir/base/siphash.h"

#include <bit>
#include <cstring>

namespace weir::inline v0 {
namespace {

std::uint64_t read_le64(const std::byte* p) noexcept {
  if constexpr (std::endian::native == std::endian::little) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, sizeof word);
    return word;
  } else {
    std::uint64_t word = 0;
    for (unsigned i = 0; i < 8; ++i) word |= std::to_integer<std::uint64_t>(p[i]) << (8 * i);
    return word;
  }
}

class SipState {
 public:
  explicit SipState(SipKey key) noexcept
      : v0_(0x736F6D6570736575U ^ key.k0),
        v1_(0x646F72616E646F6DU ^ key.k1),
        v2_(0x6C7967656E657261U ^ key.k0),
        v3_(0x7465646279746573U ^ key.k1) {}

  void mark_wide() noexcept { v1_ ^= 0xEEU; }

  void absorb(std::span<const std::byte> data) noexcept {
    const std::size_t whole = data.size() / 8 * 8;
    for (std::size_t i = 0; i < whole; i += 8) compress(read_le64(data.data() + i));
    std::uint64_t last = std::uint64_t{data.size()} << 56U;
    for (std::size_t i = whole; i < data.size(); ++i) {
      last |= std::to_integer<std::uint64_t>(data[i]) << (8 * (i - whole));
    }
    compress(last);
  }

  std::uint64_t finish(std::uint64_t& word, std::uint64_t mark) noexcept {
    word ^= mark;
    for (int i = 0; i < 4; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }
  std::uint64_t finish_narrow() noexcept { return finish(v2_, 0xFFU); }
  Hash128 finish_wide() noexcept {
    const std::uint64_t low = finish(v2_, 0xEEU);
    const std::uint64_t high = finish(v1_, 0xDDU);
    return {low, high};
  }

 private:
  void compress(std::uint64_t word) noexcept {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
  }

  void round() noexcept {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_;
};

}  // namespace

std::uint64_t siphash64(SipKey key, std::span<const std::byte> data) noexcept {
  SipState state(key);
  state.absorb(data);
  return state.finish_narrow();
}

Hash128 siphash128(SipKey key, std::span<const std::byte> data) noexcept {
  SipState state(key);
  state.mark_wide();
  state.absorb(data);
  return state.finish_wide();
}

}  // namespace weir::inline v0
