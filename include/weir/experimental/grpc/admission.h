#pragma once

#include <memory>

#include "weir/control/admission_controller.h"
#include "weir/experimental/grpc/server_options.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace weir::inline v0::grpc {

class AdmissionCore;

/// The admission of a gRPC server: what all guards of its methods share.
///
/// Every call of a guarded method asks the controller before its message is parsed and before its
/// handler runs, and holds its permit until the RPC has ended. Refused calls get a status, a reason
/// and a retry hint in their trailers. Calls of the callback API wait without a thread; calls of
/// the sync API block the thread that gRPC gave them.
///
/// Thread-safety: any member, any thread. Lifetime: a handle; copies mean the same admission. The
/// controller must outlive the server; the guarded services too, as without Weir.
class Admission {
 public:
  /// `options` must be valid (asserted): check them with ServerOptions::validate().
  Admission(AdmissionController& controller, ServerOptions options);

  /// Puts a guard in front of every sync and callback method of `service`. Before the service is
  /// registered; a second time has no effect.
  void guard(::grpc::Service& service) const;

  /// Ends admission: new calls are answered UNAVAILABLE, and so are waiting ones when it is their
  /// turn or their waiting time is over. Returns when no call waits and none will any more, which
  /// takes at most the longest waiting time. Calls that were admitted go on: call it before
  /// Server::Shutdown(), which waits for every call.
  void close() const;
  /// The calls that wait now.
  [[nodiscard]] int waiting() const noexcept;

 private:
  friend class ServerBuilder;
  explicit Admission(std::shared_ptr<AdmissionCore> core);
  std::shared_ptr<AdmissionCore> core_;
};

/// For those who cannot change the type of their builder: guards the sync and callback methods of
/// `service`. Call it before RegisterService(). Async and generic services need ServerBuilder.
/// `options` must be valid (asserted).
Admission admit(::grpc::Service& service, AdmissionController& controller,
                ServerOptions options = {});

}  // namespace weir::inline v0::grpc
