// A client of gRPC itself, with a retry policy in its service config, does what the trailers say.
#include <chrono>
#include <cstdint>
#include <memory>

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "testing/store_testing.h"

namespace weir::grpc {
namespace {

using namespace testing;
using std::chrono::milliseconds;

constexpr char kPolicy[] = R"({"methodConfig": [{"name": [{"service": "weir.testing.Store"}],
  "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.001s", "maxBackoff": "0.002s",
                  "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]})";

class RetryPolicy : public ::testing::Test {
 protected:
  std::unique_ptr<Store::Stub> retrying_stub() {
    ::grpc::ChannelArguments arguments;
    arguments.SetServiceConfigJSON(kPolicy);
    arguments.SetInt("grpc.use_local_subchannel_pool", 1);
    return Store::NewStub(::grpc::CreateCustomChannel(
        server_.address(), ::grpc::InsecureChannelCredentials(), arguments));
  }
  std::uint64_t refusals() { return server_.stats().refused[index_of(Reason::kOverload)]; }

  Behaviour behaviour_;
  std::unique_ptr<::grpc::Service> store_ = make_callback_store(behaviour_);
  TestServer server_{limit_of(1),
                     {.methods = {{"/weir.testing.Store/GetValue", {.priority = Priority::kLow}}}},
                     *store_};
};

TEST_F(RetryPolicy, EveryAttemptWaitsForThePushback) {
  const auto stub = retrying_stub();
  behaviour_.desk.hold();
  auto first = get_value(*stub);
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(1));
  const Answer refused = ask_value(*stub);
  EXPECT_EQ(refused.status.error_code(), ::grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refusals(), 4U);                      // the first attempt and three retries
  EXPECT_GE(refused.took, 3 * milliseconds(50));  // its own back-off would be 2 ms each
  behaviour_.desk.release();
  EXPECT_TRUE(first.get().status.ok());
}

TEST_F(RetryPolicy, ARetryIsServedWhenAPlaceIsFreeAgain) {
  const auto stub = retrying_stub();
  behaviour_.desk.hold();
  auto first = get_value(*stub);
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(1));
  auto second = get_value(*stub);
  while (refusals() == 0) {
  }
  behaviour_.desk.release();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_TRUE(second.get().status.ok());
}

}  // namespace
}  // namespace weir::grpc
