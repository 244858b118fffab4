// The stream of a running gateway, as a watcher reads it: hello, then a tick per second with the
// member of its view.
#include "live/live_feed.h"

#include <chrono>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testkit::Client;
using testkit::gateway_config;
using testkit::Origin;
using testkit::RunningGateway;

/// Reads messages of /live one by one; HTTP/1.0, so that they are not in chunks.
class Watcher {
 public:
  struct Message {
    std::string event;
    std::uint64_t id = 0;
    json data;
  };

  explicit Watcher(const RunningGateway& gateway, std::string_view query = "",
                   std::string_view fields = "")
      : client_(gateway.admin_port()) {
    EXPECT_TRUE(client_.send("GET /live?" + std::string(query) + " HTTP/1.0\r\nhost: t\r\n" +
                             std::string(fields) + "\r\n"));
    text_until("\r\n\r\n");
  }

  Message next() {
    const std::string text = text_until("\n\n");
    const std::size_t event = text.find("event: ");
    const std::size_t id = text.find("\nid: ");
    const std::size_t data = text.find("\ndata: ");
    if (event == std::string::npos || id == std::string::npos || data == std::string::npos) {
      ADD_FAILURE() << "not a message: " << text;
      return {};
    }
    return {.event = text.substr(event + 7, id - event - 7),
            .id = std::stoull(text.substr(id + 5, data - id - 5)),
            .data = json::parse(text.substr(data + 7))};
  }
  /// The first tick; hello is left out.
  json tick() {
    next();
    return next().data;
  }
  /// The first tick, of at most six, that is as wanted.
  template <class Wanted>
  json tick_with(Wanted wanted) {
    for (int i = 0; i < 7; ++i) {
      Message message = next();
      if (message.event == "tick" && wanted(message.data)) return message.data;
    }
    ADD_FAILURE() << "no such tick";
    return {};
  }

 private:
  std::string text_until(std::string_view end) {
    std::string text;
    while (!text.ends_with(end)) {
      const std::string one = client_.take(1);
      if (one.empty()) {
        ADD_FAILURE() << "the stream ended";
        return text;
      }
      text += one;
    }
    return text;
  }
  Client client_;
};

struct LiveFeedTest : ::testing::Test {
  Origin origin{testkit::echo};
  config::Config config = gateway_config({origin.address()});
};

TEST_F(LiveFeedTest, HelloSaysWhatTheGatewayIsAndTheTickWhatItDoes) {
  RunningGateway gateway(config);
  Watcher watcher(gateway);
  const Watcher::Message hello = watcher.next();
  EXPECT_EQ(hello.event, "hello");
  EXPECT_EQ(hello.data["upstream"], "app");
  EXPECT_EQ(hello.data["upstreams"], json::array({"app"}));
  EXPECT_EQ(hello.data["classes"], json({"critical", "high", "normal", "low"}));
  EXPECT_EQ(hello.data["actions"], "off");
  EXPECT_EQ(hello.data["interval_ms"], 1000);
  EXPECT_EQ(hello.data["history"]["columns"].size(), 11U);
  const Watcher::Message tick = watcher.next();
  EXPECT_EQ(tick.event, "tick");
  EXPECT_EQ(tick.id, hello.id);
  EXPECT_EQ(tick.data["state"], "HEALTHY");
  EXPECT_EQ(tick.data["verdict"]["cause"], "fine");
  EXPECT_EQ(tick.data["row"].size(), 11U);
  EXPECT_EQ(tick.data["draining"], false);
  const json& upstream = tick.data["upstreams"][0];
  EXPECT_EQ(upstream["name"], "app");
  EXPECT_EQ(upstream["limit"], config.admission.limit.initial_limit);
  EXPECT_EQ(upstream["replicas"], 1);
  EXPECT_EQ(upstream["replicas_open"], 1);
  EXPECT_GT(tick.data["memory"]["ceiling"], 1 << 20);
  const Watcher::Message later = watcher.next();
  EXPECT_EQ(later.id, tick.id + 1);
  EXPECT_GE(later.data["now"], tick.data["now"]);
}

