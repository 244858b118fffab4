#include "upstream_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;

config::Config with(std::initializer_list<std::uint32_t> connections) {
  config::Config config;
  for (const std::uint32_t count : connections) {
    config.upstreams.emplace_back();
    config.upstreams.back().max_connections = count;
  }
  return config;
}

TEST(UpstreamRoom, IsTheSumAndThatOfTheLargestOnceMore) {
  config::Config config = with({100, 30});
  UpstreamRoom room = UpstreamRoom::laid_out(config);
  EXPECT_EQ(room.upstreams, 2U + 8U);
  EXPECT_EQ(room.connections, 130U + 100U);
  EXPECT_EQ(room.tls_connections, 0U);
  EXPECT_EQ(room.sessions, 2 * 64U) << "one with HTTP/2 may come and be replaced";
  config.upstreams[1].tls_enabled = true;
  room = UpstreamRoom::laid_out(config);
  EXPECT_EQ(room.tls_connections, 30U + 30U);
  EXPECT_EQ(room.sessions, 30U + 2 * 64U);
}

TEST(UpstreamRoom, IsWhatTheOptionsSay) {
  config::Config config = with({100});
  config.reload = {.upstreams_spare = 2, .connections_spare = 1000, .tls_connections_spare = 7};
  const UpstreamRoom room = UpstreamRoom::laid_out(config);
  EXPECT_EQ(room.upstreams, 3U);
  EXPECT_EQ(room.connections, 1100U);
  EXPECT_EQ(room.tls_connections, 7U);
  EXPECT_EQ(room.sessions, 2 * 64U);
  config.reload.connections_spare = 20;
  EXPECT_EQ(UpstreamRoom::laid_out(config).sessions, 120U) << "not more than connections";
  config.reload.upstreams_spare = 0;
  const UpstreamRoom none = UpstreamRoom::laid_out(config);
  EXPECT_EQ(none.upstreams, 1U);
  EXPECT_EQ(none.connections, 100U);
  EXPECT_EQ(none.tls_connections, 0U);
  EXPECT_EQ(none.sessions, 0U);
}

TEST(UpstreamRoom, TheObjectionNamesTheFirstThatIsShort) {
  const config::Config config = with({100});
  const UpstreamRoom have = UpstreamRoom::laid_out(config);
  const auto objection = [&](auto change, const std::string& finishing = "") {
    UpstreamRoom needed = have;
    change(needed);
    return room_objection(needed, have, config, finishing);
  };
  EXPECT_EQ(objection([](UpstreamRoom&) {}), "");
  EXPECT_THAT(objection([](UpstreamRoom& r) { ++r.upstreams; }),
              HasSubstr("reload.upstreams_spare = 8: there is room for 9 upstreams"));
  EXPECT_THAT(objection([](UpstreamRoom& r) { ++r.connections; }, "old"),
              HasSubstr("that upstream old uses until its requests have finished"));
  EXPECT_THAT(objection([](UpstreamRoom& r) { ++r.tls_connections; }),
              HasSubstr("reload.tls_connections_spare = 0"));
  EXPECT_THAT(objection([](UpstreamRoom& r) { ++r.sessions; }), HasSubstr("HTTP/2 connections"));
  EXPECT_THAT(objection([](UpstreamRoom& r) { ++r.region_bytes; }),
              HasSubstr("response_head_bytes_max"));
}

}  // namespace
}  // namespace weir::gateway
