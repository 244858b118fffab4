// Asks for one permit, works, gives it back. Links weir::embed: the standard library only.
#include <cstdio>
#include <utility>

#include "weir/control/admission_controller.h"
#include "weir/embed/clock.h"

int main() {
  auto created = weir::AdmissionController::create(weir::AdmissionConfig{},
                                                   weir::Rng(weir::embed::random_seed()));
  if (!created) {
    for (const weir::ConfigError& error : created.error()) {
      std::fprintf(stderr, "%s: must be %s\n", error.key.c_str(), error.allowed.c_str());
    }
    return 2;
  }
  weir::AdmissionController& admission = **created;

  weir::AdmissionRequest request;
  request.priority = weir::Priority::kHigh;
  request.actor = admission.identify("alice");

  auto permit = admission.try_admit(request, weir::embed::now());
  if (!permit) {  // "overload", "actor_inflight", …
    std::printf("refused: %s\n", weir::name_of(permit.error()).data());
    return 1;
  }
  std::puts("served");  // what your server does
  std::move(*permit).finish(weir::Outcome::kOk, weir::embed::now());
  return 0;
}
