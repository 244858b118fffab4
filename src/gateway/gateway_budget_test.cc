#include "weir/experimental/gateway/gateway_budget.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;

config::Config with_upstream() {
  config::Config config;
  config.upstreams.resize(1);
  config.upstreams[0].name = "app";
  return config;
}

TEST(GatewayBudget, EveryConnectionIsADescriptor) {
  config::Config config = with_upstream();
  config.server.loops = 2;
  const std::uint64_t before = gateway_descriptors(config);
  EXPECT_GE(before, config.server.max_connections + config.upstreams[0].max_connections);
  config.server.max_connections += 5;
  config.upstreams[0].max_connections += 7;
  EXPECT_EQ(gateway_descriptors(config), before + 5 + 2 * 7) << "spare for a reload: as many";
  config.reload.upstreams_spare = 0;
  EXPECT_EQ(gateway_descriptors(config), before + 5 + 7 - 1024);
}

TEST(GatewayBudget, IsTheServersAndItsOwn) {
  const config::Config config = with_upstream();
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
    config::Config config = with_upstream();
    change(config);
    return gateway_budget(config).total_bytes();
  };
  const std::uint64_t base = ceiling([](config::Config&) {});
  EXPECT_GT(ceiling([](config::Config& c) { c.server.max_connections *= 2; }), base);
  EXPECT_GT(ceiling([](config::Config& c) { c.server.tcp_write_buffer_pool_size *= 2; }), base);
  EXPECT_GT(ceiling([](config::Config& c) { c.server.head_bytes_max = 64 * 1024; }), base);
  EXPECT_GT(ceiling([](config::Config& c) { c.upstreams[0].response_head_bytes_max *= 2; }), base);
  EXPECT_GT(ceiling([](config::Config& c) { c.upstreams[0].max_connections *= 2; }), base);
  EXPECT_GT(ceiling([](config::Config& c) { c.admission.actor_table_size *= 2; }), base);
  const std::uint64_t pool = config::Config().buffering.buffer_request_pool;
  EXPECT_GE(ceiling([](config::Config& c) { c.buffering.buffer_request_pool *= 2; }), base + pool);
  EXPECT_LE(ceiling([](config::Config& c) { c.buffering.buffer_request_max = 0; }), base - pool);
  EXPECT_GT(ceiling([](config::Config& c) { c.reload.upstreams_spare *= 2; }), base);
  EXPECT_GT(ceiling([](config::Config& c) { c.reload.connections_spare = 4096; }), base);
  EXPECT_GT(ceiling([](config::Config& c) { c.reload.tls_connections_spare = 1; }), base);
  EXPECT_LT(ceiling([](config::Config& c) { c.admin.listen.reset(); }), base);
  EXPECT_EQ(ceiling([](config::Config& c) { c.server.arena_pool_size *= 2; }), base);
}

TEST(GatewayBudget, DefaultsServeASmallMachine) {
  EXPECT_LT(gateway_budget(with_upstream()).total_bytes(), std::uint64_t{512} << 20U);
}

TEST(GatewayBudget, ObjectsToWhatDoesNotFit) {
  config::Config config = with_upstream();
  EXPECT_EQ(budget_objection(config, std::nullopt), "");
  EXPECT_EQ(budget_objection(config, std::uint64_t{1} << 40U), "");
  EXPECT_THAT(budget_objection(config, std::uint64_t{1} << 20U), HasSubstr("cgroup"));
  config.server.memory_max = std::uint64_t{1} << 20U;
  const std::string objection = budget_objection(config, std::nullopt);
  EXPECT_THAT(objection, HasSubstr("memory_max of 1.0 MiB"));
  EXPECT_THAT(objection, HasSubstr("tcp_write_buffer_pool_size")) << "the arithmetic is shown";
  EXPECT_THAT(objection, HasSubstr("all others"));
}

TEST(GatewayBudget, TheCgroupsLimitIsTheSmallestAroundTheProcess) {
  namespace fs = std::filesystem;
  const fs::path root =
      fs::path(testing::TempDir()) / ("weir-budget-" + std::to_string(::getpid()));
  const auto put = [&](const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  put("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 6291456 kB\n");
  put("proc/self/cgroup", "0::/slice/weir\n");
  EXPECT_EQ(own_cgroup_limit({root.string()}), std::nullopt);
  put("sys/fs/cgroup/slice/weir/memory.max", "67108864\n");
  put("sys/fs/cgroup/slice/weir/memory.current", "1048576\n");
  put("sys/fs/cgroup/slice/memory.max", "1073741824\n");  // larger, but with more in use
  put("sys/fs/cgroup/slice/memory.current", "1000000000\n");
  const auto limit = own_cgroup_limit({root.string()});
  fs::remove_all(root);
  ASSERT_EQ(limit, std::uint64_t{64} << 20U);
  EXPECT_THAT(budget_objection(with_upstream(), limit),
              HasSubstr("above the cgroup's limit of 64.0 MiB"));
}

}  // namespace
}  // namespace weir::gateway
