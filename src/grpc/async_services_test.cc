// Services with completion queues: streams, waiting, trust, and the end of the server.
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/alarm.h>
#include <gtest/gtest.h>

#include "weir/base/ip_range.h"
#include "weir/embed/clock.h"
#include "weir/experimental/grpc/refused.h"

#include "testing/store_testing.h"

namespace weir::grpc {
namespace {

using namespace testing;
using ::grpc::StatusCode;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// An async service whose completion queue the test drives, tag by tag.
class QueueServer {
 public:
  QueueServer(const AdmissionConfig& config, ServerOptions options)
      : server_(config, std::move(options), [this](::grpc::ServerBuilder& builder) {
          builder.RegisterService(&service);
          queue_ = builder.AddCompletionQueue();
        }) {}
  ~QueueServer() {
    server_.admission().close();
    shut_down();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
    }
  }
  void shut_down() {
    server_.server().Shutdown();
    queue_->Shutdown();
  }
  TestServer* operator->() { return &server_; }
  ::grpc::ServerCompletionQueue* queue() { return queue_.get(); }
  /// The next tag that is delivered.
  void* next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_->Next(&tag, &ok) ? tag : nullptr;
  }

  /// Whether no tag is delivered now.
  bool next_is_nothing() {
    void* tag = nullptr;
    bool ok = false;
    const auto soon =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(1, GPR_TIMESPAN));
    return queue_->AsyncNext(&tag, &ok, soon) == ::grpc::CompletionQueue::TIMEOUT;
  }

  Store::AsyncService service;

 private:
  std::unique_ptr<::grpc::ServerCompletionQueue> queue_;
  TestServer server_;
};

/// One call of GetValue, from its request on. Its address is its tag.
struct QueueCall {
  explicit QueueCall(QueueServer& server) {
    server.service.RequestGetValue(&context, &request, &responder, server.queue(), server.queue(),
                                   this);
  }
  /// Ends it as its handler would; true: it was admitted.
  bool end() {
    if (const auto status = refused(context)) {
      responder.FinishWithError(*status, this);
      return false;
    }
    responder.Finish(request, ::grpc::Status::OK, this);
    return true;
  }

  ::grpc::ServerContext context{};
  Value request{};
  ::grpc::ServerAsyncResponseWriter<Value> responder{&context};
};

AdmissionConfig one_place_for(Duration wait) {
  AdmissionConfig config = limit_of(1);
  config.high_wait_max = wait;
  return config;
}

ServerOptions high_reads() {
  return {.methods = {{kGetValue, {.priority = Priority::kHigh}}}};
}

/// Interceptors run when the queue is asked. Fails if a tag is delivered.
bool wait_until_waiting(QueueServer& server, std::uint32_t calls) {
  const TimePoint give_up = embed::now() + seconds(20);
  while (server->stats().waiting != calls && embed::now() < give_up) {
    if (!server.next_is_nothing()) return false;
  }
  return server->stats().waiting == calls;
}

TEST(AsyncServices, WhileACallWaitsItsQueueDeliversOtherTags) {
  QueueServer server(one_place_for(seconds(20)), high_reads());
  const auto stub = server->stub();
  auto first_answer = get_value(*stub);
  std::optional<QueueCall> first(server);
  ASSERT_EQ(server.next(), &*first);
  auto second_answer = get_value(*stub);
  QueueCall second(server);
  ASSERT_TRUE(wait_until_waiting(server, 1));

  ::grpc::Alarm other;
  other.Set(server.queue(), gpr_now(GPR_CLOCK_MONOTONIC), &other);
  EXPECT_EQ(server.next(), &other);
  EXPECT_EQ(server->stats().waiting, 1U);

  EXPECT_TRUE(first->end());
  ASSERT_EQ(server.next(), &*first);
  first.reset();  // with its context its permit
  ASSERT_EQ(server.next(), &second);
  EXPECT_TRUE(second.end());
  EXPECT_EQ(server.next(), &second);
  EXPECT_TRUE(first_answer.get().status.ok());
  EXPECT_TRUE(second_answer.get().status.ok());
}

