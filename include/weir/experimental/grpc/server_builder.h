#pragma once

#include <memory>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "weir/base/config_error.h"
#include "weir/control/admission_controller.h"
#include "weir/experimental/grpc/admission.h"
#include "weir/experimental/grpc/server_options.h"

namespace weir::inline v0::grpc {

/// A grpc::ServerBuilder whose server asks an AdmissionController before each call:
///
///   weir::grpc::ServerBuilder builder(controller, options);  // was: grpc::ServerBuilder builder;
///   builder.RegisterService(&service);                       // unchanged
///   auto server = builder.BuildAndStart();                   // unchanged
///
/// Sync and callback services need nothing else. Handlers of async (completion queue) services and
/// of generic ones add one line: see refused.h. Services that gRPC's plugins add (health,
/// reflection, channelz) are not guarded.
///
/// Promises: a refused call is not parsed and its handler does not run. With interceptors of the
/// user's own, these run as before; at POST_RECV_MESSAGE of a unary or server-streaming method they
/// see no message (GetRecvMessage() is null), because it is not parsed yet.
/// Lifetime: the controller and the services must outlive the server, not the builder. A service
/// has one admission at a time: that of the server it was registered with last.
class ServerBuilder : public ::grpc::ServerBuilder {
 public:
  explicit ServerBuilder(AdmissionController& controller, ServerOptions options = {});
  ~ServerBuilder() override;

  /// As that of gRPC. Returns null also if the options have errors().
  std::unique_ptr<::grpc::Server> BuildAndStart() override;

  /// The errors in the options; after BuildAndStart() also methods of the table that no registered
  /// service has.
  [[nodiscard]] const ConfigErrors& errors() const noexcept { return errors_; }
  /// The admission of the server, to be closed before it is shut down. The options must have no
  /// errors() (asserted).
  [[nodiscard]] Admission admission() const;

 private:
  ConfigErrors errors_;
  std::shared_ptr<AdmissionCore> core_;  // null if the options have errors
};

}  // namespace weir::inline v0::grpc
