#include "weir/experimental/grpc/admission.h"

#include <utility>

#include "admission_core.h"
#include "guarded_method.h"

namespace weir::inline v0::grpc {

Admission::Admission(AdmissionController& controller, ServerOptions options)
    : core_(std::make_shared<AdmissionCore>(controller, std::move(options))) {}

Admission::Admission(std::shared_ptr<AdmissionCore> core) : core_(std::move(core)) {}

void Admission::guard(::grpc::Service& service) const {
  core_->set_has_interceptors(true);  // nobody knows: the builder is not ours
  guard_methods(service, core_);
  if (service.has_callback_methods()) core_->start_heartbeat();
}
void Admission::close() const {
  core_->close();
}
int Admission::waiting() const noexcept {
  return core_->waiting();
}

Admission admit(::grpc::Service& service, AdmissionController& controller, ServerOptions options) {
  Admission admission(controller, std::move(options));
  admission.guard(service);
  return admission;
}

}  // namespace weir::inline v0::grpc
