#pragma once

#include <optional>

#include <grpcpp/impl/call.h>
#include <grpcpp/impl/call_hook.h>
#include <grpcpp/impl/call_op_set_interface.h>
#include <grpcpp/server_context.h>

#include "weir/control/admission_request.h"

namespace weir::inline v0::grpc {

/// Sees the operations of one call on their way to gRPC, to know with what status the handler ends
/// it. Nothing else tells: a MethodHandler sends the status itself.
///
/// Thread-safety: as the operations of one call: the status is sent once. Cost: a comparison of
/// types per operation. Lifetime: as long as copies of call() are used: until the RPC ends.
class StatusWatch final : public ::grpc::internal::CallHook {
 public:
  explicit StatusWatch(::grpc::internal::Call& call)
      : original_(call),
        watched_(call.call(), this, call.cq(), call.max_receive_message_size(),
                 call.server_rpc_info()) {}

  /// For the handler, in place of the original.
  [[nodiscard]] ::grpc::internal::Call* call() noexcept { return &watched_; }
  [[nodiscard]] ::grpc::internal::Call& original() noexcept { return original_; }
  /// When the RPC has ended. Aborts if no status was seen: every handler sends one, so this gRPC
  /// sends it in another way than the one that is watched, and every outcome would be wrong.
  [[nodiscard]] Outcome outcome(const ::grpc::ServerContextBase& context) const noexcept;

 private:
  void PerformOpsOnCall(::grpc::internal::CallOpSetInterface* operations,
                        ::grpc::internal::Call* call) override;

  ::grpc::internal::Call& original_;
  ::grpc::internal::Call watched_;
  std::optional<Outcome> sent_;
};

}  // namespace weir::inline v0::grpc
