#include "recorder_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using testkit::Client;
using testkit::echo;
using testkit::gateway_config;
using testkit::Origin;
using testkit::RunningGateway;

void ask(RunningGateway& gateway, const std::string& path, const std::string& fields) {
  Client client(gateway.port());
  EXPECT_GT(client.ask("GET " + path + " HTTP/1.1\r\nhost: t\r\n" + fields + "\r\n").status, 0);
}

policy::Recording recording_in(const std::string& page) {
  auto recording = policy::read_recording(std::as_bytes(std::span(page)));
  EXPECT_TRUE(recording) << recording.error();
  return recording ? std::move(*recording) : policy::Recording{};
}

struct RecorderPages : ::testing::Test {
  Origin origin{echo};
  config::Config config = gateway_config({origin.address()});
};

TEST_F(RecorderPages, ExplainAnswersForARequestThatWasDecided) {
  RunningGateway gateway(config);
  ask(gateway, "/", "x-request-id: the-one\r\n");
  ASSERT_TRUE(gateway.settled());
  const json page = json::parse(gateway.page("/explain?id=the-one"));
  EXPECT_EQ(page["verdict"], "admitted");
  EXPECT_EQ(page["outcome"], "ok");
  EXPECT_EQ(page["request"]["upstream"], "app");
  EXPECT_EQ(page["request"]["class"], "normal");
  EXPECT_EQ(page["in_flight"], 1) << "itself";
  EXPECT_GT(page["limit"], 0);
  EXPECT_GE(page["age_ms"], 0);
}

TEST_F(RecorderPages, ARefusalIsExplainedByTheNumbersOfThatMoment) {
  config.routes[0].path_prefix = "/api";
  config.routes[0].max_body = 1;
  RunningGateway gateway(config);
  ask(gateway, "/elsewhere", "x-request-id: lost\r\n");
  ask(gateway, "/api", "x-request-id: long\r\ncontent-length: 5\r\n");
  ASSERT_TRUE(gateway.settled());
  const json lost = json::parse(gateway.page("/explain?id=lost"));
  EXPECT_EQ(lost["verdict"], "refused");
  EXPECT_EQ(lost["reason"], "no_route");
  EXPECT_EQ(lost["status"], 404);
  EXPECT_TRUE(lost["request"]["upstream"].is_null());
  const json page = json::parse(gateway.page("/explain?id=long"));
  EXPECT_EQ(page["reason"], "body_too_large");
  EXPECT_EQ(page["request"]["upstream"], "app");
}

TEST_F(RecorderPages, AnUnknownIdIsToldHowFarBackTheRecorderReaches) {
  RunningGateway gateway(config);
  EXPECT_THAT(gateway.page("/explain?id=none"), HasSubstr("the recorder is empty"));
  Client(gateway.port()).get("/");
  ASSERT_TRUE(gateway.settled());
  EXPECT_THAT(gateway.page("/explain?id=none"), HasSubstr("last 1 decisions and reaches 0."));
  EXPECT_THAT(gateway.page("/explain?id=none&class=low"), HasSubstr("without other parameters"));
  EXPECT_THAT(gateway.page("/explain?class=low&id=none"), HasSubstr("without other parameters"));
}

TEST_F(RecorderPages, TheRecordingHasNoNameOfARequest) {
  RunningGateway gateway(config);
  ask(gateway, "/secret-path", "x-request-id: secret-id\r\nx-api-key: secret-key\r\n");
  ASSERT_TRUE(gateway.settled());
  const std::string page = gateway.page("/recording");
  EXPECT_THAT(page, Not(HasSubstr("secret")));
  EXPECT_THAT(page, Not(HasSubstr(origin.address())));
  const policy::Recording first = recording_in(page);
  ASSERT_EQ(first.decisions.size(), 1U);
  EXPECT_EQ(first.decisions[0].end, policy::DecisionEnd::kOk);
  EXPECT_NE(first.decisions[0].actor, 0U);
  ASSERT_EQ(first.header.scopes.size(), 1U);
  EXPECT_EQ(first.header.scopes[0].name, "app");
  EXPECT_EQ(first.header.reasons[0], "admitted");
  EXPECT_THAT(first.header.config, HasSubstr("[admission.limit]"));
  EXPECT_FALSE(first.cut);
  const policy::Recording second = recording_in(gateway.page("/recording?seconds=60"));
  ASSERT_EQ(second.decisions.size(), 1U);
  EXPECT_NE(second.decisions[0].actor, first.decisions[0].actor) << "another key";
  EXPECT_NE(second.decisions[0].request, first.decisions[0].request);
  EXPECT_THAT(gateway.page("/recording?seconds=0"), HasSubstr("seconds: how far back"));
  EXPECT_THAT(gateway.page("/recording?minutes=1"), HasSubstr("seconds: how far back"));
}

}  // namespace
}  // namespace weir::gateway