TEST_F(LiveFeedTest, RequestsOfASecondAreItsRates) {
  RunningGateway gateway(config);
  Watcher watcher(gateway);
  watcher.next();
  watcher.next();
  Client client(gateway.port());
  for (int i = 0; i < 20; ++i) ASSERT_EQ(client.get("/").status, 200);
  double admitted = 0;
  const json tick = watcher.tick_with([&](const json& data) {
    admitted += data["upstreams"][0]["admitted"].get<double>();
    return admitted > 15;  // twenty in about one second, or in two
  });
  EXPECT_LT(admitted, 30);
  EXPECT_EQ(tick["totals"]["received"], 20);
  EXPECT_EQ(tick["totals"]["answered"], 20);
}

TEST_F(LiveFeedTest, HistoryComesWithHelloAndContinuesWhereAWatcherStopped) {
  RunningGateway gateway(config);
  Watcher first(gateway);
  first.next();
  Watcher::Message last;
  for (int i = 0; i < 3; ++i) last = first.next();
  Watcher all(gateway);
  const Watcher::Message whole = all.next();
  EXPECT_GE(whole.data["history"]["rows"].size(), 2U) << "the row of this second is in the tick";
  EXPECT_EQ(whole.data["history"]["from"].get<std::int64_t>() +
                static_cast<std::int64_t>(whole.data["history"]["rows"].size()),
            whole.data["now"].get<std::int64_t>());
  Watcher again(gateway, "", "last-event-id: " + std::to_string(last.id - 1) + "\r\n");
  const Watcher::Message rest = again.next();
  EXPECT_EQ(rest.data["history"]["rows"].size(), rest.id - (last.id - 1) - 1);
  Watcher stranger(gateway, "", "last-event-id: 999999\r\n");
  EXPECT_GE(stranger.next().data["history"]["rows"].size(), 2U) << "an id of another process";
}

TEST_F(LiveFeedTest, RefusalsAreShownByReasonAndClassAndOneByOne) {
  config.routes[0].priority = Priority::kLow;
  config = testkit::with_fixed_limit(config, 1);
  testkit::HeldOrigin held;
  config.upstreams[0].endpoints = {*upstream::parse_source(held.address())};
  RunningGateway gateway(config);
  Watcher watcher(gateway, "view=refusals");
  watcher.next();
  watcher.next();
  Client holder(gateway.port());
  ASSERT_TRUE(held.hold(holder));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Client(gateway.port()).get("/").status, 503);
  const json tick = watcher.tick_with(
      [](const json& data) { return data["refusals"]["matrix"].contains("overload"); });
  const json& refusals = tick["refusals"];
  EXPECT_GT(refusals["matrix"]["overload"]["low"].get<double>(), 0);
  EXPECT_EQ(refusals["matrix"]["overload"]["high"], 0);
  ASSERT_GE(refusals["recent"].size(), 1U);
  EXPECT_EQ(refusals["recent"][0]["class"], "low");
  EXPECT_EQ(refusals["recent"][0]["reason"], "overload");
  EXPECT_EQ(refusals["recent"][0]["limit"], 1);
  const std::string explained =
      gateway.page("/explain?id=" + refusals["recent"][0]["id"].get<std::string>());
  EXPECT_THAT(explained, HasSubstr("overload")) << "the name leads to the decision";
  held.let_go();
  ASSERT_EQ(holder.read().status, 200);
}

TEST_F(LiveFeedTest, EachViewBringsItsMember) {
  RunningGateway gateway(config);
  ASSERT_EQ(Client(gateway.port()).get("/").status, 200);
  const json replicas = Watcher(gateway, "view=replicas").tick()["replicas"];
  EXPECT_EQ(replicas["total"], 1);
  EXPECT_EQ(replicas["rows"][0][1], origin.address());
  const json limit = Watcher(gateway, "view=limit").tick()["limit"];
  EXPECT_TRUE(limit["knee"].is_array());
  EXPECT_TRUE(limit["demand"].is_number());
  Watcher memory(gateway, "view=memory");
  const json first = memory.tick()["memory"];
  std::uint64_t sum = 0;
  for (const json& addend : first["addends"]) sum += addend["bytes"].get<std::uint64_t>();
  EXPECT_EQ(sum, first["ceiling"]) << "the stack is the ceiling";
  EXPECT_FALSE(first["pools"].empty());
  EXPECT_GT(first["cgroup"]["mine"], 1 << 20);
  EXPECT_FALSE(memory.next().data["memory"].contains("addends")) << "they do not change";
  const json none = Watcher(gateway, "view=none").tick();
  for (const char* member : {"refusals", "limit", "replicas", "config"}) {
    EXPECT_FALSE(none.contains(member)) << member;
  }
}

