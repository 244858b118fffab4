#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "weir/base/owned_count.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/control/admission_controller.h"
#include "weir/control/admission_request.h"

#include "jwt.h"

namespace weir::inline v0::gateway {

/// How the tokens of a loop were judged; written by the loop.
struct TokenCounters {
  OwnedCount cached;
  OwnedCount verified;
  std::array<OwnedCount, kJwtFaultNames.size()> faults;
};

/// Verifies tokens for one loop, and remembers those that were right until they expire.
///
/// Promises: verifies at most `per_second` tokens of one source in a second, and twenty times that
/// of all: before admission nothing else bounds this work. A bad token is not remembered, so it
/// cannot displace a good one.
/// Thread-safety: its loop's thread. Cost: a remembered token costs one keyed hash; OpenSSL
/// allocates for the others. Lifetime: memory is allocated at start.
class TokenVerifier {
 public:
  struct Setup {
    std::uint32_t cache_size;  // tokens; rounded up to a power of two
    TokenCounters& counters;
  };
  explicit TokenVerifier(const Setup& setup);

  struct Asked {
    std::string_view token;
    std::uint64_t source;  // a keyed hash of the client's address
    TimePoint now;
    std::int64_t unix_now;
  };
  /// The identity by the name in the token; its label is valid until the next call.
  [[nodiscard]] Result<Identity, JwtFault> identify(const Asked& asked, const JwtRules& rules,
                                                    std::uint32_t per_second,
                                                    const AdmissionController& controller) noexcept;
  /// Forgets everything, because the rules changed.
  void forget() noexcept;

  /// Bytes of memory for a cache of this size.
  [[nodiscard]] static std::size_t bytes_for(std::uint32_t cache_size) noexcept;

 private:
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kSources = 256;  // those with the same remainder share a bucket
  static constexpr std::uint32_t kAllSources = 20;
  static constexpr std::size_t kLabelMax = 40;
  struct Entry {
    Hash128 token{};
    Hash128 name{};
    std::int64_t expires = 0;  // 0: free
    std::array<char, kLabelMax> label{};
    std::uint8_t label_size = 0;
  };
  /// Refilled by `rate` a second, holds a second's worth.
  struct Bucket {
    double used = 0;
    TimePoint at{};
    bool take(double rate, TimePoint now) noexcept;
    void give_back() noexcept { used -= 1; }
  };

  [[nodiscard]] std::span<Entry> set_of(const Hash128& token) noexcept;
  [[nodiscard]] bool may_verify(const Asked& asked, std::uint32_t per_second) noexcept;
  void remember(const Hash128& token, const VerifiedJwt& found, const Identity& identity) noexcept;

  TokenCounters& counters_;
  std::vector<Entry> entries_;
  std::array<Bucket, kSources> sources_{};
  Bucket all_;
  std::unique_ptr<JwtScratch> scratch_;
};

}  // namespace weir::inline v0::gateway