TEST(AsyncServices, AClientStreamMovesToStreamingAndIsRefusedWithOneLine) {
  AdmissionConfig config = limit_of(4);
  config.inflight_max = 1;
  ServerOptions options;
  options.actor = [](const ::grpc::ServerContextBase&) { return std::string("alice"); };
  QueueServer server(config, options);
  const auto stub = server->stub();
  int tags[2];
  const auto serve = [&](int& tag, const std::function<void(bool)>& stay) {
    ::grpc::ServerContext context;
    ::grpc::ServerAsyncReader<Value, Value> reader(&context);
    server.service.RequestMigrateTransfer(&context, &reader, server.queue(), server.queue(), &tag);
    ASSERT_EQ(server.next(), &tag);
    const auto status = refused(context);
    stay(!status);
    if (status) {
      reader.FinishWithError(*status, &tag);
    } else {
      reader.Finish(Value(), ::grpc::Status::OK, &tag);
    }
    EXPECT_EQ(server.next(), &tag);
  };
  ::grpc::ClientContext first;
  ::grpc::ClientContext second;
  Value response;
  const auto transfer = stub->MigrateTransfer(&first, &response);
  serve(tags[0], [&](bool admitted) {
    EXPECT_TRUE(admitted);
    EXPECT_EQ(server->controller().stats().streaming, 1U);
    EXPECT_EQ(server->stats().in_flight, 0U);
    const auto another = stub->MigrateTransfer(&second, &response);
    serve(tags[1], [](bool again) { EXPECT_FALSE(again); });
    EXPECT_EQ(another->Finish().error_code(), StatusCode::RESOURCE_EXHAUSTED);
  });
  EXPECT_TRUE(transfer->Finish().ok());
  EXPECT_TRUE(server->wait_until_idle());
}

TEST(AsyncServices, AServerStreamMovesToStreamingUntilItsContextEnds) {
  QueueServer server(limit_of(1), {});
  const auto stub = server->stub();
  ::grpc::ClientContext client;
  auto scan = std::async(std::launch::async, [&] {
    const auto reader = stub->Scan(&client, Value());
    Value value;
    while (reader->Read(&value)) {
    }
    return reader->Finish();
  });
  {
    ::grpc::ServerContext context;
    Value request;
    ::grpc::ServerAsyncWriter<Value> writer(&context);
    server.service.RequestScan(&context, &request, &writer, server.queue(), server.queue(),
                               &writer);
    ASSERT_EQ(server.next(), &writer);
    EXPECT_FALSE(refused(context));
    writer.Write(Value(), &request);
    EXPECT_EQ(server.next(), &request);
    writer.Finish(::grpc::Status::OK, &writer);
    EXPECT_EQ(server.next(), &writer);
    EXPECT_EQ(server->controller().stats().streaming, 1U);
    EXPECT_EQ(server->stats().in_flight, 0U);
  }
  EXPECT_TRUE(scan.get().ok());
  EXPECT_TRUE(server->wait_until_idle());
}

TEST(AsyncServices, MetadataCountsOnlyFromTrustedCallers) {
  for (const bool trusted : {true, false}) {
    AdmissionConfig config = limit_of(8);
    config.per_peer_limit = 1;
    ServerOptions options;
    if (trusted) options.trust.addresses = {*parse_ip_range("127.0.0.0/8")};
    QueueServer server(config, options);
    const auto stub = server->stub();
    const CallWish wish{.metadata = {{"x-weir-peer", "node-1"}, {"x-weir-priority", "low"}}};
    auto first_answer = get_value(*stub, wish);
    QueueCall first(server);
    ASSERT_EQ(server.next(), &first);
    auto second_answer = get_value(*stub, wish);
    QueueCall second(server);
    ASSERT_EQ(server.next(), &second);
    EXPECT_EQ(second.end(), !trusted);
    EXPECT_EQ(server.next(), &second);
    EXPECT_EQ(second_answer.get().trailer("x-weir-reason"), trusted ? "peer_limit" : "");
    EXPECT_TRUE(first.end());
    EXPECT_EQ(server.next(), &first);
    EXPECT_TRUE(first_answer.get().status.ok());
    const ScopeStats stats = server->stats();
    EXPECT_EQ(stats.classes[index_of(Priority::kLow)].acquired, trusted ? 1U : 0U);
  }
}

