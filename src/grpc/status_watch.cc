#include "status_watch.h"

#include <type_traits>
#include <typeinfo>

#include <grpcpp/impl/call_op_set.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/support/byte_buffer.h>

#include "weir/base/assert.h"

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

/// Instantiated explicitly with the member by which a callback handler sends its status: a gRPC
/// that sends it by another type does not compile. Those of sync handlers are local to functions:
/// outcome() asserts that they were seen.
template <auto member>
struct SendsItsStatusByASetOfThese;
template <class Handler, class Set, Set Handler::*member>
struct SendsItsStatusByASetOfThese<member> {
  static_assert(std::is_same_v<Set, WithMessage> || std::is_same_v<Set, WithoutMessage>);
};

using Buffer = ::grpc::ByteBuffer;
using Unary = ::grpc::internal::CallbackUnaryHandler<Buffer, Buffer>;
using ClientStreaming = ::grpc::internal::CallbackClientStreamingHandler<Buffer, Buffer>;
using ServerStreaming = ::grpc::internal::CallbackServerStreamingHandler<Buffer, Buffer>;
using BidiStreaming = ::grpc::internal::CallbackBidiHandler<Buffer, Buffer>;
template struct SendsItsStatusByASetOfThese<&Unary::ServerCallbackUnaryImpl::finish_ops_>;
template struct SendsItsStatusByASetOfThese<
    &ClientStreaming::ServerCallbackReaderImpl::finish_ops_>;
template struct SendsItsStatusByASetOfThese<
    &ServerStreaming::ServerCallbackWriterImpl::finish_ops_>;
template struct SendsItsStatusByASetOfThese<
    &BidiStreaming::ServerCallbackReaderWriterImpl::finish_ops_>;

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
  WEIR_ASSERT(sent_.has_value());
  if (*sent_ == Outcome::kOk || *sent_ == Outcome::kIgnored) return *sent_;
  return context.IsCancelled() ? Outcome::kIgnored : *sent_;
}

}  // namespace weir::inline v0::grpc