TEST_F(LiveFeedTest, TheConfigurationIsSentAtFirstAndAfterAReload) {
  RunningGateway gateway(config);
  Watcher watcher(gateway, "view=config");
  const json first = watcher.tick()["config"];
  EXPECT_THAT(first["text"].get<std::string>(), HasSubstr(origin.address()));
  EXPECT_TRUE(first["changed_since_start"].empty());
  config::Config next = config;
  next.admission.max_concurrent = 77;
  ASSERT_TRUE(gateway->reload(next).ok());
  const json tick = watcher.tick_with([](const json& data) { return data.contains("config"); });
  EXPECT_THAT(tick["config"]["changed_since_start"], Contains("admission.max_concurrent"));
  EXPECT_THAT(tick["events"][0]["text"].get<std::string>(), HasSubstr("new configuration"));
}

TEST_F(LiveFeedTest, AnEndpointThatCannotBeReachedIsAnEventAndAVerdict) {
  config.upstreams[0].endpoints = {*upstream::parse_source(testkit::unused_address())};
  config.upstreams[0].hold_max = Duration(0);
  RunningGateway gateway(config);
  Watcher watcher(gateway);
  watcher.next();
  watcher.next();
  std::string texts;
  const json tick = watcher.tick_with([&](const json& data) {
    static_cast<void>(Client(gateway.port()).get("/"));
    for (const json& event : data["events"]) texts += event["text"].get<std::string>() + "\n";
    return data["verdict"]["cause"] == "unreachable";
  });
  EXPECT_THAT(texts, ContainsRegex("127.0.0.1:[0-9]+ available to (ejected|returning)"));
  EXPECT_THAT(tick["verdict"]["next_step"].get<std::string>(), ::testing::Not(""));
  const json page = json::parse(gateway.page("/diagnose"));
  EXPECT_EQ(page["verdicts"][0]["cause"], "unreachable");
  EXPECT_EQ(page["verdicts"][0]["upstream"], "app");
  EXPECT_THAT(gateway.page("/metrics"),
              HasSubstr("weir_diagnosis{upstream=\"app\",cause=\"unreachable\"} 1\n"));
}

TEST_F(LiveFeedTest, AReloadedUpstreamIsShownFromItsFirstSecond) {
  RunningGateway gateway(config);
  config::Config next = config;
  next.upstreams.push_back(next.upstreams[0]);
  next.upstreams[1].name = "reports";
  next.routes.insert(next.routes.begin(), next.routes[0]);
  next.routes[0].path_prefix = "/reports";
  next.routes[0].upstream = "reports";
  Watcher watcher(gateway);
  ASSERT_TRUE(gateway->reload(next).ok());
  const json tick =
      watcher.tick_with([](const json& data) { return data["upstreams"].size() == 2; });
  EXPECT_EQ(tick["upstreams"][1]["name"], "reports");
  EXPECT_EQ(Watcher(gateway, "upstream=reports").next().data["upstream"], "reports");
  ASSERT_TRUE(gateway->reload(config).ok());
  watcher.tick_with([](const json& data) { return data["upstreams"].size() == 1; });
}

TEST_F(LiveFeedTest, WrongParametersAreNamed) {
  RunningGateway gateway(config);
  const auto wrong = [&](std::string_view path) {
    const testkit::Answer answer = Client(gateway.admin_port()).get(path);
    EXPECT_EQ(answer.status, 400) << path;
    return answer.body;
  };
  EXPECT_THAT(wrong("/live?view=everything"), HasSubstr("view"));
  EXPECT_THAT(wrong("/live?upstream=nowhere"), HasSubstr("upstream: one of app"));
  EXPECT_THAT(wrong("/diagnose?upstream=nowhere"), HasSubstr("upstream: one of app"));
  EXPECT_THAT(wrong("/live?rows=0"), HasSubstr("rows"));
}

}  // namespace
}  // namespace weir::gateway