TEST(AsyncServices, ACallThatWaitsIsGivenUpAtItsDeadline) {
  QueueServer server(one_place_for(seconds(20)), high_reads());
  const auto stub = server->stub();
  auto first_answer = get_value(*stub);
  QueueCall first(server);
  ASSERT_EQ(server.next(), &first);
  auto late = get_value(*stub, {.timeout = milliseconds(50)});
  QueueCall second(server);
  ASSERT_EQ(server.next(), &second) << "although no place became free";
  EXPECT_FALSE(second.end());
  EXPECT_EQ(server.next(), &second);
  EXPECT_EQ(late.get().status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(server->stats().refused[static_cast<std::size_t>(Reason::kDeadline)], 1U);
  EXPECT_TRUE(first.end());
  EXPECT_EQ(server.next(), &first);
  EXPECT_TRUE(first_answer.get().status.ok());
}

TEST(AsyncServices, AServerThatIsClosedAnswersAllThatWait) {
  constexpr int kWaiting = 5;
  ServerOptions options = high_reads();
  options.methods.set("/weir.testing.Store/Scan", {.priority = Priority::kLow});
  QueueServer server(one_place_for(seconds(20)), options);
  const auto stub = server->stub();
  auto first_answer = get_value(*stub);
  std::optional<QueueCall> first(server);
  ASSERT_EQ(server.next(), &*first);
  std::vector<std::future<Answer>> answers;
  std::vector<std::unique_ptr<QueueCall>> calls;
  for (int i = 0; i < kWaiting; ++i) {
    answers.push_back(get_value(*stub));
    calls.push_back(std::make_unique<QueueCall>(server));
  }
  ASSERT_TRUE(wait_until_waiting(server, kWaiting));
  std::jthread closer([&] { server->admission().close(); });
  // Calls of a method that never waits show when it is closed.
  for (bool closed = false; !closed;) {
    ::grpc::ClientContext client;
    const auto reader = stub->Scan(&client, Value());
    ::grpc::ServerContext context;
    Value request;
    ::grpc::ServerAsyncWriter<Value> writer(&context);
    server.service.RequestScan(&context, &request, &writer, server.queue(), server.queue(),
                               &writer);
    ASSERT_EQ(server.next(), &writer);
    const auto status = refused(context);
    ASSERT_TRUE(status.has_value());
    closed = status->error_code() == StatusCode::UNAVAILABLE;
    writer.Finish(*status, &writer);
    EXPECT_EQ(server.next(), &writer);
    EXPECT_FALSE(reader->Finish().ok());
  }
  EXPECT_TRUE(first->end());
  ASSERT_EQ(server.next(), &*first);
  first.reset();
  std::set<void*> ending;  // each tag comes with its request and with its end, in any order
  for (int i = 0; i < 2 * kWaiting; ++i) {
    auto* const call = static_cast<QueueCall*>(server.next());
    if (ending.insert(call).second) {
      EXPECT_FALSE(call->end());
    }
  }
  EXPECT_EQ(ending.size(), std::size_t{kWaiting});
  for (auto& answer : answers) {
    EXPECT_EQ(answer.get().status.error_code(), StatusCode::UNAVAILABLE);
  }
  closer.join();
  EXPECT_EQ(server->admission().waiting(), 0);
  EXPECT_TRUE(first_answer.get().status.ok());
  server.shut_down();
  EXPECT_EQ(server->controller().stats().in_flight, 0U);
}

}  // namespace
}  // namespace weir::grpc
