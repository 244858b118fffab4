#include "weir/experimental/grpc/server_builder.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/config_check.h"

#include "admission_core.h"
#include "admission_interceptor.h"
#include "guarded_method.h"
#include "private_members.h"

namespace weir::inline v0::grpc {
namespace {

/// The full names of a server's methods, by how they are admitted.
struct MethodNames {
  std::set<std::string> guarded{};
  std::set<std::string> async{};
  bool callback = false;

  void add(::grpc::Service& service) {
    for (const auto& method : methods_of(service)) {
      if (method == nullptr) continue;  // marked generic: the generic service has it
      (method->handler() == nullptr ? async : guarded).insert(method->name());
    }
    callback = callback || service.has_callback_methods();
  }
};

}  // namespace

ServerBuilder::ServerBuilder(AdmissionController& controller, ServerOptions options)
    : errors_(options.validate()) {
  if (errors_.empty()) core_ = std::make_shared<AdmissionCore>(controller, std::move(options));
}

ServerBuilder::~ServerBuilder() = default;

Admission ServerBuilder::admission() const {
  WEIR_ASSERT(core_ != nullptr);
  return Admission(core_);
}

std::unique_ptr<::grpc::Server> ServerBuilder::BuildAndStart() {
  if (core_ == nullptr) return nullptr;
  MethodNames names;
  for (const NamedService* one : services()) names.add(*one->service);
  const bool generic = has_generic_service(*this);
  for (const MethodTable::Entry& entry : core_->options().methods.entries()) {
    const bool known = names.guarded.contains(entry.method) || names.async.contains(entry.method);
    if (known || generic) continue;
    add_error(errors_, "methods", entry.method, "a method of a service that is registered");
  }
  if (!errors_.empty()) return nullptr;

  InterceptorFactories& factories = interceptor_factories_of(*this);
  core_->set_has_interceptors(!factories.empty());
  for (const NamedService* one : services()) guard_methods(*one->service, core_);
  if (generic || !names.async.empty()) {
    factories.insert(factories.begin(),
                     std::make_unique<AdmissionInterceptors>(core_, std::move(names.async)));
  }
  if (names.callback || generic) core_->start_heartbeat();
  return ::grpc::ServerBuilder::BuildAndStart();
}

}  // namespace weir::inline v0::grpc
