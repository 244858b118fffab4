#include "operator_log.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(OperatorLog, ALimitIsToldWhenItMovedByAQuarter) {
  EXPECT_FALSE(OperatorLog::worth_telling(100, 100));
  EXPECT_FALSE(OperatorLog::worth_telling(100, 110));
  EXPECT_FALSE(OperatorLog::worth_telling(100, 80));
  EXPECT_TRUE(OperatorLog::worth_telling(100, 134));
  EXPECT_TRUE(OperatorLog::worth_telling(100, 75));
  EXPECT_TRUE(OperatorLog::worth_telling(1, 2));
}

TEST(OperatorLog, MovesAreCountedPerScopeWhetherToldOrNot) {
  OperatorLog log({"a", "b"}, nullptr);
  log.on_limit_change({.scope = "b", .old_limit = 10, .new_limit = 11});
  log.on_limit_change({.scope = "b", .old_limit = 11, .new_limit = 9});
  log.on_limit_change({.scope = "b", .old_limit = 9, .new_limit = 8});
  log.on_limit_change({.scope = "unknown", .old_limit = 9, .new_limit = 8});
  EXPECT_EQ(log.moves("a").up, 0U);
  EXPECT_EQ(log.moves("b").up, 1U);
  EXPECT_EQ(log.moves("b").down, 2U);
}

TEST(OperatorLog, AScopeThatGoesAndComesBackCountsFromZero) {
  OperatorLog log({"a", "b"}, nullptr);
  log.on_limit_change({.scope = "a", .old_limit = 10, .new_limit = 11});
  log.on_limit_change({.scope = "b", .old_limit = 10, .new_limit = 11});
  log.set_scopes({"c", "b"});
  log.on_limit_change({.scope = "a", .old_limit = 11, .new_limit = 12});
  log.on_limit_change({.scope = "c", .old_limit = 11, .new_limit = 10});
  EXPECT_EQ(log.moves("b").up, 1U);
  EXPECT_EQ(log.moves("c").down, 1U);
  log.set_scopes({"a"});
  EXPECT_EQ(log.moves("a").up, 0U);
}

TEST(OperatorLog, AVerdictIsSaidWithWhatItRestsOnAndWhatToDo) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("weir_verdict_" + std::to_string(::getpid())))
          .string();
  auto writer = io::LineWriter::open({.path = path});
  ASSERT_TRUE(writer.has_value());
  OperatorLog log({"app"}, writer->get());
  log.on_verdict("app", policy::Cause::kServiceSlower, "p50 80 ms, usually 20 ms");
  log.on_verdict("app", policy::Cause::kFine, "p50 20 ms");
  (*writer)->stop();
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_THAT(text.str(),
              HasSubstr("weir: app: service_slower: the service is slower than it was at the same "
                        "demand (p50 80 ms, usually 20 ms); look for what changed in the service"));
  EXPECT_THAT(text.str(), HasSubstr("as fast as usual (p50 20 ms)\n")) << "nothing to do";
  std::filesystem::remove(path);
}

TEST(OperatorLog, SaysWhatHappenedInWords) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("weir_log_" + std::to_string(::getpid())))
          .string();
  auto writer = io::LineWriter::open({.path = path});
  ASSERT_TRUE(writer.has_value());
  OperatorLog log({"app"}, writer->get());
  log.on_limit_change({.scope = "app", .old_limit = 100, .new_limit = 95});
  log.on_limit_change({.scope = "app",
                       .old_limit = 95,
                       .new_limit = 50,
                       .in_flight = 61,
                       .queue_estimate = 12.5,
                       .latency_avg = std::chrono::milliseconds(12),
                       .reason = LimitReason::kQueueing});
  log.on_refusals({.scope = "app",
                   .reason = Reason::kOverload,
                   .priority = Priority::kLow,
                   .peer = "edge-1",
                   .count = 17,
                   .in_flight = 41,
                   .limit = 44,
                   .queue_estimate = 3.25,
                   .memory_usage = 0.038});
  log.on_refusals({.scope = "app", .reason = Reason::kOverload, .peer = {}, .count = 18});
  log.on_refusals({.scope = "app", .reason = Reason::kMemory, .peer = {}, .count = 19});
  log.on_class_warning({.scope = "app", .priority = Priority::kHigh, .in_flight = 8, .bound = 10});
  log.on_memory({.readable = false});
  log.on_memory({.readable = true, .usage = 0.862, .level = MemoryLevel::kPressured});
  const io::Address sender{.ip = {192, 0, 2, 7}, .port = 1, .family = io::Family::kV4};
  for (int i = 0; i < 3; ++i) {
    log.on_proxy_refusal({.sender = sender, .result = ProxyResult::kUntrusted, .why = {}});
    log.on_proxy_refusal(
        {.sender = {.family = io::Family::kUnix}, .result = ProxyResult::kMalformed, .why = "odd"});
  }
  (*writer)->stop();
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("app: limit 50, was 100 (queueing; 61 in flight, estimated "
                                    "queue 12.5, latency 12.0 ms"));
  EXPECT_THAT(text.str(), Not(HasSubstr("limit 95")));
  EXPECT_THAT(text.str(), HasSubstr("app: refused 17 (overload): 41 in flight, limit 44, estimated "
                                    "queue 3.2, memory 3.8 %; last: class low, peer edge-1\n"));
  EXPECT_THAT(text.str(), Not(HasSubstr("refused 18")));
  EXPECT_THAT(text.str(), HasSubstr("app: refused 19 (memory"));
  EXPECT_THAT(text.str(), HasSubstr("app: high has 8 of its 10 places"));
  EXPECT_THAT(text.str(), HasSubstr("memory usage cannot be read"));
  EXPECT_THAT(text.str(), HasSubstr("memory 86.2 % used: low-class requests are refused\n"));
  EXPECT_THAT(text.str(), HasSubstr("closed 1 connections to listen.proxy_protocol, the last from "
                                    "192.0.2.7, which is not in trust.proxies\n"));
  EXPECT_THAT(text.str(), HasSubstr("PROXY header malformed; the last from a Unix socket (odd)\n"));
  EXPECT_THAT(text.str(), Not(HasSubstr("closed 2 connections"))) << "one line in ten seconds";
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace weir::gateway
