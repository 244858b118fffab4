#include "weir/control/outgoing_config.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace weir::inline v0::inline control {
namespace {

TEST(OutgoingConfig, HasTheDocumentedDefaults) {
  const OutgoingConfig config;
  EXPECT_EQ(config.queue_size, 500U);
  EXPECT_EQ(config.overflow_size, 100U);
  EXPECT_EQ(config.max_destinations, 1000U);
  EXPECT_EQ(config.advice, policy::AdviceProfile::kMonotone);
  EXPECT_EQ(config.worst_case_bytes(), mib(128));
  EXPECT_TRUE(config.validate().empty());
}

TEST(OutgoingConfig, NamesTheOptionThatIsWrong) {
  struct Case {
    std::string key;
    std::function<void(OutgoingConfig&)> spoil;
  };
  const Case cases[] = {
      {"queue_size", [](OutgoingConfig& c) { c.queue_size = 0; }},
      {"overflow_size", [](OutgoingConfig& c) { c.overflow_size = 2'000'000; }},
      {"critical_size", [](OutgoingConfig& c) { c.critical_size = 0; }},
      {"max_destinations", [](OutgoingConfig& c) { c.max_destinations = 0; }},
      {"in_flight_max", [](OutgoingConfig& c) { c.in_flight_max = 0; }},
      {"destination_bytes_max", [](OutgoingConfig& c) { c.destination_bytes_max = ByteSize(0); }},
      {"total_bytes_max", [](OutgoingConfig& c) { c.total_bytes_max = mib(3); }},
  };
  for (const Case& wrong : cases) {
    OutgoingConfig config;
    wrong.spoil(config);
    const ConfigErrors errors = config.validate();
    ASSERT_EQ(errors.size(), 1U) << wrong.key;
    EXPECT_EQ(errors.front().key, wrong.key);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline control
