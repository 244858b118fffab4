#include "weir/experimental/server/memory_budget.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weir/experimental/server/server.h"
#include "weir/experimental/server/stats_json.h"

namespace weir::inline v0::inline server {
namespace {

constexpr std::uint64_t kMega = 1024 * 1024;

TEST(MemoryBudget, PaperAddendsReproduceTheClassicExample) {
  ServerConfig config;
  config.max_connections = 100;
  config.tcp_write_buffer_pool_size = 256;
  config.arena_pool_size = 200;
  config.arena_size = 4 * kMega;
  config.pending_stream_pool_size = 64;
  config.backpressure_list_max = 500;
  const MemoryBudget budget = paper_budget(config);
  ASSERT_EQ(budget.addends.size(), 6U);
  EXPECT_EQ(budget.addends[0].bytes(), 100U * 64 * 1024);
  EXPECT_EQ(budget.addends[1].bytes(), 8 * kMega);
  EXPECT_EQ(budget.addends[2].bytes(), 800 * kMega);
  const double megabytes = static_cast<double>(budget.total_bytes()) / static_cast<double>(kMega);
  EXPECT_NEAR(megabytes, 815, 1.0);
}

TEST(MemoryBudget, EveryBoundMovesTheCeiling) {
  const ServerConfig base;
  const std::uint64_t before = worst_case_bytes(base);
  const auto grows = [&](auto change, std::uint64_t at_least) {
    ServerConfig config = base;
    change(config);
    EXPECT_GE(worst_case_bytes(config), before + at_least);
  };
  grows([](ServerConfig& c) { c.max_connections += 1; }, base.conn_decrypted_buf_size);
  grows([](ServerConfig& c) { c.tls.certificate = c.tls.private_key = "x"; },
        std::uint64_t{base.max_connections} * base.conn_encrypted_buf_size);
  grows([](ServerConfig& c) { c.tcp_write_buffer_pool_size += 1; }, base.tcp_write_buffer_size);
  grows([](ServerConfig& c) { c.arena_pool_size += 1; }, base.arena_size);
  grows([](ServerConfig& c) { c.loops = 32; }, 1);
  grows([](ServerConfig& c) { c.connections_per_source_max = 4; }, base.max_connections);
}

struct Silent final : Handler {
  void on_headers(ServerStream&, const ServerRequest&) override {}
};

TEST(MemoryBudget, ServerAboveItsMemoryMaxDoesNotStart) {
  ServerConfig config;
  config.listen = {"127.0.0.1:0"};
  config.max_connections = 16;
  config.tcp_write_buffer_pool_size = 32;
  config.arena_pool_size = 2;
  config.loops = 1;
  config.memory_max = worst_case_bytes(config) - 1;
  const auto handlers = [](const HandlerPlace&) { return std::make_unique<Silent>(); };
  Server above(config, handlers);
  const auto refused = above.start();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().where, "server.memory_max");
  config.memory_max += 1;
  Server within(config, handlers);
  EXPECT_TRUE(within.start().has_value());
}

TEST(MemoryBudget, DefaultsServeAMachineOfOneGigabyte) {
  EXPECT_LT(worst_case_bytes(ServerConfig{}), 700 * kMega);
}

TEST(MemoryBudget, ThereAreAsManyHttp2SessionsAsConnectionsUpToABound) {
  ServerConfig config;
  config.max_connections = 100;
  EXPECT_EQ(config.http2_sessions(), 100U);
  config.max_connections = 100'000;
  EXPECT_EQ(config.http2_sessions(), 1024U);
  config.http2_sessions_max = 5000;
  EXPECT_EQ(config.http2_sessions(), 5000U);
  config.http2_enabled = false;
  EXPECT_EQ(config.http2_sessions(), 0U);
}

TEST(MemoryBudget, KernelSocketMemoryIsSetApart) {
  ServerConfig config;
  config.socket_receive_buffer_size = 64 * 1024;
  config.socket_send_buffer_size = 128 * 1024;
  EXPECT_EQ(memory_budget(config).kernel_bytes(),
            std::uint64_t{config.max_connections} * 2 * (64 + 128) * 1024);
}

TEST(MemoryBudget, TotalIsTheSumOfWhatIsShown) {
  const MemoryBudget budget = memory_budget(ServerConfig{});
  std::uint64_t sum = 0;
  for (const MemoryAddend& addend : budget.addends) {
    EXPECT_FALSE(addend.holder.empty());
    EXPECT_FALSE(addend.note.empty());
    sum += addend.count * addend.bytes_each;
  }
  EXPECT_EQ(sum, budget.total_bytes());
}

TEST(ServerConfig, DefaultsAreValidAndFaultsAreNamed) {
  ServerConfig config;
  EXPECT_TRUE(config.validate().empty());
  EXPECT_TRUE(config.warnings().empty());
  config.max_connections = 0;
  config.high_watermark = 0.99;
  config.head_bytes_max = 1024 * 1024;
  config.header_timeout = Duration::zero();
  const ConfigErrors errors = config.validate();
  const auto named = [&](std::string_view key) {
    return std::any_of(errors.begin(), errors.end(),
                       [&](const ConfigError& error) { return error.key == key; });
  };
  EXPECT_TRUE(named("server.max_connections"));
  EXPECT_TRUE(named("server.high_watermark"));
  EXPECT_TRUE(named("server.head_bytes_max"));
  EXPECT_TRUE(named("server.header_timeout_ms"));
}

TEST(ServerConfig, SmallWritePoolIsWarnedAbout) {
  ServerConfig config;
  config.tcp_write_buffer_pool_size = 2 * config.max_connections - 1;
  ASSERT_EQ(config.warnings().size(), 1U);
  EXPECT_EQ(config.warnings()[0].key, "server.tcp_write_buffer_pool_size");
}

TEST(StatsJson, IsOneObjectWithEveryPoolAndReason) {
  ServerStats stats;
  stats.write_buffers = {.used = 1, .peak = 2, .capacity = 3, .exhausted = 4};
  stats.closed[static_cast<std::size_t>(CloseReason::kIdle)] = 7;
  stats.pressure = PressureLevel::kHigh;
  const auto json = nlohmann::json::parse(stats_json(stats, ServerConfig{}));
  EXPECT_EQ(json["write_buffers"]["exhausted"], 4);
  EXPECT_EQ(json["closed"]["idle"], 7);
  EXPECT_EQ(json["closed"].size(), kCloseReasonNames.size() - 1);
  EXPECT_EQ(json["refused"].size(), kRefuseReasonNames.size());
  EXPECT_EQ(json["pressure"], "high");
  EXPECT_EQ(json["ceiling_bytes"], worst_case_bytes(ServerConfig{}));
}

TEST(Reasons, NamesAreCompleteAndDistinct) {
  for (std::size_t i = 0; i < kCloseReasonNames.size(); ++i) {
    EXPECT_FALSE(kCloseReasonNames[i].empty());
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(kCloseReasonNames[i], kCloseReasonNames[k]);
  }
  for (std::size_t i = 0; i < kRefuseReasonNames.size(); ++i) {
    EXPECT_FALSE(kRefuseReasonNames[i].empty());
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(kRefuseReasonNames[i], kRefuseReasonNames[k]);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline server
