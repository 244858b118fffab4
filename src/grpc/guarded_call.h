#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include <grpc/byte_buffer.h>
#include <grpcpp/alarm.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/server_context.h>

#include "weir/base/time.h"
#include "weir/control/permit.h"
#include "weir/control/waiter.h"
#include "weir/policy/reason.h"

#include "admission_core.h"
#include "guarded_method.h"
#include "status_watch.h"

namespace weir::inline v0::grpc {

/// One call of a guarded method of the callback API, from its arrival to its end: asks for a
/// permit, waits for it without a thread, runs the handler or refuses.
///
/// Lifetime: lives in the memory of its call, and destroys itself: when it is refused, or when the
/// RPC has ended, which gRPC tells by asking for the next call. Cost: no allocation of its own,
/// except an alarm if it waits.
class GuardedCall {
 public:
  using Parameter = ::grpc::internal::MethodHandler::HandlerParameter;

  static void start(GuardedMethod& method, const Parameter& parameter, grpc_byte_buffer* message);
  GuardedCall(const GuardedCall&) = delete;
  GuardedCall& operator=(const GuardedCall&) = delete;

 private:
  GuardedCall(GuardedMethod& method, const Parameter& parameter, grpc_byte_buffer* message);
  ~GuardedCall();

  void ask();
  static void on_ready(Waiter& waiter) noexcept;
  void wake();
  void after_wait();
  void serve(Permit permit, TimePoint now);
  void refuse(Reason reason, TimePoint now);
  void end();

  GuardedMethod& method_;
  AdmissionCore& core_;
  StatusWatch watch_;
  ::grpc::CallbackServerContext& context_;
  grpc_byte_buffer* message_;  // owned until it is parsed or refused
  std::function<void()> request_next_;
  Permit permit_;
  Waiter waiter_{&GuardedCall::on_ready, this};
  std::optional<::grpc::Alarm> alarm_;  // only if it waits
  std::atomic_flag parked_;             // set by ask() when it is done, and by wake()
};

}  // namespace weir::inline v0::grpc
