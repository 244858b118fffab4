#include "guarded_call.h"

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/support/message_allocator.h>
#include <gtest/gtest.h>

#include "testing/store_testing.h"

namespace weir::grpc {
namespace {

using namespace testing;
using ::grpc::StatusCode;
using std::chrono::milliseconds;

constexpr char kMigrate[] = "/weir.testing.Store/MigrateTransfer";

ServerOptions with_class(Priority priority) {
  return {.methods = {{kGetValue, {.priority = priority}}}};
}

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(GuardedCall, AtALimitOfFourTheFifthCallIsRefusedAndSaysSo) {
  Behaviour behaviour;
  const auto store = make_callback_store(behaviour);
  AdmissionConfig config = limit_of(4);
  config.max_concurrent = 4;
  TestServer server(config, with_class(Priority::kHigh), *store);
  const auto stub = server.stub();
  behaviour.desk.hold();
  std::vector<std::future<Answer>> slow;
  for (int i = 0; i < 4; ++i) slow.push_back(get_value(*stub));
  ASSERT_TRUE(behaviour.desk.wait_until_inside(4));

  const Answer fifth = ask_value(*stub);
  EXPECT_EQ(fifth.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(fifth.trailer("x-weir-reason"), "overload");
  EXPECT_EQ(behaviour.desk.entered(), 4);

  behaviour.desk.release();
  for (auto& one : slow) EXPECT_TRUE(one.get().status.ok());
  EXPECT_TRUE(ask_value(*stub).status.ok());
  EXPECT_TRUE(server.wait_until_idle());
}

TEST(GuardedCall, AtALimitOfFourThreeLowAreAdmittedAndHighStillFindsItsPlaceAtOnce) {
  Behaviour behaviour;
  const auto store = make_callback_store(behaviour);
  TestServer server(limit_of(4),
                    {.methods = {{kGetValue, {.priority = Priority::kHigh}},
                                 {kMigrate, {.priority = Priority::kLow, .holds_limit = true}}}},
                    *store);
  const auto stub = server.stub();
  behaviour.desk.hold();
  constexpr int kLow = 3;
  std::array<::grpc::ClientContext, kLow + 1> contexts;
  std::array<Value, kLow + 1> responses;
  for (::grpc::ClientContext& context : contexts) prepare(context, {});
  std::vector<std::unique_ptr<::grpc::ClientWriter<Value>>> transfers;
  for (int i = 0; i < kLow; ++i) {
    const auto at = static_cast<std::size_t>(i);
    transfers.push_back(stub->MigrateTransfer(&contexts[at], &responses[at]));
    ASSERT_TRUE(transfers.back()->WritesDone());
    ASSERT_TRUE(behaviour.desk.wait_until_inside(i + 1));
  }
  const auto fourth = stub->MigrateTransfer(&contexts[kLow], &responses[kLow]);
  const ::grpc::Status refused = fourth->Finish();
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(behaviour.desk.entered(), kLow);

  auto high = get_value(*stub);
  EXPECT_TRUE(behaviour.desk.wait_until_inside(kLow + 1));  // at once: nobody has left
  EXPECT_EQ(server.stats().classes[index_of(Priority::kHigh)].waited.count, 0U);
  behaviour.desk.release();
  EXPECT_TRUE(high.get().status.ok());
  for (auto& transfer : transfers) EXPECT_TRUE(transfer->Finish().ok());
  EXPECT_TRUE(server.wait_until_idle());
}

TEST(GuardedCall, FourHundredCallersWaitWithoutThreads) {
  Behaviour behaviour;
  const auto store = make_callback_store(behaviour);
  AdmissionConfig config = limit_of(10);
  config.high_wait_max = std::chrono::seconds(20);
  TestServer server(config, with_class(Priority::kHigh), *store);
  const auto stub = server.stub();
  ASSERT_TRUE(ask_value(*stub).status.ok());
  behaviour.desk.hold();
  std::vector<std::future<Answer>> answers;
  for (int i = 0; i < 400; ++i) answers.push_back(get_value(*stub));
  ASSERT_TRUE(behaviour.desk.wait_until_inside(10));
  while (server.stats().waiting < 390) std::this_thread::yield();
  EXPECT_LT(threads_of_this_process(), 60);
  behaviour.desk.release();
  int served = 0;
  for (auto& one : answers) served += one.get().status.ok() ? 1 : 0;
  EXPECT_EQ(served, 400);
  EXPECT_EQ(behaviour.desk.most_inside(), 10);
  EXPECT_TRUE(server.wait_until_idle());
  EXPECT_EQ(server.admission().waiting(), 0);
}

TEST(GuardedCall, AWaitThatIsOverEndsByItself) {
  Behaviour behaviour;
  const auto store = make_callback_store(behaviour);
  TestServer server(limit_of(1), with_class(Priority::kHigh), *store);
  const auto stub = server.stub();
  behaviour.desk.hold();
  auto first = get_value(*stub);
  ASSERT_TRUE(behaviour.desk.wait_until_inside(1));
  const Answer second = ask_value(*stub);  // nothing else happens on this server
  EXPECT_EQ(second.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_GE(second.took, milliseconds(90));
  EXPECT_EQ(server.admission().waiting(), 0);
  behaviour.desk.release();
  EXPECT_TRUE(first.get().status.ok());
}

TEST(GuardedCall, AClientThatLeavesWhileItWaitsTakesNoPlace) {
  Behaviour behaviour;
  const auto store = make_callback_store(behaviour);
  AdmissionConfig config = limit_of(1);
  config.high_wait_max = std::chrono::seconds(20);
  TestServer server(config, with_class(Priority::kHigh), *store);
  const auto stub = server.stub();
  behaviour.desk.hold();
  auto first = get_value(*stub);
  ASSERT_TRUE(behaviour.desk.wait_until_inside(1));
  auto leaves = get_value(*stub, {.timeout = milliseconds(50)});
  EXPECT_EQ(leaves.get().status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  behaviour.desk.release();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_TRUE(ask_value(*stub).status.ok());
  EXPECT_TRUE(server.wait_until_idle());
}

/// Counts the messages that gRPC makes to parse into.
class CountingAllocator final : public ::grpc::MessageAllocator<Value, Value> {
 public:
  class Holder final : public ::grpc::MessageHolder<Value, Value> {
   public:
    Holder() {
      set_request(&request_);
      set_response(&response_);
    }
    void Release() override { delete this; }

   private:
    Value request_;
    Value response_;
  };
  ::grpc::MessageHolder<Value, Value>* AllocateMessages() override {
    made.fetch_add(1);
    return new Holder;
  }
  std::atomic<int> made{0};
};

TEST(GuardedCall, ARefusedCallIsNotParsed) {
  Behaviour behaviour;
  const auto store = make_callback_store(behaviour);
  CountingAllocator messages;
  static_cast<Store::CallbackService&>(*store).SetMessageAllocatorFor_GetValue(&messages);
  TestServer server(limit_of(1), with_class(Priority::kLow), *store);
  const auto stub = server.stub();
  behaviour.desk.hold();
  auto first = get_value(*stub);
  ASSERT_TRUE(behaviour.desk.wait_until_inside(1));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(ask_value(*stub, {.data = std::string(100'000, 'x')}).status.error_code(),
              StatusCode::RESOURCE_EXHAUSTED);
  }
  EXPECT_EQ(messages.made, 1);
  behaviour.desk.release();
  EXPECT_TRUE(first.get().status.ok());
}

}  // namespace
}  // namespace weir::grpc
