#pragma once

#include <cstdint>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"
#include "weir/base/enum_names.h"
#include "weir/base/time.h"
#include "weir/policy/class_admission.h"
#include "weir/policy/limit_config.h"
#include "weir/policy/memory_shedding.h"
#include "weir/policy/rule_modes.h"

namespace weir::inline v0::inline control {

/// Who is next when several wait.
///   kOff    first come, first served
///   kActor  by turns among actors; requests without an actor share one turn
enum class Fairness : std::uint8_t { kOff, kActor };

WEIR_ENUM_NAMES(Fairness, "off", "actor")

/// The most bytes that can be charged to one actor: 42 bits of its budget word.
inline constexpr std::uint64_t kActorBytesMax = (std::uint64_t{1} << 42U) - 1U;
inline constexpr std::uint32_t kActorTableMax = 1U << 24U;

/// All settings of the admission rules. All may change while requests are in flight, except the
/// sizes marked "at start", which determine the memory layout.
struct AdmissionConfig {
  std::uint32_t max_concurrent = 1024;  // one bound over all scopes; critical is not counted
  std::uint32_t per_peer_limit = 64;    // in flight or waiting, per trusted peer

  std::uint32_t inflight_max = 16;                           // per actor
  std::uint64_t bytes_max = std::uint64_t{4} << 30U;         // per actor
  std::uint64_t total_bytes_max = std::uint64_t{64} << 30U;  // over all actors; 0 = no budget

  MemoryRules memory;  // thresholds above which low, then normal, is shed

  Duration high_wait_max = std::chrono::milliseconds(100);
  Duration normal_wait_max = std::chrono::milliseconds(50);
  std::uint32_t waiting_max = 1024;  // per scope
  Fairness fair = Fairness::kActor;  // among those that wait
  std::uint32_t streams_max = 4096;  // units that moved to streaming, over all scopes
  double warn_threshold = 0.8;       // a class at this share of its bound causes a warning

  ClassRules classes;
  LimitConfig limit;
  RuleModes modes;

  std::uint32_t actor_table_size = 32768;  // at start
  std::uint32_t peer_table_size = 4096;    // at start
  std::uint32_t scopes_max = 1;            // at start; one is faster than many

  bool operator==(const AdmissionConfig&) const = default;

  /// The number of entries that can be in use at once: in flight, streaming or waiting.
  [[nodiscard]] std::uint64_t pinned_max() const noexcept {
    return std::uint64_t{max_concurrent} + streams_max + std::uint64_t{waiting_max} * scopes_max;
  }

  [[nodiscard]] ConfigErrors validate() const;
};

inline ConfigErrors AdmissionConfig::validate() const {
  using std::chrono::seconds;
  ConfigErrors errors;
  check_range(errors, "max_concurrent", max_concurrent, 1U, kClassUnitsMax);
  check_range(errors, "per_peer_limit", per_peer_limit, 1U, kClassUnitsMax);
  check_range(errors, "inflight_max", inflight_max, 1U, kClassUnitsMax);
  check_range(errors, "bytes_max", bytes_max, std::uint64_t{1}, kActorBytesMax);
  check_range(errors, "total_bytes_max", total_bytes_max, std::uint64_t{0}, kActorBytesMax);
  append_errors(errors, "", memory.validate());
  check_range(errors, "high_wait_max_ms", high_wait_max, Duration(0), Duration(seconds(60)));
  check_range(errors, "normal_wait_max_ms", normal_wait_max, Duration(0), Duration(seconds(60)));
  check_range(errors, "waiting_max", waiting_max, 0U, 65536U);
  check_range(errors, "streams_max", streams_max, 0U, 1U << 20U);
  check_range(errors, "warn_threshold", warn_threshold, 0.01, 1.0);
  check_range(errors, "scopes_max", scopes_max, 1U, 1024U);
  const auto table_min = static_cast<std::uint32_t>(2 * pinned_max());
  check_range(errors, "actor_table_size", actor_table_size, table_min, kActorTableMax);
  check_range(errors, "peer_table_size", peer_table_size, 64U, 1U << 24U);
  append_errors(errors, "", classes.validate());
  append_errors(errors, "limit.", limit.validate());
  return errors;
}

}  // namespace weir::inline v0::inline control
