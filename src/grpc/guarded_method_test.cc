#include "guarded_method.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "testing/store_testing.h"

namespace weir::grpc {
namespace {

using namespace testing;
using std::chrono::milliseconds;

/// Both APIs that own a handler per method.
class GuardedMethod : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<::grpc::Service> make_store() {
    return GetParam() ? make_callback_store(behaviour_) : make_sync_store(behaviour_);
  }
  Behaviour behaviour_;
  std::unique_ptr<::grpc::Service> store_ = make_store();
};

INSTANTIATE_TEST_SUITE_P(Api, GuardedMethod, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "Callback" : "Sync"; });

TEST_P(GuardedMethod, AnAdmittedCallIsServedAndItsPermitGivenBack) {
  TestServer server(limit_of(4), {}, *store_);
  const auto stub = server.stub();
  for (int i = 0; i < 20; ++i) {
    const Answer answer = ask_value(*stub);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_EQ(answer.data, "value");
    EXPECT_TRUE(answer.trailers.empty());
  }
  EXPECT_TRUE(server.wait_until_idle());
  EXPECT_EQ(server.controller().stats().admitted, 20U);
}

TEST_P(GuardedMethod, ARefusedCallHasStatusReasonAndHint) {
  TestServer server(limit_of(2),
                    {.methods = {{"/weir.testing.Store/GetValue", {.priority = Priority::kLow}}}},
                    *store_);
  const auto stub = server.stub();
  behaviour_.desk.hold();
  auto first = get_value(*stub);
  auto second = get_value(*stub);
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(2));
  const Answer third = ask_value(*stub);
  EXPECT_EQ(third.status.error_code(), ::grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(third.status.error_message(), "the service is at its limit");
  EXPECT_EQ(third.trailer("x-weir-reason"), "overload");
  EXPECT_GE(std::stoi(third.trailer("grpc-retry-pushback-ms")), 50);
  EXPECT_EQ(third.trailer("grpc-retry-after-ms"), third.trailer("grpc-retry-pushback-ms"));
  behaviour_.desk.release();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_TRUE(second.get().status.ok());
  EXPECT_EQ(behaviour_.desk.entered(), 2);
  EXPECT_TRUE(server.wait_until_idle());
}

TEST_P(GuardedMethod, AWaitingCallIsServedWhenAPlaceIsFree) {
  TestServer server(limit_of(1),
                    {.methods = {{"/weir.testing.Store/GetValue", {.priority = Priority::kHigh}}}},
                    *store_);
  const auto stub = server.stub();
  behaviour_.desk.hold();
  auto first = get_value(*stub);
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(1));
  auto second = get_value(*stub);
  while (server.stats().waiting == 0) std::this_thread::yield();
  behaviour_.desk.release();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_TRUE(second.get().status.ok());
  EXPECT_EQ(behaviour_.desk.most_inside(), 1);
  EXPECT_TRUE(server.wait_until_idle());
}

}  // namespace
}  // namespace weir::grpc
