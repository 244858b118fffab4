#include "weir/experimental/grpc/hedged_channel_config.h"

#include <gtest/gtest.h>

namespace weir::inline v0::grpc {
namespace {

HedgedChannelConfig two_replicas() {
  HedgedChannelConfig config;
  config.replicas = {{.target = "127.0.0.1:1"}, {.target = "127.0.0.1:2"}};
  return config;
}

TEST(HedgedChannelConfig, DefaultsWithReplicasAreValid) {
  EXPECT_TRUE(two_replicas().validate().empty());
}

TEST(HedgedChannelConfig, EveryWrongValueIsNamedWithItsRange) {
  HedgedChannelConfig config = two_replicas();
  config.timeout = Duration(0);
  config.threads = 0;
  config.max_in_flight = 0;
  config.hedge.budget_pct = 2;
  const ConfigErrors errors = config.validate();
  ASSERT_EQ(errors.size(), 4U);
  EXPECT_EQ(errors[0].key, "hedge.budget_pct");
  EXPECT_EQ(errors[1].key, "timeout");
  EXPECT_EQ(errors[2].key, "max_in_flight");
  EXPECT_EQ(errors[3].key, "threads");
  for (const ConfigError& error : errors) EXPECT_FALSE(error.allowed.empty());
}

TEST(HedgedChannelConfig, ReplicasAreOneToSixtyFourDifferentTargets) {
  EXPECT_EQ(validate(std::vector<HedgedReplica>{}).size(), 1U);
  EXPECT_EQ(validate({{.target = "a:1"}, {.target = "a:1"}}).size(), 1U);
  EXPECT_EQ(validate({{.target = ""}}).size(), 1U);
  EXPECT_EQ(validate(std::vector<HedgedReplica>(65, {.target = "a:1"})).size(), 65U);
}

TEST(HedgedChannelConfig, MethodsHaveAPathAndStandOnce) {
  for (const char* wrong : {"", "Get", "/Get", "//Get", "/p.S/", "/p.S/a/b", "/p.S/a b"}) {
    HedgedChannelConfig config = two_replicas();
    config.methods = {{.path = wrong}};
    EXPECT_EQ(config.validate().size(), 1U) << '"' << wrong << '"';
  }
  HedgedChannelConfig config = two_replicas();
  config.methods = {{.path = "/p.S/Get"}, {.path = "/p.S/*"}};
  EXPECT_TRUE(config.validate().empty());
  config.methods.push_back({.path = "/p.S/Get", .kind = MethodKind::kOther});
  EXPECT_EQ(config.validate().size(), 1U);
}

}  // namespace
}  // namespace weir::inline v0::grpc
