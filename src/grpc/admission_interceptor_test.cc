#include "admission_interceptor.h"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/health_check_service_interface.h>
#include <gtest/gtest.h>

#include "weir/experimental/grpc/refused.h"

#include "testing/store_testing.h"

namespace weir::grpc {
namespace {

using namespace testing;
using ::grpc::StatusCode;

/// A completion queue that one thread of the test drives, step by step.
class Steps {
 public:
  void use(::grpc::ServerBuilder& builder) { queue_ = builder.AddCompletionQueue(); }
  ::grpc::ServerCompletionQueue* queue() { return queue_.get(); }
  void* tag() { return this; }
  /// Waits for the operation that was started with tag().
  bool done() {
    void* tag = nullptr;
    bool ok = false;
    return queue_->Next(&tag, &ok) && ok;
  }
  /// After the server was shut down, and before it is destroyed.
  void finish() {
    queue_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
    }
  }

 private:
  std::unique_ptr<::grpc::ServerCompletionQueue> queue_;
};

/// An async service; `serve` runs on a thread of its own, as a program with completion queues does.
class AsyncServer {
 public:
  AsyncServer(std::uint32_t limit, Priority priority)
      : server_(limit_of(limit), {.methods = {{kGetValue, {.priority = priority}}}},
                [this](::grpc::ServerBuilder& builder) {
                  builder.RegisterService(&service);
                  steps.use(builder);
                }) {}
  ~AsyncServer() {
    server_.admission().close();
    server_.server().Shutdown();
    steps.finish();
  }
  TestServer* operator->() { return &server_; }

  Store::AsyncService service;
  Steps steps;

