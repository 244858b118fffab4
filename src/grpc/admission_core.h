#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "weir/base/time.h"
#include "weir/control/admission_controller.h"
#include "weir/control/waiter.h"
#include "weir/experimental/grpc/server_options.h"

#include "caller.h"
#include "heartbeat.h"

namespace weir::inline v0::grpc {

/// What is asked for one call. Its identities point into itself.
class CallRequest {
 public:
  CallRequest() = default;
  CallRequest(const CallRequest&) = delete;
  CallRequest& operator=(const CallRequest&) = delete;

  AdmissionRequest ask{};

 private:
  friend class AdmissionCore;
  Caller caller_{};
  std::string actor_{};
};

/// What the guards of one server share: the controller, the options, the answers to refused calls,
/// and the count of calls that wait.
///
/// Time: every call that arrives closes the controller's windows if 100 ms have passed. An alarm
/// expires waiters, and is set only while a call waits, so an idle server touches no controller.
/// Thread-safety: any member, any thread, except set_*(), which are for before the server starts.
class AdmissionCore : public std::enable_shared_from_this<AdmissionCore> {
 public:
  AdmissionCore(AdmissionController& controller, ServerOptions options);

  [[nodiscard]] AdmissionController& controller() noexcept { return controller_; }
  [[nodiscard]] const ServerOptions& options() const noexcept { return options_; }

  /// What admission is asked for a call with this rule and this message.
  void fill(CallRequest& request, ::grpc::ServerContextBase& context, const MethodRule& rule,
            std::uint64_t bytes, TimePoint now) const;

  // ---- refusals
  /// kAdmitted stands for a server that is closed.
  [[nodiscard]] ::grpc::Status status_for(Reason reason) const;
  /// Reason and retry hint, into the trailers of the call.
  void add_trailers(::grpc::ServerContextBase& context, Reason reason, TimePoint now) noexcept;
  /// Answers a call of the callback or the sync API with that status. Takes the message.
  [[nodiscard]] ::grpc::internal::MethodHandler& callback_answer(Reason reason) const noexcept {
    return *callback_answers_[index_of(reason)];
  }
  [[nodiscard]] ::grpc::internal::MethodHandler& sync_answer(Reason reason) const noexcept {
    return *sync_answers_[index_of(reason)];
  }

  // ---- time and waiting
  void on_call(TimePoint now) noexcept;
  // Whoever begins to wait looks at closed() afterwards, and close() at waiting() after it has set
  // closed: so one of them sees the other, and no call is left behind.
  /// A sync call asks, and it does not any more; closed() is to be asked in between.
  void begin_wait() noexcept { waiting_.fetch_add(1); }
  void end_wait() noexcept;
  /// A call waits without a thread, until end_wait(); it is expired in time. False: it does not, as
  /// admission was closed meanwhile; on_ready will not fire.
  [[nodiscard]] bool park(Waiter& waiter, TimePoint now);
  [[nodiscard]] int waiting() const noexcept { return waiting_.load(); }
  [[nodiscard]] bool closed() const noexcept { return closed_.load(); }
  /// Returns when no call waits, and none will.
  void close() noexcept;

  // ---- before the server starts
  void set_has_interceptors(bool has) noexcept { has_interceptors_ = has; }
  [[nodiscard]] bool has_interceptors() const noexcept { return has_interceptors_; }
  void start_heartbeat();

 private:
  struct ExpiryAlarm;
  using Answers = std::array<std::unique_ptr<::grpc::internal::MethodHandler>, kReasonCount>;

  void expire_in_time(TimePoint now);
  void on_alarm(std::int64_t set_for_ns) noexcept;

  AdmissionController& controller_;
  const ServerOptions options_;
  const CallerJudge judge_;
  Answers callback_answers_;
  Answers sync_answers_;
  std::atomic<std::uint64_t> jitter_{0};
  std::atomic<std::int64_t> next_expire_ns_{0};
  std::atomic<std::int64_t> alarm_set_for_ns_{INT64_MAX};
  std::mutex alarm_mutex_;  // held while an alarm uses the controller
  std::atomic<int> waiting_{0};
  std::atomic<bool> closed_{false};
  bool has_interceptors_ = false;
  std::shared_ptr<Heartbeat> heartbeat_;
};

}  // namespace weir::inline v0::grpc
