#include "private_members.h"

#include <utility>

namespace weir::inline v0::grpc {
namespace {

/// Instantiated explicitly with a pointer to a private member, it defines the function that returns
/// this pointer and that the tag has declared.
template <class Tag, typename Tag::Type pointer>
struct Exposed {
  friend typename Tag::Type pointer_to(Tag /*tag*/) noexcept { return pointer; }
};

template <class Owner, class Member>
using MemberOf = Member Owner::*;

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): a type cannot be made from a member's name.
#define WEIR_EXPOSE(tag, owner, type, member)   \
  struct tag {                                  \
    using Type = MemberOf<owner, type>;         \
    friend Type pointer_to(tag which) noexcept; \
  };                                            \
  template struct Exposed<tag, &owner::member>

using Handler = std::unique_ptr<::grpc::internal::MethodHandler>;
using TrailersPointer = Trailers*;
using RpcInfoPointer = ::grpc::experimental::ServerRpcInfo*;
using AsyncGenericPointer = ::grpc::AsyncGenericService*;
using CallbackGenericPointer = ::grpc::CallbackGenericService*;

WEIR_EXPOSE(ServiceMethods, ::grpc::Service, MethodPointers, methods_);
WEIR_EXPOSE(MethodHandlerOf, ::grpc::internal::RpcServiceMethod, Handler, handler_);
WEIR_EXPOSE(BuilderFactories, ::grpc::ServerBuilder, InterceptorFactories, interceptor_creators_);
WEIR_EXPOSE(BuilderGeneric, ::grpc::ServerBuilder, AsyncGenericPointer, generic_service_);
WEIR_EXPOSE(BuilderCallbackGeneric, ::grpc::ServerBuilder, CallbackGenericPointer,
            callback_generic_service_);
WEIR_EXPOSE(ContextMetadata, ::grpc::ServerContextBase, ::grpc::internal::MetadataMap,
            client_metadata_);
WEIR_EXPOSE(ContextRpcInfo, ::grpc::ServerContextBase, RpcInfoPointer, rpc_info_);
WEIR_EXPOSE(RpcInfoInterceptors, ::grpc::experimental::ServerRpcInfo, Interceptors, interceptors_);
WEIR_EXPOSE(SentStatus, ::grpc::internal::CallOpServerSendStatus, grpc_status_code,
            send_status_code_);
WEIR_EXPOSE(SentTrailers, ::grpc::internal::CallOpServerSendStatus, TrailersPointer, metadata_map_);

#undef WEIR_EXPOSE

}  // namespace

MethodPointers& methods_of(::grpc::Service& service) {
  return service.*pointer_to(ServiceMethods{});
}

std::unique_ptr<::grpc::internal::MethodHandler> take_handler(
    ::grpc::internal::RpcServiceMethod& method) {
  return std::move(method.*pointer_to(MethodHandlerOf{}));
}

InterceptorFactories& interceptor_factories_of(::grpc::ServerBuilder& builder) {
  return builder.*pointer_to(BuilderFactories{});
}

bool has_generic_service(const ::grpc::ServerBuilder& builder) {
  return builder.*pointer_to(BuilderGeneric{}) != nullptr ||
         builder.*pointer_to(BuilderCallbackGeneric{}) != nullptr;
}

const grpc_metadata_array& metadata_of(::grpc::ServerContextBase& context) {
  return *(context.*pointer_to(ContextMetadata{})).arr();
}

const Interceptors* interceptors_of(const ::grpc::ServerContextBase& context) {
  const auto* info = context.*pointer_to(ContextRpcInfo{});
  return info == nullptr ? nullptr : &(info->*pointer_to(RpcInfoInterceptors{}));
}

::grpc::StatusCode status_of(const ::grpc::internal::CallOpServerSendStatus& operation) {
  return static_cast<::grpc::StatusCode>(operation.*pointer_to(SentStatus{}));
}

const Trailers& trailers_of(const ::grpc::internal::CallOpServerSendStatus& operation) {
  return *(operation.*pointer_to(SentTrailers{}));
}

}  // namespace weir::inline v0::grpc
