#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/control/admission_config.h"

#include "recorded_load.h"
#include "service_fit.h"

namespace weir::inline v0::sim {

/// The recorded requests again, before a service as it was fitted.
struct ReplayCase {
  AdmissionConfig admission{};
  std::uint32_t workers = 0;  // 0: those of the fit; without a bound if they are not known
};

/// The decisions of such a run, asked for from 0 on. Deterministic.
[[nodiscard]] std::vector<policy::RecordedDecision> replay_run(const RecordedLoad& load,
                                                               const ServiceFit& fit,
                                                               const ReplayCase& with);

/// How far a number that was replayed is from the recorded one.
struct Deviation {
  std::string what;  // "refused", "p99"
  double recorded = 0;
  double replayed = 0;
  bool fits = false;
};

/// The comparison of the past with its replay, and what other settings would have done.
struct ReplayResult {
  RecordedLoad load;
  ServiceFit fit;
  LoadResult recorded;
  LoadResult replayed;
  std::vector<Deviation> deviations;
  std::optional<LoadResult> forecast;  // only if the replay fits

  [[nodiscard]] bool fits() const noexcept;
  /// More was in flight in the forecast than the recording says anything about.
  [[nodiscard]] bool beyond_what_is_known(std::uint32_t workers) const noexcept;
};

/// `other`: what to forecast, if anything.
[[nodiscard]] ReplayResult replay_and_compare(RecordedLoad load, const AdmissionConfig& recorded,
                                              const std::optional<ReplayCase>& other);

}  // namespace weir::inline v0::sim
