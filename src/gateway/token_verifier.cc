#include "token_verifier.h"

#include <algorithm>
#include <bit>

namespace weir::inline v0::gateway {
namespace {

std::size_t entries_for(std::uint32_t cache_size) noexcept {
  return std::bit_ceil(std::max<std::size_t>(cache_size, 4));
}

}  // namespace

TokenVerifier::TokenVerifier(const Setup& setup)
    : counters_(setup.counters),
      entries_(entries_for(setup.cache_size)),
      scratch_(std::make_unique<JwtScratch>()) {}

std::size_t TokenVerifier::bytes_for(std::uint32_t cache_size) noexcept {
  return sizeof(TokenVerifier) + sizeof(JwtScratch) + entries_for(cache_size) * sizeof(Entry);
}

void TokenVerifier::forget() noexcept {
  std::fill(entries_.begin(), entries_.end(), Entry{});
}

bool TokenVerifier::Bucket::take(double rate, TimePoint now) noexcept {
  const double refilled = rate * to_seconds(std::max(now - at, Duration(0)));
  used = std::max(0.0, used - refilled);
  at = now;
  if (used + 1 > rate) return false;
  used += 1;
  return true;
}

bool TokenVerifier::may_verify(const Asked& asked, std::uint32_t per_second) noexcept {
  const auto rate = static_cast<double>(per_second);
  Bucket& source = sources_[asked.source % kSources];
  if (!source.take(rate, asked.now)) return false;
  if (all_.take(kAllSources * rate, asked.now)) return true;
  source.give_back();  // that others asked too much is not its fault
  return false;
}

std::span<TokenVerifier::Entry> TokenVerifier::set_of(const Hash128& token) noexcept {
  const std::size_t set = token.low & (entries_.size() / kWays - 1);
  return std::span(entries_).subspan(set * kWays, kWays);
}

Result<Identity, JwtFault> TokenVerifier::identify(const Asked& asked, const JwtRules& rules,
                                                   std::uint32_t per_second,
                                                   const AdmissionController& controller) noexcept {
  const auto fault = [&](JwtFault why) {
    counters_.faults[static_cast<std::size_t>(why)].add();
    return unexpected(why);
  };
  if (asked.token.size() > kJwtBytesMax) return fault(JwtFault::kTooLong);
  const Hash128 token = controller.identify_secret(asked.token).key;
  for (const Entry& entry : set_of(token)) {
    if (entry.token == token && asked.unix_now < entry.expires) {
      counters_.cached.add();
      return Identity{.key = entry.name, .label = {entry.label.data(), entry.label_size}};
    }
  }
  if (!may_verify(asked, per_second)) return fault(JwtFault::kThrottled);
  const auto found = verify_jwt(asked.token, rules, asked.unix_now, *scratch_);
  if (!found) return fault(found.error());
  counters_.verified.add();
  const Identity identity = controller.identify(found->name);
  remember(token, *found, identity);
  return identity;
}

// In place of the one that expires first: free places and expired ones are the first of all.
void TokenVerifier::remember(const Hash128& token, const VerifiedJwt& found,
                             const Identity& identity) noexcept {
  const std::span<Entry> set = set_of(token);
  Entry& entry = *std::min_element(
      set.begin(), set.end(), [](const Entry& a, const Entry& b) { return a.expires < b.expires; });
  entry.token = token;
  entry.name = identity.key;
  entry.expires = found.expires;
  entry.label_size = static_cast<std::uint8_t>(found.name.copy(entry.label.data(), kLabelMax));
}

}  // namespace weir::inline v0::gateway
