#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/enum_names.h"
#include "weir/base/rng.h"
#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

/// What one part of a lookup (the addresses of one family, the SRV records) brought.
enum class LookupOutcome : std::uint8_t {
  kRecords,
  kEmpty,   // an authoritative "there are none" (NOERROR without records)
  kFailed,  // NXDOMAIN, SERVFAIL, timeout, unreadable: says nothing about the endpoints
};

/// What happens to the endpoints of one part.
enum class SetAction : std::uint8_t {
  kReplace,  // by the records of this lookup
  kKeep,     // what was known stays
  kClear,
};

/// Why the set of endpoints changes or stays, for logs and /endpoints.
enum class DiscoveryReason : std::uint8_t {
  kRecords,         // the answer is used
  kPartlyFailed,    // one part is used, the other failed and keeps what was known
  kFailed,          // nothing is removed
  kEmptyUnproven,   // an empty answer, not yet often and long enough
  kEmptyConfirmed,  // three empty answers in at least 10 s: the set is emptied
};
WEIR_ENUM_NAMES(DiscoveryReason, "records", "partly_failed", "failed", "empty_unproven",
                "empty_confirmed")

/// The bounds of DiscoveryRules.
struct DiscoveryTimes {
  Duration ttl_min = std::chrono::seconds(1);  // also the least time between two lookups
  Duration ttl_max = std::chrono::seconds(60);
  Duration empty_again = std::chrono::seconds(5);
  Duration empty_span_min = std::chrono::seconds(10);
  Duration failed_again_max = std::chrono::seconds(32);
};

/// When a set of discovered endpoints changes, and when to look again. With the default times:
///
/// | lookup | set | next lookup after |
/// |---|---|---|
/// | a part has records | that part is replaced, an empty one cleared, a failed one kept | TTL |
/// | no part has records, one failed | kept | 1, 2, 4 … 32 s |
/// | all parts empty | kept; cleared at the third in at least 10 s | 5 s |
///
/// TTL is bounded to 1 … 60 s. Each delay is multiplied by U(0.8, 1), but is at least 1 s: gateways
/// that started together do not ask together, and a change is seen within the TTL. Failures between
/// empty answers neither count nor start the count again; records do.
///
/// Promises: a failure never removes an endpoint. Thread-safety: none needed; a value.
class DiscoveryRules {
 public:
  static constexpr std::uint32_t kEmptyCount = 3;
  static constexpr std::size_t kPartsMax = 2;

  struct Part {
    LookupOutcome outcome = LookupOutcome::kFailed;
    Duration ttl{};  // of records
  };
  struct Decision {
    std::array<SetAction, kPartsMax> actions{SetAction::kKeep, SetAction::kKeep};
    DiscoveryReason reason = DiscoveryReason::kFailed;
    Duration next{};  // the delay until the next lookup
  };

  DiscoveryRules() = default;
  explicit DiscoveryRules(const DiscoveryTimes& times) noexcept : times_(times) {}

  /// The decision about a lookup that ended at `now`. For a lookup of one part, both are the same.
  [[nodiscard]] Decision on_lookup(Part first, Part second, TimePoint now, Rng& rng) noexcept;

  /// When a lookup that somebody asked for (a connection was refused) may start: at once, but at
  /// most one per ttl_min. `last` is the start of the last one.
  [[nodiscard]] TimePoint earliest_refresh(TimePoint last, TimePoint now) const noexcept {
    return now > last + times_.ttl_min ? now : last + times_.ttl_min;
  }

 private:
  [[nodiscard]] bool confirm_empty(TimePoint now) noexcept;
  [[nodiscard]] Duration after_failures() const noexcept;
  [[nodiscard]] Duration spread(Duration delay, Rng& rng) const noexcept;

  DiscoveryTimes times_;
  std::uint32_t failures_ = 0;  // in a row
  std::uint32_t empties_ = 0;   // since the last records
  TimePoint first_empty_{};
};

}  // namespace weir::inline v0::inline policy
