#include "guarded_method.h"

#include <utility>

#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/server_context.h>

#include "weir/base/assert.h"
#include "weir/embed/clock.h"
#include "weir/embed/thread_parker.h"

#include "guarded_call.h"
#include "private_members.h"
#include "status_watch.h"

namespace weir::inline v0::grpc {
namespace {

using ::grpc::internal::RpcMethod;
using ::grpc::internal::RpcServiceMethod;
using ApiType = RpcServiceMethod::ApiType;

bool is_callback_api(ApiType type) noexcept {
  return type == ApiType::CALL_BACK || type == ApiType::RAW_CALL_BACK;
}

bool brings_message(RpcMethod::RpcType type) noexcept {
  return type == RpcMethod::NORMAL_RPC || type == RpcMethod::SERVER_STREAMING;
}

/// Counts a sync call as waiting while it asks.
class SyncWait {
 public:
  explicit SyncWait(AdmissionCore& core) : core_(core) { core_.begin_wait(); }
  ~SyncWait() { core_.end_wait(); }
  SyncWait(const SyncWait&) = delete;
  SyncWait& operator=(const SyncWait&) = delete;

 private:
  AdmissionCore& core_;
};

Result<Permit, Reason> ask_blocking(AdmissionCore& core, const CallRequest& request,
                                    TimePoint now) {
  const SyncWait wait(core);
  if (core.closed()) return unexpected(Reason::kAdmitted);
  embed::ThreadParker parker;
  auto permit = core.controller().admit(request.ask, parker, now);
  if (permit && core.closed()) {
    std::move(*permit).finish(Outcome::kIgnored, embed::now());
    return unexpected(Reason::kAdmitted);
  }
  return permit;
}

}  // namespace

std::uint64_t bytes_of(grpc_byte_buffer* message) noexcept {
  return message == nullptr ? 0 : grpc_byte_buffer_length(message);
}

GuardedMethod::GuardedMethod(std::shared_ptr<AdmissionCore> core, const RpcServiceMethod& method,
                             std::unique_ptr<MethodHandler> handler)
    : core_(std::move(core)),
      handler_(std::move(handler)),
      rule_(core_->options().methods.find(method.name())),
      is_callback_(is_callback_api(method.api_type())),
      has_message_(brings_message(method.method_type())),
      is_stream_(method.method_type() != RpcMethod::NORMAL_RPC) {}

void* GuardedMethod::Deserialize(grpc_call* call, grpc_byte_buffer* message,
                                 ::grpc::Status* /*status*/, void** handler_data) {
  if (handler_data != nullptr) {  // the callback API
    *handler_data = message;
    return nullptr;
  }
  if (!core_->has_interceptors()) return message;
  const std::scoped_lock lock(mutex_);
  hidden_.emplace(call, message);
  return nullptr;
}

grpc_byte_buffer* GuardedMethod::take_message(const HandlerParameter& parameter) {
  if (!has_message_) return nullptr;
  if (is_callback_) return static_cast<grpc_byte_buffer*>(parameter.internal_data);
  if (!core_->has_interceptors()) return static_cast<grpc_byte_buffer*>(parameter.request);
  const std::scoped_lock lock(mutex_);
  const auto found = hidden_.extract(parameter.call->call());
  WEIR_ASSERT(!found.empty());
  return found.mapped();
}

void GuardedMethod::RunHandler(const HandlerParameter& parameter) {
  grpc_byte_buffer* message = take_message(parameter);
  if (is_callback_) {
    GuardedCall::start(*this, parameter, message);
  } else {
    run_sync(parameter, message);
  }
}

void GuardedMethod::run_sync(const HandlerParameter& parameter, grpc_byte_buffer* message) {
  ::grpc::ServerContextBase& context = *parameter.server_context;
  TimePoint now = embed::now();
  core_->on_call(now);
  CallRequest request;
  core_->fill(request, context, rule_, bytes_of(message), now);
  auto permit = ask_blocking(*core_, request, now);
  now = embed::now();
  if (!permit) {
    core_->add_trailers(context, permit.error(), now);
    MethodHandler& answer = core_->sync_answer(permit.error());
    answer.Deserialize(parameter.call->call(), message, nullptr, nullptr);
    answer.RunHandler(parameter);
    return;
  }
  begin(*permit, now);
  StatusWatch watch(*parameter.call);
  ::grpc::Status parsed;
  void* parsed_message = nullptr;
  if (has_message_) {
    parsed_message = handler_->Deserialize(parameter.call->call(), message, &parsed, nullptr);
  }
  handler_->RunHandler(
      HandlerParameter(watch.call(), &context, parsed_message, parsed, nullptr, nullptr));
  std::move(*permit).finish(watch.outcome(context), embed::now());
}

void GuardedMethod::begin(Permit& permit, TimePoint now) const noexcept {
  if (!is_stream_ || rule_.holds_limit) return;
  permit.skip_sample();      // its latency says how long its client talks
  permit.to_streaming(now);  // with streams_max of them it keeps its units in the limit
}

void guard_methods(::grpc::Service& service, const std::shared_ptr<AdmissionCore>& core) {
  for (const auto& method : methods_of(service)) {
    if (method == nullptr || method->handler() == nullptr) continue;  // generic, async
    auto* const guard = dynamic_cast<GuardedMethod*>(method->handler());
    if (guard != nullptr && &guard->core() == core.get()) continue;
    auto handler = guard != nullptr ? guard->give_handler() : take_handler(*method);
    method->SetHandler(new GuardedMethod(core, *method, std::move(handler)));
  }
}

}  // namespace weir::inline v0::grpc
