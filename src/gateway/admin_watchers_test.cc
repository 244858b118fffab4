#include "admin_watchers.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "admin_server.h"
#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;
using testkit::Client;
using testkit::eventually;

/// What all feeds of a test counted.
struct Tally {
  std::atomic<int> alive{0};
  std::atomic<int> messages{0};
  std::atomic<int> most_of_one{0};
};

/// Numbers its messages and fills them up to `bytes`.
class NumberedFeed final : public AdminFeed {
 public:
  NumberedFeed(Tally& tally, std::size_t bytes) : tally_(tally), bytes_(bytes) { ++tally_.alive; }
  ~NumberedFeed() override { --tally_.alive; }
  std::string next() override {
    std::string text = "message " + std::to_string(++made_) + "\n";
    text.resize(std::max(text.size(), bytes_), '.');
    ++tally_.messages;
    if (made_ > tally_.most_of_one) tally_.most_of_one = made_;
    return text;
  }

 private:
  Tally& tally_;
  const std::size_t bytes_;
  int made_ = 0;
};

/// An admin endpoint whose /live sends messages of this size every five milliseconds.
struct WatchedServer {
  explicit WatchedServer(std::size_t bytes, Duration interval = std::chrono::milliseconds(5))
      : server(config(), {.pages =
                              [this, bytes](const AdminRequest& request) {
                                AdminPage page{.content_type = "text/plain", .body = "page"};
                                if (request.path != "/live") return page;
                                page.body.clear();
                                page.feed = std::make_unique<NumberedFeed>(tally, bytes);
                                return page;
                              },
                          .every_second = [this](TimePoint) { ++seconds; },
                          .interval = interval,
                          .say =
                              [this](const std::string& line) {
                                said = line;
                                ++said_lines;
                              }}) {
    EXPECT_TRUE(server.start().has_value());
    port = parse_net_address(server.address())->port;
  }
  ~WatchedServer() { server.stop(); }
  WatchedServer(const WatchedServer&) = delete;
  WatchedServer& operator=(const WatchedServer&) = delete;

  static config::Config config() {
    config::Config config;
    config.admin.listen = *parse_net_address("127.0.0.1:0");
    return config;
  }
  [[nodiscard]] std::unique_ptr<Client> watcher(int receive_buffer = 0) const {
    auto client = std::make_unique<Client>(port, receive_buffer);
    client->send("GET /live HTTP/1.1\r\nhost: t\r\n\r\n");
    return client;
  }
  [[nodiscard]] std::string ask(std::string_view path) const { return Client(port).get(path).body; }

  Tally tally;
  std::atomic<int> seconds{0};
  std::string said;  // of the server's thread, until said_lines says that it is there
  std::atomic<int> said_lines{0};
  AdminServer server;
  std::uint16_t port = 0;
};

bool reads_until(Client& client, std::string_view text) {
  std::string seen;
  while (seen.find(text) == std::string::npos) {
    const std::string one = client.take(1);
    if (one.empty()) return false;
    seen += one;
  }
  return true;
}

TEST(AdminWatchers, AReaderGetsOneMessageAtOnceAndOnePerInterval) {
  WatchedServer admin(0);
  const std::unique_ptr<Client> client = admin.watcher();
  EXPECT_TRUE(reads_until(*client, "message 1\n"));
  EXPECT_TRUE(reads_until(*client, "message 20\n"));
  EXPECT_GE(admin.seconds, 19);
  client->close();
  EXPECT_TRUE(eventually([&] { return admin.tally.alive == 0; })) << "its feed ends with it";
}

TEST(AdminWatchers, TheNinthIsRefusedAndFindsAPlaceWhenOneLeaves) {
  WatchedServer admin(0);
  std::vector<std::unique_ptr<Client>> all;
  for (std::size_t i = 0; i < AdminWatchers::kMost; ++i) {
    all.push_back(admin.watcher());
    ASSERT_TRUE(reads_until(*all.back(), "message 1\n"));
  }
  const testkit::Answer refused = Client(admin.port).get("/live");
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("retry-after: ")) << refused.head;
  EXPECT_THAT(refused.body, HasSubstr("8 watchers are connected"));
  EXPECT_EQ(admin.tally.alive, 8);
  all.pop_back();
  EXPECT_TRUE(eventually([&] { return reads_until(*admin.watcher(), "message 1\n"); }));
}

TEST(AdminWatchers, WhoeverDoesNotReadIsCutAfterTwoMessages) {
  constexpr std::size_t kBytes = 190UL * 1024;  // more than the kernel takes for both sides
  WatchedServer admin(kBytes, std::chrono::milliseconds(20));
  std::vector<std::unique_ptr<Client>> deaf;
  for (int i = 0; i < 5; ++i) deaf.push_back(admin.watcher(4096));
  EXPECT_TRUE(eventually([&] { return admin.tally.messages >= 10; }));
  EXPECT_TRUE(eventually([&] { return admin.tally.alive == 0; }));
  EXPECT_EQ(admin.tally.most_of_one, 2) << "a third message would have had to be buffered";
}

TEST(AdminWatchers, HealthAndMetricsAreAnsweredBesideAHundredThatNeverRead) {
  WatchedServer admin(190UL * 1024);
  std::vector<std::unique_ptr<Client>> deaf;
  for (int i = 0; i < 100; ++i) {
    deaf.push_back(admin.watcher(4096));
    // With every connection in use, a place is free when a watcher is cut.
    EXPECT_TRUE(eventually([&] { return admin.ask("/healthz") == "page"; })) << i;
    EXPECT_TRUE(eventually([&] { return admin.ask("/metrics") == "page"; })) << i;
  }
  EXPECT_LE(admin.tally.most_of_one, 2);
}

TEST(AdminWatchers, AMessageAboveTheBoundEndsTheWatcherAndIsSaidOnce) {
  const std::uint64_t most = admin_message_bytes_max(WatchedServer::config());
  WatchedServer admin(most + 1);
  for (int i = 1; i <= 3; ++i) {
    const std::unique_ptr<Client> client = admin.watcher();
    EXPECT_TRUE(eventually([&] { return admin.tally.messages == i; }));
    EXPECT_TRUE(eventually([&] { return admin.tally.alive == 0; }));
  }
  admin.server.stop();
  EXPECT_EQ(admin.said_lines, 1);
  EXPECT_THAT(admin.said, HasSubstr(std::to_string(most + 1) + " bytes"));
  EXPECT_THAT(admin.said, HasSubstr("memory for " + std::to_string(most)));
}

TEST(AdminWatchers, HeadIsAnsweredWithoutAStream) {
  WatchedServer admin(0);
  Client client(admin.port);
  ASSERT_TRUE(client.send("HEAD /live HTTP/1.1\r\nhost: t\r\n\r\n"));
  EXPECT_EQ(client.read(true).status, 200);
  EXPECT_TRUE(eventually([&] { return admin.tally.alive == 0; }));
}

}  // namespace
}  // namespace weir::gateway
