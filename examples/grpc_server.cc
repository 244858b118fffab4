// A gRPC server that asks Weir before each call, as docs/guide/grpc.md shows it. It starts, asks
// itself for one value, and ends.
//
//   grpc_server
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_context.h>

#include "weir/base/ip_range.h"
#include "weir/control/admission_controller.h"
#include "weir/embed/clock.h"
#include "weir/experimental/grpc/refused.h"
#include "weir/experimental/grpc/server_builder.h"

#include "examples/grpc_server.grpc.pb.h"

namespace {

/// What you have already: nothing in it knows of Weir.
class StoreService final : public store::Store::Service {
 public:
  grpc::Status GetValue(grpc::ServerContext*, const store::Message* request,
                        store::Message* response) override {
    const std::scoped_lock lock(mutex_);
    const auto found = values_.find(request->key());
    if (found == values_.end()) return {grpc::StatusCode::NOT_FOUND, "no such key"};
    response->set_value(found->second);
    return grpc::Status::OK;
  }
  grpc::Status PutLeaf(grpc::ServerContext*, const store::Message* request,
                       store::Message*) override {
    const std::scoped_lock lock(mutex_);
    values_[request->key()] = request->value();
    return grpc::Status::OK;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

// [table]
weir::grpc::MethodTable store_methods() {
  using enum weir::Priority;
  return {
      {"/store.Store/GetValue", {.priority = kHigh, .idempotent = true}},
      {"/store.Store/FetchValue", {.priority = kHigh, .idempotent = true}},
      {"/store.Store/HealthCheck", {.priority = kHigh, .idempotent = true}},
      {"/store.Store/PutLeaf", {.priority = kNormal}},
      {"/store.Store/PutRecipe", {.priority = kNormal}},
      {"/store.Store/BatchGet", {.priority = kNormal, .cost = 4, .idempotent = true}},
      {"/store.Store/BatchPutLeaf", {.priority = kNormal, .cost = 4, .holds_limit = true}},
      {"/store.Store/GcCollectRoots", {.priority = kLow}},
      {"/store.Store/GcSweep", {.priority = kLow}},
      {"/store.Store/MigrateTransfer", {.priority = kLow, .holds_limit = true}},
      {"/store.Store/SyncRecipes", {.priority = kLow}},
      {"/store.Store/ReplicateLeaf", {.priority = kLow}},
  };
}
// [end]

// [trust]
void trust_our_nodes(weir::grpc::ServerOptions& options) {
  // Nodes with these names in their certificates, and everybody in this network.
  options.trust.identities = {"node-1.store.example", "node-2.store.example"};
  options.trust.addresses = {*weir::parse_ip_range("10.1.0.0/16")};
  // Others are billed by the name in their certificate; here by their tenant instead.
  options.actor = [](const grpc::ServerContextBase& context) {
    const auto tenant = context.client_metadata().find("x-tenant");
    if (tenant == context.client_metadata().end()) return std::string();
    return std::string(tenant->second.data(), tenant->second.size());
  };
}
// [end]

// [async]
/// One call of a completion-queue service; yours has its own states.
struct AsyncGetValue {
  grpc::ServerContext context;
  store::Message request;
  grpc::ServerAsyncResponseWriter<store::Message> responder{&context};

  /// When the tag of the request was delivered.
  void serve(void* tag) {
    if (auto status = weir::grpc::refused(context)) {
      return responder.FinishWithError(*status, tag);
    }
    responder.Finish(request, grpc::Status::OK, tag);
  }
};
// [end]

// [generic]
class Proxy : public grpc::CallbackGenericService {};  // yours

struct ProxyServer {
  weir::grpc::Admitted<Proxy> proxy;  // was: Proxy proxy;

  void add_to(grpc::ServerBuilder& builder) { builder.RegisterCallbackGenericService(&proxy); }
};
// [end]

bool ask_for_a_value(grpc::Server& server) {
  const auto stub = store::Store::NewStub(server.InProcessChannel({}));
  store::Message message;
  message.set_key("greeting");
  message.set_value("hello");
  grpc::ClientContext put;
  if (!stub->PutLeaf(&put, message, &message).ok()) return false;
  grpc::ClientContext get;
  message.set_key("greeting");
  if (!stub->GetValue(&get, message, &message).ok()) return false;
  std::printf("served: %s\n", message.value().c_str());
  return true;
}

void print(const weir::ConfigErrors& errors) {
  for (const weir::ConfigError& error : errors) {
    std::fprintf(stderr, "%s = %s: must be %s\n", error.key.c_str(), error.value.c_str(),
                 error.allowed.c_str());
  }
}

// [server]
bool serve(weir::AdmissionController& controller, const weir::grpc::ServerOptions& options,
           grpc::Service& service) {
  weir::grpc::ServerBuilder builder(controller, options);  // was: grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    print(builder.errors());
    return false;
  }
  const bool served = ask_for_a_value(*server);
  builder.admission().close();  // answers the calls that wait, then:
  server->Shutdown();
  return served;
}
// [end]

}  // namespace

int main() {
  auto created = weir::AdmissionController::create(weir::AdmissionConfig{},
                                                   weir::Rng(weir::embed::random_seed()));
  if (!created) return 2;
  weir::grpc::ServerOptions options{.methods = store_methods()};
  trust_our_nodes(options);
  StoreService service;
  return serve(**created, options, service) ? 0 : 1;
}
