// The first call after a pause, with the heartbeat and without: on a machine that is otherwise
// idle.
#include <chrono>
#include <future>
#include <memory>

#include <gtest/gtest.h>

#include "testing/store_testing.h"

namespace weir::grpc {
namespace {

using namespace testing;
using std::chrono::milliseconds;

constexpr int kCalls = 12;

/// How many calls of kCalls took 10 ms or more, when each came a little more than a second after
/// the one before: then the threads of the callback API begin to sleep for 100 ms.
int late_calls(Duration heartbeat) {
  Behaviour behaviour;
  const auto store = make_callback_store(behaviour);
  TestServer server(limit_of(4), {.heartbeat = heartbeat}, *store);
  const auto stub = server.stub();
  int late = 0;
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_TRUE(ask_value(*stub).status.ok());
    std::promise<void> nothing;
    nothing.get_future().wait_for(milliseconds(1010 + 4 * i));
    const Answer answer = ask_value(*stub);
    EXPECT_TRUE(answer.status.ok());
    late += answer.took >= milliseconds(10) ? 1 : 0;
  }
  return late;
}

TEST(IdleStall, TheHeartbeatCuresIt) {
  const int without = late_calls(Duration::zero());
  const int with = late_calls(milliseconds(250));
  EXPECT_GE(without, kCalls / 3) << "if this gRPC does not stall, the heartbeat is not needed";
  EXPECT_LE(with, 1);
}

}  // namespace
}  // namespace weir::grpc
