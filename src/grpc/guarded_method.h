#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <grpc/byte_buffer.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>

#include "weir/base/time.h"
#include "weir/control/permit.h"
#include "weir/experimental/grpc/method_table.h"

#include "admission_core.h"

namespace weir::inline v0::grpc {

/// Stands in front of the handler of one sync or callback method, and owns it: admission first,
/// then the message is parsed, then the handler runs.
///
/// gRPC parses a message before it runs the handler. This one's Deserialize() only keeps the bytes,
/// so a refused call is never parsed.
/// Thread-safety: as gRPC calls it: any thread, for any number of calls.
class GuardedMethod final : public ::grpc::internal::MethodHandler {
 public:
  GuardedMethod(std::shared_ptr<AdmissionCore> core,
                const ::grpc::internal::RpcServiceMethod& method,
                std::unique_ptr<::grpc::internal::MethodHandler> handler);

  void RunHandler(const HandlerParameter& parameter) override;
  void* Deserialize(grpc_call* call, grpc_byte_buffer* message, ::grpc::Status* status,
                    void** handler_data) override;

  [[nodiscard]] AdmissionCore& core() noexcept { return *core_; }
  [[nodiscard]] ::grpc::internal::MethodHandler& handler() noexcept { return *handler_; }
  [[nodiscard]] const MethodRule& rule() const noexcept { return rule_; }
  /// Gives the handler away; of a guard that is about to be replaced.
  [[nodiscard]] std::unique_ptr<::grpc::internal::MethodHandler> give_handler() noexcept {
    return std::move(handler_);
  }
  /// Whether one message comes with the call, not by reading.
  [[nodiscard]] bool has_message() const noexcept { return has_message_; }
  /// What a permit for a call of this method is told when it begins.
  void begin(Permit& permit, TimePoint now) const noexcept;

 private:
  void run_sync(const HandlerParameter& parameter, grpc_byte_buffer* message);
  grpc_byte_buffer* take_message(const HandlerParameter& parameter);

  const std::shared_ptr<AdmissionCore> core_;
  std::unique_ptr<::grpc::internal::MethodHandler> handler_;
  const MethodRule rule_;
  const bool is_callback_;
  const bool has_message_;
  const bool is_stream_;
  std::mutex mutex_;
  /// Messages of sync calls that interceptors look at before they run: an interceptor would take
  /// the bytes for the parsed message.
  std::unordered_map<grpc_call*, grpc_byte_buffer*> hidden_;
};

/// The bytes of a message; none: 0.
[[nodiscard]] std::uint64_t bytes_of(grpc_byte_buffer* message) noexcept;

/// Puts guards in front of the sync and callback methods of a service. Guards of another core, from
/// a server that the service was registered with before, are replaced.
void guard_methods(::grpc::Service& service, const std::shared_ptr<AdmissionCore>& core);

}  // namespace weir::inline v0::grpc
