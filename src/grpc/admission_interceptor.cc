#include "admission_interceptor.h"

#include <string_view>
#include <utility>

#include <grpcpp/generic/async_generic_service.h>

#include "weir/embed/clock.h"

#include "call_alarm.h"
#include "call_outcome.h"

namespace weir::inline v0::grpc {

using ::grpc::experimental::InterceptionHookPoints;
using ::grpc::experimental::InterceptorBatchMethods;
using ::grpc::experimental::ServerRpcInfo;

namespace {

bool is_generic(const ::grpc::ServerContextBase& context) noexcept {
  return dynamic_cast<const ::grpc::GenericCallbackServerContext*>(&context) != nullptr ||
         dynamic_cast<const ::grpc::GenericServerContext*>(&context) != nullptr;
}

}  // namespace

AdmissionInterceptor::AdmissionInterceptor(AdmissionCore& core, ServerRpcInfo& info, bool is_stream)
    : core_(core),
      context_(*info.server_context()),
      rule_(core.options().methods.find(info.method())),
      is_stream_(is_stream) {}

AdmissionInterceptor::~AdmissionInterceptor() {
  if (permit_) std::move(permit_).finish(outcome_, embed::now());
}

void AdmissionInterceptor::Intercept(InterceptorBatchMethods* methods) {
  if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
    held_ = methods;
    return ask();
  }
  if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
    note_status(*methods);
  }
  methods->Proceed();
}

void AdmissionInterceptor::ask() {
  const TimePoint now = embed::now();
  if (core_.closed()) {
    refuse(Reason::kAdmitted, now);
    return go_on();
  }
  core_.on_call(now);
  CallRequest request;
  core_.fill(request, context_, rule_, 0, now);
  Entered entered = core_.controller().enter(request.ask, waiter_, now);
  if (entered.kind == Entered::Kind::kWaiting) {
    if (core_.park(waiter_, now)) {
      // The later of this and its grant goes on.
      if (parked_.test_and_set(std::memory_order_acq_rel)) after_wait();
      return;
    }
    refuse(Reason::kAdmitted, now);
    return go_on();
  }
  if (entered.kind == Entered::Kind::kAdmitted) {
    admit(std::move(entered.permit), now);
  } else {
    refuse(entered.reason, now);
  }
  go_on();
}

/// Under a lock of the waiting room.
void AdmissionInterceptor::on_ready(Waiter& waiter) noexcept {
  auto& self = *static_cast<AdmissionInterceptor*>(waiter.context());
  run_soon<AdmissionInterceptor, &AdmissionInterceptor::wake>(self.alarm_, self);
}

void AdmissionInterceptor::wake() {
  if (parked_.test_and_set(std::memory_order_acq_rel)) after_wait();
}

void AdmissionInterceptor::after_wait() {
  const TimePoint now = embed::now();
  Result<Permit, Reason> permit = core_.controller().collect(waiter_, now);
  core_.end_wait();
  if (!permit) {
    refuse(permit.error(), now);
  } else if (core_.closed()) {
    std::move(*permit).finish(Outcome::kIgnored, now);
    refuse(Reason::kAdmitted, now);
  } else {
    admit(std::move(*permit), now);
  }
  go_on();
}

void AdmissionInterceptor::admit(Permit permit, TimePoint now) {
  permit_ = std::move(permit);
  if (!is_stream_ || rule_.holds_limit) return;
  permit_.skip_sample();
  permit_.to_streaming(now);  // with streams_max of them it keeps its units in the limit
}

void AdmissionInterceptor::refuse(Reason reason, TimePoint now) {
  refusal_ = core_.status_for(reason);
  core_.add_trailers(context_, reason, now);
}

/// The call may end, and `this` with it, before Proceed() returns.
void AdmissionInterceptor::go_on() {
  std::exchange(held_, nullptr)->Proceed();
}

void AdmissionInterceptor::note_status(InterceptorBatchMethods& methods) {
  outcome_ = outcome_of(methods.GetSendStatus().error_code(), *methods.GetSendTrailingMetadata());
}

AdmissionInterceptors::AdmissionInterceptors(std::shared_ptr<AdmissionCore> core,
                                             std::set<std::string> async)
    : core_(std::move(core)), async_(async.begin(), async.end()) {}

::grpc::experimental::Interceptor* AdmissionInterceptors::CreateServerInterceptor(
    ServerRpcInfo* info) {
  // A generic call is known by its context, not by its name, which the client chose: it could be
  // that of a health check. gRPC calls every generic call a stream; most are not, so they stay in
  // the limit.
  if (is_generic(*info->server_context())) return new AdmissionInterceptor(*core_, *info, false);
  if (async_.contains(std::string_view(info->method()))) {
    return new AdmissionInterceptor(*core_, *info, info->type() != ServerRpcInfo::Type::UNARY);
  }
  return nullptr;  // it has a guard, or a plugin of gRPC serves it, such as health checks
}

}  // namespace weir::inline v0::grpc
