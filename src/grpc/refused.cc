#include "weir/experimental/grpc/refused.h"

#include "admission_interceptor.h"
#include "private_members.h"

namespace weir::inline v0::grpc {

std::optional<::grpc::Status> refused(const ::grpc::ServerContextBase& context) {
  const Interceptors* interceptors = interceptors_of(context);
  if (interceptors == nullptr) return std::nullopt;
  for (const auto& one : *interceptors) {
    const auto* admission = dynamic_cast<const AdmissionInterceptor*>(one.get());
    if (admission != nullptr) return admission->refusal();
  }
  return std::nullopt;
}

}  // namespace weir::inline v0::grpc
