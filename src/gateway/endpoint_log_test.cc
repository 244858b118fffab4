#include "endpoint_log.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace weir::inline v0::gateway {
namespace {

using ::testing::HasSubstr;

struct EndpointLogTest : ::testing::Test {
  ~EndpointLogTest() override { std::filesystem::remove(path); }
  std::string told() {
    writer->stop();
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  const std::string path = std::filesystem::temp_directory_path() /
                           ("weir_endpoint_log_" + std::to_string(::getpid()) + "_" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name());
  std::unique_ptr<io::LineWriter> writer = *io::LineWriter::open({.path = path});
  OperatorLog operators{{"app"}, writer.get()};
  EndpointLog log{operators};
  control::OutgoingConfig queue_config;
  control::OutgoingTotals queue_totals;
  upstream::Endpoint endpoint{{.name = *io::parse_socket_name("10.0.0.1:80"), .host = {}},
                              1,
                              policy::EndpointHealth(TimePoint{}),
                              {},
                              {.config = queue_config, .totals = queue_totals},
                              Rng(1)};
};

TEST_F(EndpointLogTest, EachEventIsOneLineWithItsFacts) {
  log.on_endpoint_change("app", endpoint,
                         {.from = policy::EndpointState::kAvailable,
                          .to = policy::EndpointState::kEjected,
                          .reason = policy::HealthReason::kConnectFailed});
  log.on_set_change("app", 2, 1, 5);
  log.on_tls_failure("app", endpoint, "certificate has expired");
  log.on_source("app", "dns:api:80", "timeout");
  log.on_source("app", "dns:api:80", "");
  EXPECT_EQ(told(),
            "weir: endpoint_state upstream=app endpoint=10.0.0.1:80 from=available to=ejected "
            "reason=connect_failed\n"
            "weir: endpoint_set upstream=app added=2 removed=1 endpoints=5\n"
            "weir: endpoint_tls_failed upstream=app endpoint=10.0.0.1:80 reason=\"certificate has "
            "expired\"\n"
            "weir: endpoint_source_failed upstream=app source=dns:api:80 reason=\"timeout\"; no "
            "endpoint was removed\n"
            "weir: endpoint_source_ok upstream=app source=dns:api:80\n");
}

TEST_F(EndpointLogTest, AFloodIsCutAndCounted) {
  for (int i = 0; i < 5000; ++i) log.on_set_change("app", 1, 0, 1);
  const std::string text = told();
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_LT(lines, 1000) << "the number of seconds that the test took is small";
  EXPECT_GE(lines, EndpointLog::kLinesPerSecond);
}

}  // namespace
}  // namespace weir::inline v0::gateway
