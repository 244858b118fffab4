#include "guarded_call.h"

#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

#include <grpc/grpc.h>

#include "weir/embed/clock.h"

#include "call_alarm.h"

namespace weir::inline v0::grpc {

using ::grpc::internal::MethodHandler;

void GuardedCall::start(GuardedMethod& method, const Parameter& parameter,
                        grpc_byte_buffer* message) {
  static_assert(alignof(GuardedCall) <= alignof(std::max_align_t));
  grpc_call* const call = parameter.call->call();
  void* const memory = grpc_call_arena_alloc(call, sizeof(GuardedCall));
  // The context's allocator may let go of the call before gRPC asks for the next one.
  grpc_call_ref(call);
  (new (memory) GuardedCall(method, parameter, message))->ask();
}

GuardedCall::GuardedCall(GuardedMethod& method, const Parameter& parameter,
                         grpc_byte_buffer* message)
    : method_(method),
      core_(method.core()),
      watch_(*parameter.call),
      context_(static_cast<::grpc::CallbackServerContext&>(*parameter.server_context)),
      message_(message),
      request_next_(parameter.call_requester) {}

GuardedCall::~GuardedCall() = default;

void GuardedCall::ask() {
  AdmissionCore& core = core_;
  const TimePoint now = embed::now();
  if (core.closed()) return refuse(Reason::kAdmitted, now);
  core.on_call(now);
  CallRequest request;
  core.fill(request, context_, method_.rule(), bytes_of(message_), now);
  Entered entered = core.controller().enter(request.ask, waiter_, now);
  if (entered.kind == Entered::Kind::kAdmitted) return serve(std::move(entered.permit), now);
  if (entered.kind == Entered::Kind::kRefused) return refuse(entered.reason, now);
  if (!core.park(waiter_, now)) return refuse(Reason::kAdmitted, now);
  // Its grant may have come meanwhile, on another thread: the later of the two goes on.
  if (parked_.test_and_set(std::memory_order_acq_rel)) after_wait();
}

/// Under a lock of the waiting room.
void GuardedCall::on_ready(Waiter& waiter) noexcept {
  auto& self = *static_cast<GuardedCall*>(waiter.context());
  run_soon<GuardedCall, &GuardedCall::wake>(self.alarm_, self);
}

void GuardedCall::wake() {
  if (parked_.test_and_set(std::memory_order_acq_rel)) after_wait();
}

void GuardedCall::after_wait() {
  AdmissionCore& core = core_;
  const TimePoint now = embed::now();
  Result<Permit, Reason> permit = core.controller().collect(waiter_, now);
  core.end_wait();  // first: when this call has ended, the server may end, and the core with it
  // While a call is parked gRPC does not say that it was cancelled; its handler is told at once.
  if (!permit) {
    refuse(permit.error(), now);
  } else if (core.closed()) {
    std::move(*permit).finish(Outcome::kIgnored, now);
    refuse(Reason::kAdmitted, now);
  } else {
    serve(std::move(*permit), now);
  }
}

void GuardedCall::serve(Permit permit, TimePoint now) {
  permit_ = std::move(permit);
  method_.begin(permit_, now);
  ::grpc::Status parsed;
  void* parsed_message = nullptr;
  void* handler_data = nullptr;
  MethodHandler& handler = method_.handler();
  if (method_.has_message()) {
    grpc_byte_buffer* const message = std::exchange(message_, nullptr);
    parsed_message = handler.Deserialize(watch_.call()->call(), message, &parsed, &handler_data);
  }
  // One pointer fits into a std::function without an allocation.
  handler.RunHandler(
      Parameter(watch_.call(), &context_, parsed_message, parsed, handler_data, [this] { end(); }));
}

void GuardedCall::refuse(Reason reason, TimePoint now) {
  core_.add_trailers(context_, reason, now);
  MethodHandler& answer = core_.callback_answer(reason);
  ::grpc::internal::Call& original = watch_.original();
  ::grpc::CallbackServerContext& context = context_;
  grpc_byte_buffer* const message = message_;
  std::function<void()> request_next = std::move(request_next_);
  this->~GuardedCall();
  grpc_call* const call = original.call();
  ::grpc::Status status;
  void* handler_data = nullptr;
  void* const buffer = answer.Deserialize(call, message, &status, &handler_data);
  answer.RunHandler(
      Parameter(&original, &context, buffer, status, handler_data, std::move(request_next)));
  grpc_call_unref(call);
}

/// The RPC has ended, and its handler has been told.
void GuardedCall::end() {
  std::move(permit_).finish(watch_.outcome(context_), embed::now());
  grpc_call* const call = watch_.original().call();
  const std::function<void()> request_next = std::move(request_next_);
  this->~GuardedCall();
  request_next();
  grpc_call_unref(call);
}

}  // namespace weir::inline v0::grpc
