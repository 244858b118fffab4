// Three servers in a row: what the last one refuses does not pile up in those before it.
#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/embed/clock.h"

#include "testing/store_testing.h"

namespace weir::grpc {
namespace {

using namespace testing;

/// Asks the next node for every value, and passes on what it says.
class Relay final : public Store::CallbackService {
 public:
  explicit Relay(std::unique_ptr<Store::Stub> next) : next_(std::move(next)) {}

  ::grpc::ServerUnaryReactor* GetValue(::grpc::CallbackServerContext* context, const Value* request,
                                       Value* response) override {
    ::grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    std::shared_ptr<::grpc::ClientContext> call =
        ::grpc::ClientContext::FromCallbackServerContext(*context);
    next_->async()->GetValue(
        call.get(), request, response, [call, context, reactor](const ::grpc::Status& status) {
          for (const auto& [key, value] : call->GetServerTrailingMetadata()) {
            context->AddTrailingMetadata(std::string(key.data(), key.size()),
                                         std::string(value.data(), value.size()));
          }
          reactor->Finish(status);
        });
    return reactor;
  }

 private:
  std::unique_ptr<Store::Stub> next_;
};

TEST(Cascade, ASlowLastNodeDoesNotFillTheNodesBeforeIt) {
  constexpr int kCalls = 40;
  constexpr int kServed = 4;
  Behaviour behaviour;
  const auto store = make_callback_store(behaviour);
  AdmissionConfig narrow = limit_of(kServed);
  narrow.classes.share_normal_permille = 1000;
  TestServer c(narrow, {}, *store);
  Relay to_c(c.stub());
  TestServer b(limit_of(128), {}, to_c);
  Relay to_b(b.stub());
  TestServer a(limit_of(128), {}, to_b);
  const auto stub = a.stub();
  ASSERT_TRUE(ask_value(*stub).status.ok());

  behaviour.desk.hold();
  std::vector<std::future<Answer>> answers;
  for (int i = 0; i < kCalls; ++i) answers.push_back(get_value(*stub));
  ASSERT_TRUE(behaviour.desk.wait_until_inside(kServed));
  // All that the last node has no place for is answered, although nothing is served.
  int refused = 0;
  while (refused < kCalls - kServed) {
    refused = 0;
    for (auto& one : answers) {
      refused += one.wait_for(std::chrono::seconds(0)) == std::future_status::ready ? 1 : 0;
    }
    std::this_thread::yield();
  }
  // A node gives its permit back just after its answer has left.
  const auto only_the_served_are_inside = [&] {
    return b.stats().in_flight <= kServed && a.stats().in_flight <= kServed;
  };
  const TimePoint give_up = embed::now() + std::chrono::seconds(20);
  while (!only_the_served_are_inside() && embed::now() < give_up) std::this_thread::yield();
  EXPECT_TRUE(only_the_served_are_inside());
  EXPECT_EQ(b.stats().waiting + a.stats().waiting, 0U);
  behaviour.desk.release();
  int served = 0;
  std::vector<Duration> refusals;
  for (auto& one : answers) {
    const Answer answer = one.get();
    served += answer.status.ok() ? 1 : 0;
    if (answer.status.ok()) continue;
    refusals.push_back(answer.took);
    EXPECT_EQ(answer.status.error_code(), ::grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(answer.trailer("x-weir-reason"), "overload");
    EXPECT_NE(answer.trailer("grpc-retry-pushback-ms"), "");
  }
  EXPECT_EQ(served, kServed);
#ifdef WEIR_STRESS_FULL  // an otherwise idle machine
  std::ranges::sort(refusals);
  // The last node lets normal wait for 50 ms; the nodes before it add no wait of their own.
  EXPECT_LT(refusals[refusals.size() / 2], std::chrono::milliseconds(95));
#endif
  EXPECT_EQ(a.stats().errors + b.stats().errors, 0U);  // the limit of another node
}

}  // namespace
}  // namespace weir::grpc
