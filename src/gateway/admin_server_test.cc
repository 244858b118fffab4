#include "admin_server.h"

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/experimental/config/print.h"

#include "gateway_testing.h"
#include "live/live_json.h"

namespace weir::gateway {
namespace {

TEST(QueryValue, FindsAndDecodes) {
  EXPECT_EQ(query_value("a=1&b=2", "b"), "2");
  EXPECT_EQ(query_value("a=x%20y+z%2F", "a"), "x y z/");
  EXPECT_EQ(query_value("a=%zz%2", "a"), "%zz%2");
  EXPECT_EQ(query_value("a=1", "c", "none"), "none");
  EXPECT_EQ(query_value("", "a"), "");
  EXPECT_EQ(query_value("a&b=1", "a", "x"), "");
  EXPECT_EQ(query_value("ab=1", "a", "x"), "x");
}

TEST(AdminServer, SendsPagesLargerThanItsBuffers) {
  config::Config config;
  config.admin.listen = *parse_net_address("127.0.0.1:0");
  const std::string large(3 * 1024 * 1024, 'p');
  AdminServer server(config, {.pages = [&](const AdminRequest& request) {
                       EXPECT_EQ(request.method, "GET");
                       EXPECT_EQ(request.path, "/large");
                       EXPECT_EQ(request.query, "a=b");
                       return AdminPage{.status = 200, .content_type = "text/plain", .body = large};
                     }});
  ASSERT_TRUE(server.start().has_value());
  const std::string address = server.address();
  std::uint16_t port = 0;
  std::from_chars(address.data() + address.rfind(':') + 1, address.data() + address.size(), port);
  testkit::Client client(port);
  EXPECT_EQ(client.get("/large?a=b").body, large);
  EXPECT_EQ(client.get("/large?a=b").body, large);
  server.stop();
}

TEST(AdminServer, AMessageMayHoldTheTextOfThousandsOfEndpoints) {
  config::Config config;
  config.upstreams.resize(1);
  config.upstreams[0].name = "app";
  for (int i = 0; i < 5000; ++i) {
    config.upstreams[0].endpoints.push_back(*upstream::parse_source(
        "replica-" + std::to_string(i) + ".example:443 weight=50 zone=eu-1"));
  }
  constexpr std::size_t kBeside = 64UL * 1024;
  const std::string text = json_text({{"text", config::print_config(config)}});
  EXPECT_LE(text.size() + kBeside, admin_message_bytes_max(config));
}

TEST(AdminServer, PagesThatNobodyReadsDoNotAddUp) {
  config::Config config;
  config.admin.listen = *parse_net_address("127.0.0.1:0");
  const std::uint64_t most = admin_pages_bytes_max(config);
  const std::string large(most / 3, 'p');
  AdminServer server(config, {.pages = [&](const AdminRequest& request) {
                       return AdminPage{.status = 200,
                                        .content_type = "text/plain",
                                        .body = request.path == "/" ? "index" : large};
                     }});
  ASSERT_TRUE(server.start().has_value());
  const std::uint16_t port = parse_net_address(server.address())->port;
  std::vector<std::unique_ptr<testkit::Client>> deaf;
  for (int i = 0; i < 3; ++i) {
    deaf.push_back(std::make_unique<testkit::Client>(port, 4096));
    deaf.back()->send("GET /large HTTP/1.1\r\nhost: t\r\n\r\n");
    EXPECT_EQ(deaf.back()->take(12), "HTTP/1.1 200");
  }
  const auto ask = [port](std::string_view path) { return testkit::Client(port).get(path); };
  EXPECT_EQ(ask("/large").status, 503);
  EXPECT_EQ(ask("/").body, "index") << "whoever asks whether it lives is always answered";
  deaf.clear();
  while (ask("/large").status == 503) std::this_thread::yield();
  EXPECT_EQ(ask("/large").body, large);
  server.stop();
}

TEST(AdminServer, ProbesAreAnsweredHoweverManyReadersDoNotRead) {
  config::Config config;
  config.admin.listen = *parse_net_address("127.0.0.1:0");
  const std::string large(admin_pages_bytes_max(config) / 8, 'p');
  AdminServer server(config, {.pages = [&](const AdminRequest& request) {
                       return AdminPage{.status = 200,
                                        .content_type = "text/plain",
                                        .body = request.path == "/healthz" ? "ok" : large};
                     }});
  ASSERT_TRUE(server.start().has_value());
  const std::uint16_t port = parse_net_address(server.address())->port;
  const auto ask = [port](std::string_view path) { return testkit::Client(port).get(path); };
  for (const std::string_view path : {"/stats", "/metrics"}) {
    std::vector<std::unique_ptr<testkit::Client>> deaf;
    for (int i = 0; i < 64; ++i) {  // as many as there are connections
      deaf.push_back(std::make_unique<testkit::Client>(port, 4096));
      deaf.back()->send("GET " + std::string(path) + " HTTP/1.1\r\nhost: t\r\n\r\n");
      const auto answered = [&] { return ask("/healthz").body == "ok"; };
      // With every place taken it may be refused until a reader has been silent long enough.
      const bool full = i == 63;
      EXPECT_TRUE(full ? testkit::eventually(answered) : answered()) << path << " " << i;
    }
    // Those that do not read are cut off, and the pages are there again.
    EXPECT_TRUE(testkit::eventually([&] { return ask("/metrics").body == large; })) << path;
    EXPECT_TRUE(testkit::eventually([&] { return ask("/stats").body == large; })) << path;
  }
  server.stop();
}

TEST(AdminServer, ItsPagesGrowWithTheConfiguration) {
  config::Config config;
  const std::uint64_t before = admin_pages_bytes_max(config);
  config.routes.resize(100);
  const std::uint64_t with_routes = admin_pages_bytes_max(config);
  EXPECT_GE(with_routes, before + 100 * 1024U);
  config.upstreams.resize(1);
  const std::uint64_t with_upstream = admin_pages_bytes_max(config);
  EXPECT_GE(with_upstream, with_routes + 10 * 1024U);
  config.upstreams[0].endpoints.resize(20'000);
  EXPECT_GE(admin_pages_bytes_max(config), with_upstream + 20'000 * 270U);
}

TEST(AdminServer, ItsBoundsAreValid) {
  config::Config config;
  EXPECT_EQ(admin_server_config(config).validate(), ConfigErrors{});
}

}  // namespace
}  // namespace weir::gateway
