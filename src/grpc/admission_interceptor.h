#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <grpcpp/alarm.h>
#include <grpcpp/support/interceptor.h>
#include <grpcpp/support/server_interceptor.h>
#include <grpcpp/support/status.h>

#include "weir/base/time.h"
#include "weir/control/permit.h"
#include "weir/control/waiter.h"

#include "admission_core.h"

namespace weir::inline v0::grpc {

/// One call of an async or generic service: asks for a permit when its metadata has arrived, and
/// lets gRPC go on when it is decided. An interceptor cannot refuse: it keeps the refusal, and the
/// handler asks for it with refused().
///
/// Lifetime: gRPC's, as that of the call's context; the permit is given back with it.
class AdmissionInterceptor final : public ::grpc::experimental::Interceptor {
 public:
  AdmissionInterceptor(AdmissionCore& core, ::grpc::experimental::ServerRpcInfo& info,
                       bool is_stream);
  ~AdmissionInterceptor() override;
  AdmissionInterceptor(const AdmissionInterceptor&) = delete;
  AdmissionInterceptor& operator=(const AdmissionInterceptor&) = delete;

  void Intercept(::grpc::experimental::InterceptorBatchMethods* methods) override;
  /// After it was decided.
  [[nodiscard]] const std::optional<::grpc::Status>& refusal() const noexcept { return refusal_; }

 private:
  void ask();
  static void on_ready(Waiter& waiter) noexcept;
  void wake();
  void after_wait();
  void admit(Permit permit, TimePoint now);
  void refuse(Reason reason, TimePoint now);
  void go_on();
  void note_status(::grpc::experimental::InterceptorBatchMethods& methods);

  AdmissionCore& core_;
  ::grpc::ServerContextBase& context_;
  const MethodRule rule_;
  const bool is_stream_;
  ::grpc::experimental::InterceptorBatchMethods* held_ = nullptr;  // until it is decided
  std::optional<::grpc::Status> refusal_;
  Outcome outcome_ = Outcome::kIgnored;  // as long as no status was sent
  Permit permit_;
  Waiter waiter_{&AdmissionInterceptor::on_ready, this};
  std::optional<::grpc::Alarm> alarm_;
  std::atomic_flag parked_;
};

/// Makes them for the calls of async and generic services only.
class AdmissionInterceptors final : public ::grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  /// `async`: full names of the methods of async services.
  AdmissionInterceptors(std::shared_ptr<AdmissionCore> core, std::set<std::string> async);

  ::grpc::experimental::Interceptor* CreateServerInterceptor(
      ::grpc::experimental::ServerRpcInfo* info) override;

 private:
  const std::shared_ptr<AdmissionCore> core_;
  const std::set<std::string, std::less<>> async_;
};

}  // namespace weir::inline v0::grpc
