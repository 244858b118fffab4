// Requests that wait because their upstream has no endpoint: the limit is for the others.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "weir/experimental/gateway/gateway.h"

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::HeldOrigin;
using testkit::kGet;
using testkit::RunningGateway;

/// A gateway whose only upstream gets its first endpoint when the test says so.
class GatewayHold : public ::testing::Test {
 protected:
  static constexpr std::size_t kLimit = 2;

  GatewayHold()
      : path_(std::filesystem::temp_directory_path() /
              ("weir_gateway_hold_" + std::to_string(::getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    list("");
  }
  ~GatewayHold() override { std::filesystem::remove(path_); }

  void list(const std::string& endpoints) const {
    std::ofstream(path_ + ".new") << endpoints;
    std::filesystem::rename(path_ + ".new", path_);
  }
  [[nodiscard]] config::Config config() const {
    config::Config config = testkit::with_fixed_limit(gateway_config({"file:" + path_}), kLimit);
    config.admission.classes.share_normal_permille = 1000;
    config.upstreams[0].hold_max = std::chrono::seconds(30);
    return config;
  }
  static std::uint32_t held(const RunningGateway& gateway) {
    const std::string page = gateway.page("/metrics");
    const std::string series = "\nweir_upstream_held_requests{upstream=\"app\"} ";
    return static_cast<std::uint32_t>(std::stoul(page.substr(page.find(series) + series.size())));
  }
  /// Sends this many GETs, each on its own connection; they are held then.
  void send(const RunningGateway& gateway, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      clients_.push_back(std::make_unique<Client>(gateway.port()));
      ASSERT_TRUE(clients_.back()->send(kGet));
    }
    ASSERT_TRUE(eventually([&] { return held(gateway) == clients_.size(); }))
        << held(gateway) << " of " << clients_.size();
  }

  const std::string path_;
  std::vector<std::unique_ptr<Client>> clients_;
};

TEST_F(GatewayHold, HeldRequestsDoNotFillTheLimit) {
  RunningGateway gateway(config());
  send(gateway, 7);
  EXPECT_EQ(gateway.stats()["upstreams"]["app"]["in_flight"], 0);
}

TEST_F(GatewayHold, AReplicaThatReturnsGetsThemByTheLimit) {
  HeldOrigin origin;
  RunningGateway gateway(config());
  send(gateway, 9);
  list(origin.address() + "\n");
  std::size_t most = 0;
  EXPECT_TRUE(eventually([&] {
    most = std::max(most, origin.held());
    origin.let_go();
    return held(gateway) == 0;
  }));
  EXPECT_GT(most, 0U);
  EXPECT_LE(most, kLimit);
  EXPECT_TRUE(eventually([&] {
    origin.let_go();
    return gateway->status().answered == 9;
  }));
  for (const auto& client : clients_) EXPECT_EQ(client->read().status, 200);
  EXPECT_TRUE(gateway.settled());
}

TEST_F(GatewayHold, AStreamBecomesOneWhenAReplicaHasIt) {
  HeldOrigin origin;
  config::Config with_stream = config();
  with_stream.routes[0].stream = true;
  RunningGateway gateway(with_stream);
  send(gateway, 3);
  EXPECT_EQ(gateway.stats()["admission"]["streaming"], 0);
  list(origin.address() + "\n");
  ASSERT_TRUE(origin.wait_for(3)) << "beyond the limit of two: they hold nothing of it";
  EXPECT_EQ(gateway->status().in_flight, 0U);
  EXPECT_EQ(gateway.stats()["admission"]["streaming"], 3);
  origin.let_go();
  for (const auto& client : clients_) EXPECT_EQ(client->read().status, 200);
  EXPECT_TRUE(gateway.settled());
  EXPECT_EQ(gateway.stats()["admission"]["streaming"], 0);
}

TEST_F(GatewayHold, AClientThatLeavesWhileHeldLeavesNothingBehind) {
  RunningGateway gateway(config());
  send(gateway, 5);
  clients_.clear();
  EXPECT_TRUE(eventually([&] { return held(gateway) == 0; }));
  EXPECT_TRUE(gateway.settled());
}

}  // namespace
}  // namespace weir::gateway
