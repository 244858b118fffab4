// Senders in a scenario file.
#include <gtest/gtest.h>

#include "scenario_test_support.h"

namespace weir::sim {
namespace {

const char* const kSender = R"(
[[service]]
name = "asia"
workers = 4
time = "5ms"
[[sender]]
name = "a"
[[sender]]
name = "b"
queue_size = 7
overflow_size = 0
critical_size = 2
max_destinations = 9
in_flight_max = 3
destination_bytes_max = "1KiB"
total_bytes_max = "2KiB"
shared = true
[[load]]
name = "l"
sender = "b"
to = "asia"
rate = 10
expires = "2s"
)";

std::string faults(const std::vector<std::string>& set) {
  const FileSource none = [](const std::string&) { return std::optional<std::string>(); };
  const auto scenario = read_scenario_text(kSender, "test.toml", set, none);
  return scenario ? "" : printed(scenario.error());
}

TEST(SenderReader, ReadsTheBoundsOfItsQueues) {
  const Scenario s = scenario_of(kSender);
  ASSERT_EQ(s.senders.size(), 2U);
  EXPECT_EQ(s.senders[0].queues, OutgoingConfig{});
  const OutgoingConfig& queues = s.senders[1].queues;
  EXPECT_EQ(queues.queue_size, 7U);
  EXPECT_EQ(queues.overflow_size, 0U);
  EXPECT_EQ(queues.critical_size, 2U);
  EXPECT_EQ(queues.max_destinations, 9U);
  EXPECT_EQ(queues.in_flight_max, 3U);
  EXPECT_EQ(queues.destination_bytes_max, kib(1));
  EXPECT_EQ(queues.total_bytes_max, kib(2));
  EXPECT_TRUE(s.senders[1].shared);
  EXPECT_EQ(s.loads[0].sender, 1U);
  EXPECT_EQ(s.loads[0].expires, std::chrono::seconds(2));
}

TEST(SenderReader, NamesWhatIsWrong) {
  EXPECT_NE(faults({"sender.b.queue_size=0"}).find("queue_size"), std::string::npos);
  EXPECT_NE(faults({"load.l.sender=\"c\""}).find("sender"), std::string::npos);
  EXPECT_NE(faults({"load.l.retry={kind=\"backoff\"}"}).find("retry"), std::string::npos);
  EXPECT_EQ(faults({}), "");
}

}  // namespace
}  // namespace weir::sim