 private:
  TestServer server_;
};

/// One call of GetValue: returns true if it was served. It ends when `stay` has returned.
bool serve_unary(AsyncServer& server, const std::function<void()>& stay = {}) {
  ::grpc::ServerContext context;
  Value request;
  ::grpc::ServerAsyncResponseWriter<Value> responder(&context);
  Steps& steps = server.steps;
  server.service.RequestGetValue(&context, &request, &responder, steps.queue(), steps.queue(),
                                 steps.tag());
  if (!steps.done()) return false;
  const auto status = refused(context);
  if (status) {
    responder.FinishWithError(*status, steps.tag());
  } else {
    if (stay) stay();
    responder.Finish(request, ::grpc::Status::OK, steps.tag());
  }
  steps.done();
  return !status;
}

TEST(AdmissionInterceptor, AnAsyncCallIsServedAndItsPermitGivenBack) {
  AsyncServer server(1, Priority::kLow);
  const auto stub = server->stub();
  for (int i = 0; i < 3; ++i) {
    auto answer = get_value(*stub);
    EXPECT_TRUE(serve_unary(server));
    EXPECT_EQ(answer.get().data, "value");
  }
  EXPECT_TRUE(server->wait_until_idle());
  EXPECT_EQ(server->controller().stats().admitted, 3U);
}

TEST(AdmissionInterceptor, AnAsyncHandlerRefusesWithOneLine) {
  AsyncServer server(1, Priority::kLow);
  const auto stub = server->stub();
  auto served = get_value(*stub);
  EXPECT_TRUE(serve_unary(server, [&] {
    auto refused_answer = get_value(*stub);
    EXPECT_FALSE(serve_unary(server));
    const Answer answer = refused_answer.get();
    EXPECT_EQ(answer.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(answer.trailer("x-weir-reason"), "overload");
    EXPECT_NE(answer.trailer("grpc-retry-pushback-ms"), "");
  }));
  EXPECT_TRUE(served.get().status.ok());
  EXPECT_TRUE(server->wait_until_idle());
}

TEST(AdmissionInterceptor, AnAsyncCallWaitsBeforeItsTagIsDelivered) {
  AsyncServer server(1, Priority::kHigh);
  const auto stub = server->stub();
  auto first = get_value(*stub);
  std::future<Answer> second;
  EXPECT_TRUE(serve_unary(server, [&] {
    second = get_value(*stub);
    Steps& steps = server.steps;
    ::grpc::ServerContext context;
    Value request;
    ::grpc::ServerAsyncResponseWriter<Value> responder(&context);
    server.service.RequestGetValue(&context, &request, &responder, steps.queue(), steps.queue(),
                                   steps.tag());
    // It waits for 100 ms and is refused: its tag comes then.
    EXPECT_TRUE(steps.done());
    const auto status = refused(context);
    ASSERT_TRUE(status.has_value());
    responder.FinishWithError(*status, steps.tag());
    EXPECT_TRUE(steps.done());
  }));
  EXPECT_TRUE(first.get().status.ok());
  const Answer answer = second.get();
  EXPECT_EQ(answer.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_GE(answer.took, std::chrono::milliseconds(90));
  EXPECT_TRUE(server->wait_until_idle());
}

TEST(AdmissionInterceptor, AnAsyncStreamMovesToStreamingUntilItEnds) {
  AsyncServer server(2, Priority::kLow);
  const auto stub = server->stub();
  ::grpc::ClientContext client;
  const auto talk = stub->Sync(&client);
  {
    ::grpc::ServerContext context;
    ::grpc::ServerAsyncReaderWriter<Value, Value> stream(&context);
    Steps& steps = server.steps;
    server.service.RequestSync(&context, &stream, steps.queue(), steps.queue(), steps.tag());
    ASSERT_TRUE(steps.done());
    EXPECT_FALSE(refused(context));
    EXPECT_EQ(server->controller().stats().streaming, 1U);
    EXPECT_EQ(server->stats().in_flight, 0U);
    stream.Finish(::grpc::Status::OK, steps.tag());
    EXPECT_TRUE(steps.done());
  }
  EXPECT_TRUE(talk->Finish().ok());
  EXPECT_TRUE(server->wait_until_idle());
}

/// Echoes one message of any method by the generic callback API, when the desk lets it.
class GenericEcho : public ::grpc::CallbackGenericService {
 public:
  explicit GenericEcho(Behaviour& behaviour) : behaviour_(behaviour) {}

  ::grpc::ServerGenericBidiReactor* CreateReactor(::grpc::GenericCallbackServerContext*) override {
    class Reactor final : public ::grpc::ServerGenericBidiReactor {
     public:
      explicit Reactor(Desk& desk) : desk_(desk) { StartRead(&message_); }
      void OnReadDone(bool ok) override {
        if (!ok) return Finish({StatusCode::INTERNAL, "no message"});
        desk_.stay([this] { StartWriteAndFinish(&message_, {}, ::grpc::Status::OK); });
      }
      void OnDone() override { delete this; }

     private:
      Desk& desk_;
      ::grpc::ByteBuffer message_;
    };
    return new Reactor(behaviour_.desk);
  }

 private:
  Behaviour& behaviour_;
};

TEST(AdmissionInterceptor, AGenericCallbackServiceIsAdmittedRefusedAndWaits) {
  Behaviour behaviour;
  Admitted<GenericEcho> service(behaviour);
  AdmissionConfig config = limit_of(1);
  config.high_wait_max = std::chrono::seconds(2);
  TestServer server(
      config, {.methods = {{kGetValue, {.priority = Priority::kHigh}}}},
      [&](::grpc::ServerBuilder& builder) { builder.RegisterCallbackGenericService(&service); });
  const auto stub = server.stub();
  EXPECT_EQ(ask_value(*stub).data, "value");
  ASSERT_TRUE(server.wait_until_idle());  // its place is free just after its answer
  behaviour.desk.hold();
  auto first = get_value(*stub);
  ASSERT_TRUE(behaviour.desk.wait_until_inside(1));
  const Answer second = ask_value(*stub);  // waits, in vain
  EXPECT_EQ(second.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(second.trailer("x-weir-reason"), "overload");
  auto third = get_value(*stub);
  while (server.stats().waiting == 0) std::this_thread::yield();
  behaviour.desk.release();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_TRUE(third.get().status.ok());
  EXPECT_EQ(behaviour.desk.most_inside(), 1);
  EXPECT_TRUE(server.wait_until_idle());
}

TEST(AdmissionInterceptor, AGenericServerThatIsClosedAnswersAllThatWait) {
  Behaviour behaviour;
  Admitted<GenericEcho> service(behaviour);
  AdmissionConfig config = limit_of(1);
  config.high_wait_max = std::chrono::seconds(20);
  TestServer server(
      config, {.methods = {{kGetValue, {.priority = Priority::kHigh}}}},
      [&](::grpc::ServerBuilder& builder) { builder.RegisterCallbackGenericService(&service); });
  const auto stub = server.stub();
  behaviour.desk.hold();
  auto first = get_value(*stub);
  ASSERT_TRUE(behaviour.desk.wait_until_inside(1));
  std::vector<std::future<Answer>> waiting;
  for (int i = 0; i < 10; ++i) waiting.push_back(get_value(*stub));
  while (server.stats().waiting < 10) std::this_thread::yield();
  std::jthread closer([&] { server.admission().close(); });
  while (ask_value(*stub, {.timeout = std::chrono::milliseconds(50)}).status.error_code() !=
         StatusCode::UNAVAILABLE) {
  }
  behaviour.desk.release();
  EXPECT_TRUE(first.get().status.ok());
  for (auto& one : waiting) {
    EXPECT_EQ(one.get().status.error_code(), StatusCode::UNAVAILABLE);
  }
  closer.join();
  EXPECT_EQ(server.admission().waiting(), 0);
  EXPECT_EQ(behaviour.desk.entered(), 1);
  server.server().Shutdown();
  EXPECT_EQ(server.controller().stats().in_flight, 0U);
}

TEST(AdmissionInterceptor, AGenericAsyncServiceIsAdmittedAndRefused) {
  ::grpc::AsyncGenericService service;
  Steps steps;
  AdmissionConfig config = limit_of(1);
  config.high_wait_max = std::chrono::milliseconds(500);
  TestServer server(config, {.methods = {{kGetValue, {.priority = Priority::kLow}}}},
                    [&](::grpc::ServerBuilder& builder) {
                      builder.RegisterAsyncGenericService(&service);
                      steps.use(builder);
                    });
  const auto stub = server.stub();
  const auto serve = [&](const std::function<void()>& stay) {
    ::grpc::GenericServerContext context;
    ::grpc::GenericServerAsyncReaderWriter stream(&context);
    service.RequestCall(&context, &stream, steps.queue(), steps.queue(), steps.tag());
    EXPECT_TRUE(steps.done());
    auto status = refused(context);
    const bool admitted = !status;
    if (admitted) stay();
    stream.Finish(admitted ? ::grpc::Status(StatusCode::NOT_FOUND, "") : *status, steps.tag());
    EXPECT_TRUE(steps.done());
    return admitted;
  };
  auto first = get_value(*stub);
  EXPECT_TRUE(serve([&] {
    auto second = get_value(*stub);
    EXPECT_FALSE(serve({}));
    EXPECT_EQ(second.get().trailer("x-weir-reason"), "overload");
  }));
  EXPECT_EQ(first.get().status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_TRUE(server.wait_until_idle());
  server.server().Shutdown();
  steps.finish();
}

/// A generic server whose only place is taken.
class FullGenericServer {
 public:
  explicit FullGenericServer(bool health) {
    ::grpc::EnableDefaultHealthCheckService(health);
    server_.emplace(limit_of(1), ServerOptions{}, [this](::grpc::ServerBuilder& builder) {
      builder.RegisterCallbackGenericService(&service_);
    });
    ::grpc::EnableDefaultHealthCheckService(false);
    stub_ = server_->stub();
    behaviour_.desk.hold();
    first_ = get_value(*stub_);
    EXPECT_TRUE(behaviour_.desk.wait_until_inside(1));
  }
  ~FullGenericServer() {
    behaviour_.desk.release();
    EXPECT_TRUE(first_.get().status.ok());
  }
  [[nodiscard]] ::grpc::Status call(const std::string& method) {
    ::grpc::GenericStub stub(server_->channel());
    ::grpc::ClientContext context;
    prepare(context, {});
    ::grpc::Slice nothing;
    const ::grpc::ByteBuffer request(&nothing, 1);
    ::grpc::ByteBuffer response;
    std::promise<::grpc::Status> ended;
    stub.UnaryCall(&context, method, {}, &request, &response,
                   [&](::grpc::Status status) { ended.set_value(std::move(status)); });
    return ended.get_future().get();
  }

 private:
  Behaviour behaviour_;
  Admitted<GenericEcho> service_{behaviour_};
  std::optional<TestServer> server_;
  std::unique_ptr<Store::Stub> stub_;
  std::future<Answer> first_;
};

TEST(AdmissionInterceptor, AGenericCallIsGuardedWhateverItsNameIs) {
  FullGenericServer server(false);
  for (const char* name : {"/grpc.x/y", "/grpc.health.v1.Health/Check", "/grpc./", "/x.Y/Z"}) {
    EXPECT_EQ(server.call(name).error_code(), StatusCode::RESOURCE_EXHAUSTED) << name;
  }
}

TEST(AdmissionInterceptor, OnlyWhatAPluginServesIsNotGuarded) {
  FullGenericServer server(true);
  EXPECT_TRUE(server.call("/grpc.health.v1.Health/Check").ok());
  EXPECT_EQ(server.call("/grpc.health.v1.Health/Other").error_code(),
            StatusCode::RESOURCE_EXHAUSTED);
}

TEST(AdmissionInterceptor, WithoutOurBuilderNoCallIsRefused) {
  const ::grpc::CallbackServerContext context;
  EXPECT_FALSE(refused(context));
}

}  // namespace
}  // namespace weir::grpc
