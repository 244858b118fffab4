#pragma once

#include <vector>

#include "control/scope_seconds.h"
#include "policy/diagnosis.h"
#include "world.h"

namespace weir::inline v0::sim {

/// Diagnoses every service that has admission, once per second of a run, as a gateway does, and
/// gives the result to the recorder.
///
/// Thread-safety: none. Lifetime: the world must outlive it.
class DiagnosisWatch {
 public:
  explicit DiagnosisWatch(World& world, std::size_t services);
  /// The world has just run for another second.
  void second();

 private:
  struct Patient {
    ScopeSeconds seconds{};
    policy::Diagnoser diagnoser{};
  };
  World& world_;
  std::vector<Patient> patients_;
};

}  // namespace weir::inline v0::sim
