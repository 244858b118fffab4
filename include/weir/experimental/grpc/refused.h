#pragma once

#include <optional>
#include <utility>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

namespace weir::inline v0::grpc {

/// Whether admission refused this call of an async or generic service, and the status to end it
/// with; its trailers are set already. The one line that such a handler needs:
///
///   if (auto status = weir::grpc::refused(context)) {
///     return responder.FinishWithError(*status, tag);
///   }
///
/// The call has waited before its tag was delivered, if it had to. Its permit ends with the call.
/// Without weir::grpc::ServerBuilder no call is refused.
/// Thread-safety: after the tag of the request was delivered, as the other members of the context.
/// Cost: a virtual call; no allocation unless refused.
[[nodiscard]] std::optional<::grpc::Status> refused(const ::grpc::ServerContextBase& context);

/// A generic callback service with that line in front of its CreateReactor():
///
///   weir::grpc::Admitted<MyGenericService> service(…);  // arguments of MyGenericService
///   builder.RegisterCallbackGenericService(&service);
template <class Generic>
class Admitted final : public Generic {
 public:
  using Generic::Generic;

  ::grpc::ServerGenericBidiReactor* CreateReactor(
      ::grpc::GenericCallbackServerContext* context) override {
    if (auto status = refused(*context)) return new Refusal(*std::move(status));
    return Generic::CreateReactor(context);
  }

 private:
  class Refusal final : public ::grpc::ServerGenericBidiReactor {
   public:
    explicit Refusal(::grpc::Status status) { this->Finish(std::move(status)); }
    void OnDone() override { delete this; }
  };
};

}  // namespace weir::inline v0::grpc
