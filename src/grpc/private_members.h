#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <grpc/grpc.h>
#include <grpcpp/impl/call_op_set.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_interceptor.h>
#include <grpcpp/version_info.h>

#if GRPC_CPP_VERSION_MAJOR != 1 || GRPC_CPP_VERSION_MINOR < 51
#error \
    "weir_grpc needs gRPC C++ 1.51 or later. Build with -DWEIR_GRPC=OFF and ask the \
AdmissionController in your handlers: docs/guide/library.md."
#elif GRPC_CPP_VERSION_MINOR > 51 && !defined(WEIR_GRPC_TRY)
#error \
    "weir_grpc is verified with gRPC C++ 1.51 only. To try a newer one, build with -DWEIR_GRPC=TRY \
and run its tests."
#endif

/// The members of gRPC's classes that weir_grpc needs and that gRPC keeps private. The standard
/// lets an explicit template instantiation name them. Each is named with its exact type, so a gRPC
/// in which one is missing or has another type does not compile. What a member means is not
/// checked by the compiler, so a version that is not verified is refused.
/// docs/design/grpc.md says what each is for, and what to do if this file does not compile.
namespace weir::inline v0::grpc {

using Interceptors = std::vector<std::unique_ptr<::grpc::experimental::Interceptor>>;
using InterceptorFactories =
    std::vector<std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface>>;
using Trailers = std::multimap<std::string, std::string>;
using MethodPointers = std::vector<std::unique_ptr<::grpc::internal::RpcServiceMethod>>;

MethodPointers& methods_of(::grpc::Service& service);
/// Takes the handler of a method; SetHandler() gives it another one.
std::unique_ptr<::grpc::internal::MethodHandler> take_handler(
    ::grpc::internal::RpcServiceMethod& method);

InterceptorFactories& interceptor_factories_of(::grpc::ServerBuilder& builder);
bool has_generic_service(const ::grpc::ServerBuilder& builder);

/// The metadata as received. client_metadata() of the context would copy it into a map.
const grpc_metadata_array& metadata_of(::grpc::ServerContextBase& context);
/// Null if the server has no interceptors.
const Interceptors* interceptors_of(const ::grpc::ServerContextBase& context);

::grpc::StatusCode status_of(const ::grpc::internal::CallOpServerSendStatus& operation);
const Trailers& trailers_of(const ::grpc::internal::CallOpServerSendStatus& operation);

}  // namespace weir::inline v0::grpc
