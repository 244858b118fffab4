#include "weir/gateway/gateway_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using ::testing::HasSubstr;

Config with_upstream() {
  Config config;
  config.upstreams.resize(1);
  config.upstreams[0].name = "app";
  return config;
}

TEST(GatewayBudget, IsTheServersAndItsOwn) {
  const Config config = with_upstream();
  const MemoryBudget all = gateway_budget(config);
  const std::uint64_t server = memory_budget(gateway_server_config(config)).total_bytes();
  std::uint64_t own = 0;
  for (const MemoryAddend& addend : all.addends) {
    if (addend.holder.starts_with("gateway ")) own += addend.bytes();
  }
  EXPECT_EQ(all.total_bytes(), server + own);
  EXPECT_GT(own, 0U);
}

TEST(GatewayBudget, EveryKnobThatTakesMemoryMovesIt) {
  const auto ceiling = [](auto change) {
    Config config = with_upstream();
    change(config);
    return gateway_budget(config).total_bytes();
  };
  const std::uint64_t base = ceiling([](Config&) {});
  EXPECT_GT(ceiling([](Config& c) { c.server.max_connections *= 2; }), base);
  EXPECT_GT(ceiling([](Config& c) { c.server.tcp_write_buffer_pool_size *= 2; }), base);
  EXPECT_GT(ceiling([](Config& c) { c.server.head_bytes_max = 64 * 1024; }), base);
  EXPECT_GT(ceiling([](Config& c) { c.upstreams[0].response_head_bytes_max *= 2; }), base);
  EXPECT_GT(ceiling([](Config& c) { c.upstreams[0].max_connections *= 2; }), base);
  EXPECT_GT(ceiling([](Config& c) { c.admission.actor_table_size *= 2; }), base);
  EXPECT_LT(ceiling([](Config& c) { c.admin.listen.reset(); }), base);
  EXPECT_EQ(ceiling([](Config& c) { c.server.arena_pool_size *= 2; }), base);
}

TEST(GatewayBudget, DefaultsServeASmallMachine) {
  EXPECT_LT(gateway_budget(with_upstream()).total_bytes(), std::uint64_t{512} << 20U);
}

TEST(GatewayBudget, ObjectsToWhatDoesNotFit) {
  Config config = with_upstream();
  EXPECT_EQ(budget_objection(config, std::nullopt), "");
  EXPECT_EQ(budget_objection(config, std::uint64_t{1} << 40U), "");
  EXPECT_THAT(budget_objection(config, std::uint64_t{1} << 20U), HasSubstr("cgroup"));
  config.server.memory_max = std::uint64_t{1} << 20U;
  EXPECT_THAT(budget_objection(config, std::nullopt), HasSubstr("memory_max"));
}

}  // namespace
}  // namespace weir
