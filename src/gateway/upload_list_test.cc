// Requests whose bodies do not come to an end, beside others that need a place.
#include "upload_list.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using testkit::Answer;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::HeldOrigin;
using testkit::kGet;
using testkit::RunningGateway;
using testkit::with_fixed_limit;

constexpr std::size_t kPiece = 40'000;  // far above the slow rate, whenever somebody looks
constexpr std::size_t kWhole = 50'000;

/// A limit of four with a waiting room, and uploads that have sent most of their bodies.
class UploadListTest : public ::testing::Test {
 protected:
  static config::Config config_for(const std::string& origin) {
    config::Config config = with_fixed_limit(gateway_config({origin}), 4);
    config.server.loops = 1;
    config.buffering.buffer_request_max = 0;  // all bodies are forwarded as they come
    config.admission.normal_wait_max = std::chrono::seconds(30);
    config.trust.peers = {*parse_ip_range("127.0.0.1")};
    return config;
  }
  /// Sends a head and `bytes` of its body, and waits until the gateway has read them.
  Client& upload(std::size_t bytes, const std::string& more = {}) {
    clients_.push_back(std::make_unique<Client>(gateway_.port()));
    Client& client = *clients_.back();

    EXPECT_TRUE(
        client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: " + std::to_string(kWhole) +
                    "\r\n" + more + "\r\n" + std::string(bytes, 'x')));
    ++begun_;
    EXPECT_TRUE(eventually([&] {
      const auto stats = gateway_.stats()["upstreams"]["app"]["classes"];
      return stats["normal"]["admitted"].get<int>() + stats["critical"]["admitted"].get<int>() ==
             begun_;
    }));
    return client;
  }
  /// A GET that holds its place at the origin.
  Client& hold() {
    clients_.push_back(std::make_unique<Client>(gateway_.port()));
    EXPECT_TRUE(clients_.back()->send(kGet));
    ++begun_;
    return *clients_.back();
  }

  HeldOrigin origin_;
  RunningGateway gateway_{config_for(origin_.address())};
  std::vector<std::unique_ptr<Client>> clients_;
  int begun_ = 0;
};

TEST_F(UploadListTest, FillTheWholeLimitWhileNobodyElseWaits) {
  std::vector<Client*> uploads;
  for (int i = 0; i < 4; ++i) uploads.push_back(&upload(kPiece));
  for (Client* one : uploads) EXPECT_TRUE(one->send(std::string(kWhole - kPiece, 'y')));
  ASSERT_TRUE(origin_.wait_for(4));
  origin_.let_go();
  for (Client* one : uploads) EXPECT_EQ(one->read().status, 200);
  EXPECT_TRUE(gateway_.settled());
}

TEST_F(UploadListTest, LeaveHalfOfTheLimitToOthersHoweverFastTheyAre) {
  std::vector<Client*> uploads;
  for (int i = 0; i < 4; ++i) uploads.push_back(&upload(kPiece));
  Client& first = hold();
  ASSERT_TRUE(origin_.wait_for(1));
  Client& second = hold();
  ASSERT_TRUE(origin_.wait_for(2));
  Client& third = hold();  // uploads fill their share now, and no more
  ASSERT_TRUE(eventually([&] { return gateway_.waiting() == 1; }));
  EXPECT_EQ(origin_.held(), 2U);
  for (int i = 0; i < 2; ++i) {
    const Answer ended = uploads[static_cast<std::size_t>(i)]->read();  // the oldest of equal ones
    EXPECT_EQ(ended.status, 408);
    EXPECT_TRUE(ended.has("x-weir-reason: slow_body\r\n"));
  }
  origin_.let_go();
  EXPECT_EQ(first.read().status, 200);
  EXPECT_EQ(second.read().status, 200);
  ASSERT_TRUE(origin_.wait_for(1));
  origin_.let_go();
  EXPECT_EQ(third.read().status, 200);
  for (int i = 2; i < 4; ++i) {
    Client& kept = *uploads[static_cast<std::size_t>(i)];
    ASSERT_TRUE(kept.send(std::string(kWhole - kPiece, 'y')));
    ASSERT_TRUE(origin_.wait_for(1));
    origin_.let_go();
    EXPECT_EQ(kept.read().status, 200);
  }
  EXPECT_TRUE(gateway_.settled());
}

TEST_F(UploadListTest, TheSlowestEndsFirst) {
  std::vector<Client*> uploads;
  for (const std::size_t bytes : {kPiece, kPiece, std::size_t{1}, kPiece}) {
    uploads.push_back(&upload(bytes));
  }
  Client& other = hold();
  ASSERT_TRUE(origin_.wait_for(1));
  EXPECT_EQ(uploads[2]->read().status, 408);
  origin_.let_go();
  EXPECT_EQ(other.read().status, 200);
}

TEST_F(UploadListTest, ACriticalUploadKeepsItsPlace) {
  std::vector<Client*> uploads;
  uploads.push_back(&upload(1, "x-weir-priority: critical\r\n"));
  for (int i = 0; i < 4; ++i) uploads.push_back(&upload(kPiece));
  Client& first = hold();
  ASSERT_TRUE(origin_.wait_for(1));
  Client& second = hold();
  ASSERT_TRUE(origin_.wait_for(2));
  EXPECT_EQ(uploads[1]->read().status, 408);
  EXPECT_EQ(uploads[2]->read().status, 408);
  origin_.let_go();
  EXPECT_EQ(first.read().status, 200);
  EXPECT_EQ(second.read().status, 200);
  ASSERT_TRUE(uploads[0]->send(std::string(kWhole - 1, 'y')));
  ASSERT_TRUE(origin_.wait_for(1));
  origin_.let_go();
  EXPECT_EQ(uploads[0]->read().status, 200);
}

TEST_F(UploadListTest, NoFurtherUploadBeginsBeyondTheShareWhileOthersFindNoPlace) {
  std::vector<Client*> uploads;
  for (int i = 0; i < 4; ++i) uploads.push_back(&upload(kPiece));
  Client& first = hold();
  ASSERT_TRUE(origin_.wait_for(1));
  origin_.let_go();
  EXPECT_EQ(first.read().status, 200);
  // One place is free, three uploads are under way, and the last shortage was just now.
  Client another(gateway_.port());
  const Answer refused = another.ask("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n\r\nhalf");
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("x-weir-reason: overload\r\n"));
  EXPECT_TRUE(refused.has("x-weir-retry-after-ms: "));
}

}  // namespace
}  // namespace weir::gateway
