// Deadlines that callers set, and transfers that are slow or silent.
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/experimental/gateway/gateway.h"

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testkit::Answer;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::HeldOrigin;
using testkit::kGet;
using testkit::RawOrigin;
using testkit::RunningGateway;
using testkit::with_fixed_limit;

void let_pass(Duration time) {
  const TimePoint until = io::monotonic_now() + time;
  ASSERT_TRUE(eventually([&] { return io::monotonic_now() >= until; }));
}

config::Config trusting(config::Config config) {
  config.trust.peers = {*parse_ip_range("127.0.0.1")};
  return config;
}

/// A gateway that logs every request, and the log line of the one request it served.
class Logged {
 public:
  explicit Logged(config::Config config) : gateway_(with_log(std::move(config), path())) {}
  ~Logged() { std::filesystem::remove(path()); }
  Logged(const Logged&) = delete;
  Logged& operator=(const Logged&) = delete;
  [[nodiscard]] std::uint16_t port() const { return gateway_.port(); }
  [[nodiscard]] nlohmann::json line() const {
    std::string text;
    EXPECT_TRUE(eventually([&] {
      std::ifstream file(path());
      return static_cast<bool>(std::getline(file, text));
    }));
    return nlohmann::json::parse(text, nullptr, false);
  }

 private:
  static std::string path() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    return ::testing::TempDir() + "weir-" + info->name() + std::to_string(::getpid()) + ".log";
  }
  static config::Config with_log(config::Config config, const std::string& file) {
    config.admin.access_log = AccessLog::kAll;
    config.admin.access_log_file = file;
    return config;
  }
  RunningGateway gateway_;
};

