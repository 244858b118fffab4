#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/signer_testing.h"

namespace weir::inline v0::gateway::testkit {

inline constexpr std::int64_t kTokenTime = 1'800'000'000;  // Unix seconds

inline std::string base64url(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  unsigned bits = 0;
  unsigned held = 0;
  for (const char c : bytes) {
    bits = bits << 8U | static_cast<unsigned char>(c);
    held += 8;
    while (held >= 6) text += kAlphabet[bits >> (held -= 6) & 63U];
  }
  if (held > 0) text += kAlphabet[bits << (6 - held) & 63U];
  return text;
}

inline std::string make_jwt(const io::TestSigner& signer, std::string_view header,
                            std::string_view payload) {
  const std::string text = base64url(header) + "." + base64url(payload);
  return text + "." + base64url(signer.sign(text));
}

}  // namespace weir::inline v0::gateway::testkit
