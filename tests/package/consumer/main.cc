// The first ten lines of a new user.
#include <chrono>
#include <cstdio>
#include <utility>

#include "weir/control/admission_controller.h"

int main() {
  weir::AdmissionController admission(weir::AdmissionConfig{}, weir::Rng(1));
  const weir::TimePoint now = weir::time_from_ns(1);
  auto permit = admission.try_admit(weir::AdmissionRequest{}, now);
  if (!permit) return 1;
  std::move(*permit).finish(weir::Outcome::kOk, now + std::chrono::milliseconds(5));
  std::puts("ok");
}
