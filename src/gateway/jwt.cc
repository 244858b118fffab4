#include "jwt.h"

#include <algorithm>
#include <optional>
#include <span>

#include "json_members.h"

namespace weir::inline v0::gateway {
namespace {

constexpr std::array<std::int8_t, 256> kSextets = [] {
  std::array<std::int8_t, 256> values{};
  for (std::int8_t& value : values) value = -1;
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}();

/// Base64url without padding. Each text has one encoding: unused bits must be zero.
std::optional<std::string_view> decoded(std::string_view text, std::span<char> out) noexcept {
  if (text.size() % 4 == 1 || text.size() * 3 / 4 > out.size()) return std::nullopt;
  std::uint32_t bits = 0;
  unsigned held = 0;
  std::size_t size = 0;
  for (const char c : text) {
    const int sextet = kSextets[static_cast<unsigned char>(c)];
    if (sextet < 0) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(sextet);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out[size++] = static_cast<char>(bits >> held & 0xFFU);
    }
  }
  if ((bits & ((1U << held) - 1)) != 0) return std::nullopt;
  return std::string_view(out.data(), size);
}

struct Parts {
  std::string_view header;
  std::string_view payload;
  std::string_view signature;
  std::string_view signed_text;
};

std::optional<Parts> split(std::string_view token) noexcept {
  const std::size_t first = token.find('.');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = token.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  return Parts{.header = token.substr(0, first),
               .payload = token.substr(first + 1, second - first - 1),
               .signature = token.substr(second + 1),
               .signed_text = token.substr(0, second)};
}

/// Why no key of the rules signed this token; none if one did.
std::optional<JwtFault> signature_fault(const Parts& parts, const JwtRules& rules,
                                        JwtScratch& scratch) noexcept {
  const auto header = decoded(parts.header, scratch.header);
  const auto signature = decoded(parts.signature, scratch.signature);
  if (!header || !signature) return JwtFault::kMalformed;
  const auto members = JsonMembers::of(*header);
  // "crit" lists extensions that must be understood, and we know none.
  if (!members || members->find("crit") != nullptr) return JwtFault::kMalformed;
  const auto algorithm = members->text("alg", scratch.name);
  JwtFault fault = JwtFault::kAlgorithm;
  for (const io::PublicKey& key : rules.keys) {
    if (algorithm != io::name_of(key.algorithm())) continue;
    if (key.verifies(parts.signed_text, *signature)) return std::nullopt;
    fault = JwtFault::kSignature;
  }
  return fault;
}

}  // namespace

Result<VerifiedJwt, JwtFault> verify_jwt(std::string_view token, const JwtRules& rules,
                                         std::int64_t unix_now, JwtScratch& scratch) noexcept {
  if (token.size() > kJwtBytesMax) return unexpected(JwtFault::kTooLong);
  const auto parts = split(token);
  if (!parts) return unexpected(JwtFault::kMalformed);
  if (const auto fault = signature_fault(*parts, rules, scratch)) return unexpected(*fault);

  const auto payload = decoded(parts->payload, scratch.payload);
  const auto claims = payload ? JsonMembers::of(*payload) : std::nullopt;
  if (!claims) return unexpected(JwtFault::kMalformed);
  const auto now = static_cast<double>(unix_now);
  const auto leeway = static_cast<double>(kJwtLeewaySeconds);
  const auto expires = claims->number("exp");
  if (!expires) return unexpected(JwtFault::kNoClaim);
  if (now >= *expires + leeway) return unexpected(JwtFault::kExpired);
  if (claims->find("nbf") != nullptr) {
    const auto begins = claims->number("nbf");
    if (!begins) return unexpected(JwtFault::kMalformed);
    if (now < *begins - leeway) return unexpected(JwtFault::kNotYet);
  }
  if (!rules.issuer.empty() && claims->text("iss", scratch.name) != rules.issuer) {
    return unexpected(JwtFault::kIssuer);
  }
  if (!rules.audience.empty() && !claims->has_text("aud", rules.audience)) {
    return unexpected(JwtFault::kAudience);
  }
  const auto name = claims->text(rules.claim, scratch.name);
  if (!name || name->empty()) return unexpected(JwtFault::kNoClaim);
  constexpr double kFarFuture = 1e15;
  return VerifiedJwt{.name = *name,
                     .expires = static_cast<std::int64_t>(std::min(*expires + leeway, kFarFuture))};
}

}  // namespace weir::inline v0::gateway
