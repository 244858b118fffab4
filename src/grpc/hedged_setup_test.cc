#include "hedged_setup.h"

#include <map>
#include <string>

#include <grpc/grpc.h>
#include <grpc/support/time.h>
#include <gtest/gtest.h>

#include "hedged_testing.h"

namespace weir::inline v0::grpc {
namespace {

using hedge_testkit::bytes_of;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::map<std::string, int> integers(const ::grpc::ChannelArguments& arguments) {
  grpc_channel_args raw;
  arguments.SetChannelArgs(&raw);
  std::map<std::string, int> found;
  for (std::size_t i = 0; i < raw.num_args; ++i) {
    if (raw.args[i].type == GRPC_ARG_INTEGER) found[raw.args[i].key] = raw.args[i].value.integer;
  }
  return found;
}

TEST(HedgedSetup, AChannelHasItsOwnConnectionNoRetriesAndQuickReconnects) {
  ::grpc::ChannelArguments given;
  given.SetInt("grpc.keepalive_time_ms", 300'000);
  HedgedChannelConfig config;
  config.connect_timeout = milliseconds(700);
  std::map<std::string, int> found = integers(hedge_arguments(config, given));
  EXPECT_EQ(found["grpc.use_local_subchannel_pool"], 1);
  EXPECT_EQ(found["grpc.enable_retries"], 0);
  EXPECT_EQ(found["grpc.initial_reconnect_backoff_ms"], 100);
  EXPECT_EQ(found["grpc.max_reconnect_backoff_ms"], 2000);
  EXPECT_EQ(found["grpc.min_reconnect_backoff_ms"], 700);
  EXPECT_EQ(found["grpc.max_receive_message_length"], 4 << 20);
  EXPECT_EQ(found["grpc.keepalive_time_ms"], 300'000);
}

TEST(HedgedSetup, QueuesRefuseByItemsAndNeverDrop) {
  HedgedChannelConfig config;
  config.queue_per_replica = 7;
  config.in_flight_per_replica = 3;
  const control::OutgoingConfig queues = hedge_queues(config);
  EXPECT_TRUE(queues.validate().empty());
  EXPECT_EQ(queues.queue_size, 7U);
  EXPECT_EQ(queues.in_flight_max, 3U);
  EXPECT_EQ(queues.overflow_size, 0U);
}

TEST(HedgedSetup, ACallThatGrpcWouldNotTakeIsRefusedWithAReason) {
  HedgedChannelConfig config;
  config.request_bytes_max = 4;
  const auto code = [&](const std::string& method, const std::string& body,
                        HedgedCallOptions options) {
    return objection_to(method, bytes_of(body), options, config).error_code();
  };
  using ::grpc::StatusCode;
  EXPECT_EQ(code("/p.S/Get", "four", {}), StatusCode::OK);
  EXPECT_EQ(code("p.S/Get", "four", {}), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code("/p.S/Get", "five5", {}), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(code("/p.S/Get", "", {.metadata = {{"key", "value"}}}), StatusCode::OK);
  EXPECT_EQ(code("/p.S/Get", "", {.metadata = {{"key-bin", "\n"}}}), StatusCode::OK);
  for (const auto& [key, value] : std::map<std::string, std::string>{{"Key", "v"},
                                                                     {"", "v"},
                                                                     {"key", "a\nb"},
                                                                     {"grpc-timeout", "1S"},
                                                                     {"x-weir-attempt", "3"}}) {
    EXPECT_EQ(code("/p.S/Get", "", {.metadata = {{key, value}}}), StatusCode::INVALID_ARGUMENT)
        << key;
  }
  EXPECT_EQ(objection_to("/p.S/Get", {}, {}, config).error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST(HedgedSetup, TheTimeLeftIsThatOfTheCallersDeadline) {
  EXPECT_EQ(time_left({}), std::chrono::hours(24));
  HedgedCallOptions options;
  for (const gpr_clock_type clock : {GPR_CLOCK_REALTIME, GPR_CLOCK_MONOTONIC}) {
    options.deadline = gpr_time_add(gpr_now(clock), gpr_time_from_seconds(100, GPR_TIMESPAN));
    EXPECT_LE(time_left(options), seconds(100));
    EXPECT_GT(time_left(options), seconds(50));
    options.deadline = gpr_time_0(clock);
    EXPECT_EQ(time_left(options), Duration(0));
  }
}

}  // namespace
}  // namespace weir::inline v0::grpc
