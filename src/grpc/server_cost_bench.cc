// A gRPC server with one small unary method, with and without Weir, and a client that loads it:
// what bench/grpc_server.py measures.
//
//   weir_grpc_server_cost serve bare|weir|defaults   prints its port, ends when its input ends
//   weir_grpc_server_cost load PORT CALLS            makes that many calls, 16 at a time
//
// `weir` has neither heartbeat nor actor, `defaults` both. Every call has a deadline.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include "weir/base/rng.h"
#include "weir/control/admission_controller.h"
#include "weir/experimental/grpc/server_builder.h"

#include "src/grpc/testing/store.grpc.pb.h"

namespace {

using weir::testing::Store;
using weir::testing::Value;

class Echo final : public Store::CallbackService {
 public:
  ::grpc::ServerUnaryReactor* GetValue(::grpc::CallbackServerContext* context, const Value* request,
                                       Value* response) override {
    response->set_data(request->data());
    ::grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(::grpc::Status::OK);
    return reactor;
  }
};

int serve(std::string_view kind) {
  const bool with_weir = kind != "bare";
  weir::AdmissionConfig config;
  config.limit.policy = weir::LimitKind::kFixed;
  config.limit.initial_limit = 1024;
  config.inflight_max = 64;  // an actor's place is free just after its answer
  weir::AdmissionController controller(config, weir::Rng(7));
  std::unique_ptr<::grpc::ServerBuilder> builder;
  if (with_weir) {
    weir::grpc::ServerOptions options;
    if (kind == "weir") options.heartbeat = weir::Duration::zero();
    if (kind == "defaults") {
      options.actor = [](const ::grpc::ServerContextBase& context) {
        const auto tenant = context.client_metadata().find("x-tenant");
        if (tenant == context.client_metadata().end()) return std::string();
        return std::string(tenant->second.data(), tenant->second.size());
      };
    }
    options.methods = {{"/weir.testing.Store/GetValue", {.priority = weir::Priority::kHigh}}};
    builder = std::make_unique<weir::grpc::ServerBuilder>(controller, options);
  } else {
    builder = std::make_unique<::grpc::ServerBuilder>();
  }
  Echo echo;
  int port = 0;
  builder->AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials(), &port);
  builder->RegisterService(&echo);
  const auto server = builder->BuildAndStart();
  if (server == nullptr) return 1;
  std::printf("%d\n", port);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  server->Shutdown();
  return controller.stats().admitted == 0 && with_weir ? 1 : 0;
}

/// 16 calls at a time; each that ends begins the next one.
class Load {
 public:
  Load(std::string_view port, int calls)
      : stub_(Store::NewStub(::grpc::CreateChannel("127.0.0.1:" + std::string(port),
                                                   ::grpc::InsecureChannelCredentials()))),
        left_(calls),
        open_(calls) {}

  int run() {
    for (int i = 0; i < 16; ++i) begin();
    for (int open = open_; open > 0; open = open_) open_.wait(open);
    return failed_;
  }

 private:
  struct Call {
    ::grpc::ClientContext context{};
    Value request{};
    Value response{};
  };

  void begin() {
    if (left_.fetch_sub(1) <= 0) return;
    auto* const call = new Call;
    call->request.set_data("a small value");
    call->context.AddMetadata("x-tenant", "alice");
    call->context.set_deadline(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(10, GPR_TIMESPAN)));
    stub_->async()->GetValue(&call->context, &call->request, &call->response,
                             [this, call](const ::grpc::Status& status) {
                               if (!status.ok()) failed_.fetch_add(1);
                               delete call;
                               begin();
                               open_.fetch_sub(1);
                               open_.notify_one();
                             });
  }

  std::unique_ptr<Store::Stub> stub_;
  std::atomic<int> left_;
  std::atomic<int> open_;
  std::atomic<int> failed_{0};
};

}  // namespace

int main(int count, char** words) {
  const std::string_view what = count > 1 ? words[1] : "";
  if (what == "serve" && count == 3) return serve(words[2]);
  if (what == "load" && count == 4) {
    // Not destroyed: the last call's thread is still in it when run() returns.
    auto* const load = new Load(words[2], static_cast<int>(std::strtol(words[3], nullptr, 10)));
    return load->run() == 0 ? 0 : 1;
  }
  std::fputs("weir_grpc_server_cost serve bare|weir|defaults | load PORT CALLS\n", stderr);
  return 2;
}
