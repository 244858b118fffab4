// A server that ends while calls wait for admission leaves nothing behind.
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "testing/store_testing.h"

namespace weir::grpc {
namespace {

using namespace testing;
using ::grpc::StatusCode;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Shutdown : public ::testing::TestWithParam<bool> {
 protected:
  static AdmissionConfig patient(Duration wait) {
    AdmissionConfig config = limit_of(1);
    config.high_wait_max = wait;
    return config;
  }
  void start(Duration wait) {
    store_ = GetParam() ? make_callback_store(behaviour_) : make_sync_store(behaviour_);
    server_.emplace(
        patient(wait),
        ServerOptions{.methods = {{"/weir.testing.Store/GetValue", {.priority = Priority::kHigh}}}},
        *store_);
    stub_ = server_->stub();
    behaviour_.desk.hold();
    served_ = get_value(*stub_);
    ASSERT_TRUE(behaviour_.desk.wait_until_inside(1));
    for (int i = 0; i < kWaiting; ++i) waiting_.push_back(get_value(*stub_));
    while (server_->stats().waiting < kWaiting) std::this_thread::yield();
  }

  static constexpr int kWaiting = 20;
  Behaviour behaviour_;
  std::unique_ptr<::grpc::Service> store_;
  std::optional<TestServer> server_;
  std::unique_ptr<Store::Stub> stub_;
  std::future<Answer> served_;
  std::vector<std::future<Answer>> waiting_;
};

INSTANTIATE_TEST_SUITE_P(Api, Shutdown, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "Callback" : "Sync"; });

TEST_P(Shutdown, AClosedAdmissionEmptiesTheWaitingRoomWithoutServingIt) {
  start(seconds(20));
  std::jthread closer([this] { server_->admission().close(); });
  // The waiters are still there: nobody is told before it is his turn.
  const CallWish brief{.timeout = milliseconds(50)};
  while (ask_value(*stub_, brief).status.error_code() != StatusCode::UNAVAILABLE) {
  }
  behaviour_.desk.release();
  EXPECT_TRUE(served_.get().status.ok());
  for (auto& one : waiting_) {
    EXPECT_EQ(one.get().status.error_code(), StatusCode::UNAVAILABLE);
  }
  closer.join();
  EXPECT_EQ(server_->admission().waiting(), 0);
  EXPECT_EQ(behaviour_.desk.entered(), 1);
  server_->server().Shutdown();
  EXPECT_EQ(server_->controller().stats().in_flight, 0U);
  EXPECT_EQ(server_->stats().waiting, 0U);
}

TEST_P(Shutdown, AServerThatIsNotClosedFirstEndsWhenItsCallsHaveEnded) {
  start(milliseconds(200));
  std::jthread stopper([this] { server_->server().Shutdown(); });
  for (auto& one : waiting_) EXPECT_FALSE(one.get().status.ok());
  behaviour_.desk.release();
  EXPECT_TRUE(served_.get().status.ok());
  stopper.join();
  EXPECT_EQ(server_->controller().stats().in_flight, 0U);
  EXPECT_EQ(server_->stats().waiting, 0U);
  EXPECT_EQ(server_->admission().waiting(), 0);
}

}  // namespace
}  // namespace weir::grpc