TEST(GatewayDeadline, WhatIsPassedOnIsWhatWaitingLeft) {
  std::promise<void> answer_first;
  std::string second_head;
  int requests = 0;
  RawOrigin origin([&](int fd, const std::string& head) {
    if (++requests == 1) answer_first.get_future().wait();
    if (requests == 2) second_head = head;
    RawOrigin::say(fd, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
  });
  config::Config config = trusting(with_fixed_limit(gateway_config({origin.address()}), 1));
  config.admission.normal_wait_max = std::chrono::seconds(30);
  RunningGateway gateway(config);
  Client first(gateway.port());
  ASSERT_TRUE(first.send(kGet));
  ASSERT_TRUE(eventually([&] { return origin.served() == 1; }));
  Client second(gateway.port());
  ASSERT_TRUE(second.send("GET / HTTP/1.1\r\nhost: t\r\nx-weir-deadline-ms: 60000\r\n\r\n"));
  ASSERT_TRUE(eventually([&] { return gateway.waiting() == 1; }));
  let_pass(milliseconds(50));
  answer_first.set_value();
  EXPECT_EQ(first.read().status, 200);
  EXPECT_EQ(second.read().status, 200);
  const std::size_t at = second_head.find("x-weir-deadline-ms:");
  ASSERT_NE(at, std::string::npos);
  const int left = std::stoi(second_head.substr(at + 19));
  EXPECT_LE(left, 60000 - 50);
  EXPECT_GT(left, 0);
}

TEST(GatewayDeadline, ThoseThatAPeerSetsTooShortDoNotShrinkTheLimit) {
  HeldOrigin origin;
  config::Config config = trusting(gateway_config({origin.address()}));
  config.admission.limit.policy = LimitKind::kAimd;
  config.admission.limit.window_duration = milliseconds(10);
  RunningGateway gateway(config);
  const auto limit = [&] { return gateway.stats()["upstreams"]["app"]["limit"].get<int>(); };
  const int before = limit();
  for (int i = 0; i < 20; ++i) {
    const Answer late =
        Client(gateway.port()).ask("GET / HTTP/1.1\r\nhost: t\r\nx-weir-deadline-ms: 5\r\n\r\n");
    EXPECT_EQ(late.status, 504);
    EXPECT_TRUE(late.has("x-weir-reason: deadline\r\n"));
  }
  let_pass(milliseconds(20));
  EXPECT_GE(limit(), before);
  EXPECT_THAT(gateway.page("/metrics"), HasSubstr("outcome=\"overload\"} 0\n"));
}

TEST(GatewayTimeout, AnUploadAndADownloadThatMoveAreNotCut) {
  // Each timeout is shorter than the transfer.
  constexpr Duration kEach = milliseconds(500);
  constexpr std::size_t kPieces = 25;
  RawOrigin origin([](int fd, const std::string& head) {
    std::string body = head.substr(head.find("\r\n\r\n") + 4);
    while (body.size() < kPieces) {
      char block[64];
      const ssize_t got = ::recv(fd, block, sizeof block, 0);
      if (got <= 0) return;
      body.append(block, static_cast<std::size_t>(got));
    }
    RawOrigin::say(fd, "HTTP/1.1 200 OK\r\ncontent-length: 25\r\nconnection: close\r\n\r\n");
    for (std::size_t i = 0; i < kPieces; ++i) {
      let_pass(milliseconds(30));
      RawOrigin::say(fd, "y");
    }
  });
  config::Config config = gateway_config({origin.address()});
  config.server.body_timeout = config.server.write_timeout = kEach;
  config.server.body_min_rate = config.server.write_min_rate = 0;  // any byte is progress
  config.server.backpressure_timeout = kEach;
  config.upstreams[0].first_byte_timeout = config.upstreams[0].inactivity_timeout = kEach;
  Logged gateway(config);
  Client client(gateway.port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 25\r\n\r\n"));
  for (std::size_t i = 0; i < kPieces; ++i) {
    let_pass(milliseconds(30));
    ASSERT_TRUE(client.send("x"));
  }
  const Answer answer = client.read();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, std::string(kPieces, 'y'));
  const nlohmann::json line = gateway.line();
  EXPECT_EQ(line["status"], 200);
  EXPECT_FALSE(line.contains("slow"));
  EXPECT_GT(line["ms"], 1400);
}

TEST(GatewayTimeout, AClientThatStopsSendingGets408AndIsNamed) {
  HeldOrigin origin;
  config::Config config = gateway_config({origin.address()});
  config.server.body_timeout = milliseconds(30);
  Logged gateway(config);
  const Answer answer =
      Client(gateway.port()).ask("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n\r\nhalf");
  EXPECT_EQ(answer.status, 408);
  const nlohmann::json line = gateway.line();
  EXPECT_EQ(line["status"], 408);
  EXPECT_EQ(line["slow"], "client");
  EXPECT_EQ(line["aborted_by"], "client");
}

TEST(GatewayTimeout, AnUpstreamThatSaysNothingIsNamed) {
  HeldOrigin origin;
  config::Config config = gateway_config({origin.address()});
  config.upstreams[0].first_byte_timeout = milliseconds(30);
  Logged gateway(config);
  EXPECT_EQ(Client(gateway.port()).get("/").status, 504);
  const nlohmann::json line = gateway.line();
  EXPECT_EQ(line["reason"], "first_byte_timeout");
  EXPECT_EQ(line["slow"], "upstream");
}

TEST(GatewayTimeout, AnUpstreamThatStopsInItsBodyIsNamed) {
  std::promise<void> over;
  RawOrigin origin([&](int fd, const std::string&) {
    RawOrigin::say(fd, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf");
    over.get_future().wait();
  });
  config::Config config = gateway_config({origin.address()});
  config.upstreams[0].inactivity_timeout = milliseconds(30);
  Logged gateway(config);
  EXPECT_EQ(Client(gateway.port()).get("/").body, "half");
  over.set_value();
  const nlohmann::json line = gateway.line();
  EXPECT_EQ(line["reason"], "stalled");
  EXPECT_EQ(line["slow"], "upstream");
  EXPECT_EQ(line["aborted_by"], "upstream");
}

TEST(GatewayTimeout, TheRoutesOverallTimeoutNamesTheSlowSide) {
  HeldOrigin origin;
  config::Config config = gateway_config({origin.address()});
  config.routes[0].overall_timeout = milliseconds(50);
  for (const bool upload : {false, true}) {
    Logged gateway(config);
    const Answer answer =
        Client(gateway.port())
            .ask(upload ? "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n\r\n" : kGet);
    EXPECT_EQ(answer.status, 504);
    EXPECT_TRUE(answer.has("x-weir-reason: overall_timeout\r\n"));
    EXPECT_EQ(gateway.line()["slow"], upload ? "client" : "upstream");
  }
}

}  // namespace
}  // namespace weir::gateway
