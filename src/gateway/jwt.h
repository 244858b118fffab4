#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/enum_names.h"
#include "weir/base/result.h"

#include "io/public_key.h"

namespace weir::inline v0::gateway {

/// Which tokens are believed.
struct JwtRules {
  std::vector<io::PublicKey> keys;
  std::string issuer{};    // empty: any
  std::string audience{};  // empty: any
  std::string claim = "sub";

  bool operator==(const JwtRules&) const = default;
};

enum class JwtFault : std::uint8_t {
  kTooLong,
  kMalformed,
  kAlgorithm,  // not that of any key
  kSignature,
  kExpired,
  kNotYet,
  kIssuer,
  kAudience,
  kNoClaim,    // or no exp
  kThrottled,  // not verified: too many others of its source were
};
WEIR_ENUM_NAMES(JwtFault, "too_long", "malformed", "algorithm", "signature", "expired", "not_yet",
                "issuer", "audience", "no_claim", "throttled")

inline constexpr std::size_t kJwtBytesMax = 8192;
inline constexpr std::int64_t kJwtLeewaySeconds = 60;  // clocks differ

/// Memory for one verification.
struct JwtScratch {
  std::array<char, kJwtBytesMax> header;
  std::array<char, kJwtBytesMax> payload;
  std::array<char, 1024> signature;
  std::array<char, 256> name;
};

struct VerifiedJwt {
  std::string_view name;     // the claim's; in the scratch
  std::int64_t expires = 0;  // Unix seconds, leeway included
};

/// Verifies a token (JWS compact form, RS256 or ES256) and reads the claim that names its bearer.
/// The algorithm is the key's: a token that names another one, or none, is not verified. The
/// payload is read only if the signature is right. A token without exp is not accepted.
///
/// Thread-safety: a function. Cost: tens of µs for the signature; OpenSSL allocates.
[[nodiscard]] Result<VerifiedJwt, JwtFault> verify_jwt(std::string_view token,
                                                       const JwtRules& rules, std::int64_t unix_now,
                                                       JwtScratch& scratch) noexcept;

}  // namespace weir::inline v0::gateway
