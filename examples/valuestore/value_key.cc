#include "value_key.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <openssl/evp.h>

#include "weir/base/assert.h"

namespace valuestore {

ValueKey ValueKey::of(std::string_view prefix, std::string_view text) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(),
                                                                     &EVP_MD_CTX_free);
  std::array<unsigned char, kSize> digest{};
  unsigned int size = 0;
  const bool done = hash != nullptr && EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) == 1 &&
                    EVP_DigestUpdate(hash.get(), prefix.data(), prefix.size()) == 1 &&
                    EVP_DigestUpdate(hash.get(), text.data(), text.size()) == 1 &&
                    EVP_DigestFinal_ex(hash.get(), digest.data(), &size) == 1;
  WEIR_ASSERT(done && size == kSize);
  ValueKey key;
  std::memcpy(key.bytes.data(), digest.data(), kSize);
  return key;
}

std::optional<ValueKey> ValueKey::parse(std::string_view text) {
  if (text.size() != kSize) return std::nullopt;
  ValueKey key;
  std::copy(text.begin(), text.end(), key.bytes.begin());
  return key;
}

std::uint64_t ValueKey::mix() const noexcept {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

std::string ValueKey::hex() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

}  // namespace valuestore
