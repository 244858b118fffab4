#include "status_watch.h"

#include <typeinfo>

#include <grpcpp/impl/call_op_set.h>

#include "call_outcome.h"
#include "private_members.h"

namespace weir::inline v0::grpc {
namespace {

using ::grpc::internal::CallOpSendInitialMetadata;
using ::grpc::internal::CallOpSendMessage;
using ::grpc::internal::CallOpServerSendStatus;
using ::grpc::internal::CallOpSetInterface;
// The two sets of operations by which handlers of all kinds, sync and callback, send their status.
using WithMessage = ::grpc::internal::CallOpSet<CallOpSendInitialMetadata, CallOpSendMessage,
                                                CallOpServerSendStatus>;
using WithoutMessage =
    ::grpc::internal::CallOpSet<CallOpSendInitialMetadata, CallOpServerSendStatus>;

const CallOpServerSendStatus* status_in(const CallOpSetInterface& operations) noexcept {
  const std::type_info& type = typeid(operations);
  if (type == typeid(WithMessage)) return static_cast<const WithMessage*>(&operations);
  if (type == typeid(WithoutMessage)) return static_cast<const WithoutMessage*>(&operations);
  return nullptr;
}

}  // namespace

void StatusWatch::PerformOpsOnCall(CallOpSetInterface* operations, ::grpc::internal::Call* call) {
  static_cast<void>(call);
  if (const CallOpServerSendStatus* status = status_in(*operations)) {
    sent_ = outcome_of(status_of(*status), trailers_of(*status));
  }
  original_.PerformOps(operations);
}

Outcome StatusWatch::outcome(const ::grpc::ServerContextBase& context) const noexcept {
  if (sent_ == Outcome::kOk || sent_ == Outcome::kIgnored) return sent_;
  return context.IsCancelled() ? Outcome::kIgnored : sent_;
}

}  // namespace weir::inline v0::grpc
