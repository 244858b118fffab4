#include "weir/experimental/grpc/server_options.h"

#include <gtest/gtest.h>

namespace weir::grpc {
namespace {

using std::chrono::milliseconds;

TEST(ServerOptions, TheDefaultsAreValid) {
  EXPECT_TRUE(ServerOptions{}.validate().empty());
}

TEST(ServerOptions, AHeartbeatIsOffOrBeforeTheThreadsFallAsleep) {
  ServerOptions options;
  options.heartbeat = Duration::zero();
  EXPECT_TRUE(options.validate().empty());
  for (const milliseconds bad : {milliseconds(1), milliseconds(1000), milliseconds(-5)}) {
    options.heartbeat = bad;
    const ConfigErrors errors = options.validate();
    ASSERT_EQ(errors.size(), 1U) << bad.count();
    EXPECT_EQ(errors[0].key, "heartbeat");
  }
}

TEST(ServerOptions, AnEmptyIdentityCannotBeTrusted) {
  ServerOptions options;
  options.trust.identities = {"node-1", ""};
  ASSERT_EQ(options.validate().size(), 1U);
  EXPECT_EQ(options.validate()[0].key, "trust.identities");
}

TEST(ServerOptions, ErrorsOfTheTableAreReported) {
  ServerOptions options;
  options.methods.set("GetValue", {});
  ASSERT_EQ(options.validate().size(), 1U);
}

}  // namespace
}  // namespace weir::grpc
