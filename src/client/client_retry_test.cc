#include <atomic>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "client_testing.h"

// What follows an answer that reports overload. The bounds of the back-off are in
// policy/overload_retry_test.cc; here is when requests reach a server.

namespace weir::inline v0::inline client::testkit {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Fields = std::vector<std::pair<std::string, std::string>>;

/// Refuses the first `times` requests.
struct Refusing {
  std::uint16_t status = 503;
  int times = 1;
  Fields fields{};
  std::atomic<int> arrived{0};

  Replica::Decide decide() {
    return [this](const Asked&) {
      if (arrived.fetch_add(1) >= times) return Reply{};
      return Reply{.status = status, .body = "later", .fields = fields};
    };
  }
};

TEST(ClientRetry, AnOverloadedAnswerIsFollowedByAnotherAttempt) {
  for (const std::uint16_t status : {std::uint16_t{503}, std::uint16_t{429}}) {
    Refusing refusing{.status = status};
    const Replica replica(refusing.decide());
    Client client = client_of(config_for({&replica}));
    const Client::Answer answer = client.get("/");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->attempts, 2U);
    const std::vector<Asked> asked = replica.asked();
    ASSERT_EQ(asked.size(), 2U);
    EXPECT_GE(asked[1].at - asked[0].at, milliseconds(50)) << "never earlier";
    EXPECT_EQ(asked[0].header("x-weir-attempt"), "");
    EXPECT_EQ(asked[1].header("x-weir-attempt"), "2");
    EXPECT_EQ(client.stats().retries, 1U);
    EXPECT_EQ(client.stats().budget, 99U) << "of 100";
  }
}

TEST(ClientRetry, ThreeAttemptsAreAllAndTheLastAnswerIsReturned) {
  Refusing refusing{.times = 100, .fields = {{"x-weir-retry-after-ms", "60"}}};
  const Replica replica(refusing.decide());
  Client client = client_of(config_for({&replica}));
  const Client::Answer answer = client.get("/");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->body, "later");
  EXPECT_EQ(answer->attempts, 3U);
  EXPECT_EQ(answer->retry_after, milliseconds(60)) << "for the caller, who may try again";
  const std::vector<Asked> asked = replica.asked();
  ASSERT_EQ(asked.size(), 3U);
  EXPECT_GE(asked[1].at - asked[0].at, milliseconds(60));
  EXPECT_GE(asked[2].at - asked[1].at, milliseconds(100)) << "twice as long";
}

TEST(ClientRetry, HintsAreObeyed) {
  struct Case {
    Fields fields;
    Duration at_least;
  };
  for (const Case& one :
       {Case{{{"x-weir-retry-after-ms", "300"}}, milliseconds(300)},
        Case{{{"retry-after", "1"}}, seconds(1)},
        Case{{{"retry-after", "1"}, {"x-weir-retry-after-ms", "250"}}, milliseconds(250)}}) {
    Refusing refusing{.fields = one.fields};
    const Replica replica(refusing.decide());
    Client client = client_of(config_for({&replica}));
    const Client::Answer answer = client.get("/");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    const std::vector<Asked> asked = replica.asked();
    ASSERT_EQ(asked.size(), 2U);
    EXPECT_GE(asked[1].at - asked[0].at, one.at_least);
  }
}

TEST(ClientRetry, AHintBeyondTheDeadlineIsReturnedAtOnce) {
  Refusing refusing{.times = 100, .fields = {{"retry-after", "30"}}};
  const Replica replica(refusing.decide());
  Client client = client_of(config_for({&replica}));
  const Client::Answer answer = client.request({.timeout = seconds(20)});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->retry_after, seconds(30));
  EXPECT_EQ(replica.requests(), 1);
}

TEST(ClientRetry, AWriteIsSentAgainOnlyIfTheRefusalSaysThatItWasNotProcessed) {
  struct Case {
    const char* method;
    bool idempotent;
    Fields fields;
    int requests;
  };
  const Fields refused = {{"x-weir-reason", "overload"}};
  const Fields other = {{"x-weir-reason", "something_else"}};
  for (const Case& one :
       {Case{"POST", false, {}, 1}, Case{"POST", true, {}, 2}, Case{"PUT", false, {}, 2},
        Case{"POST", false, refused, 2}, Case{"POST", false, other, 1}}) {
    Refusing refusing{.fields = one.fields};
    const Replica replica(refusing.decide());
    Client client = client_of(config_for({&replica}));
    const Client::Answer answer =
        client.request({.method = one.method, .body = "x", .idempotent = one.idempotent});
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, one.requests == 1 ? 503 : 200) << one.method;
    EXPECT_EQ(replica.requests(), one.requests) << one.method;
  }
}

TEST(ClientRetry, ABodyIsSentWithEachAttempt) {
  Refusing refusing{.times = 2, .fields = {{"x-weir-reason", "overload"}}};
  const Replica replica([decide = refusing.decide()](const Asked& asked) {
    Reply reply = decide(asked);
    reply.echo = reply.status == 200;
    return reply;
  });
  Client client = client_of(config_for({&replica}));
  const std::string body = server::testkit::pattern(10'000);
  const Client::Answer answer = client.request({.method = "POST", .body = body});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, body);
  EXPECT_EQ(replica.requests(), 3);
}

TEST(ClientRetry, WithoutATokenTheAnswerIsReturned) {
  Refusing refusing{.times = 100};
  const Replica replica(refusing.decide());
  ClientConfig config = config_for({&replica});
  config.hedge.budget_pct = 0;
  config.hedge.max_budget_tokens = 1;
  Client client = client_of(config);
  for (int i = 0; i < 3; ++i) {
    const Client::Answer answer = client.get("/");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 503);
  }
  EXPECT_EQ(replica.requests(), 4) << "three, and one retry";
}

TEST(ClientRetry, EachRequestDepositsOnce) {
  Refusing refusing{.times = 100};
  const Replica replica(refusing.decide());
  ClientConfig config = config_for({&replica});
  config.hedge.budget_pct = 0.5;
  config.hedge.max_budget_tokens = 1;
  Client client = client_of(config);
  std::string attempts;
  for (int i = 0; i < 4; ++i) attempts += std::to_string(client.get("/")->attempts);
  EXPECT_EQ(attempts, "2121") << "a retry does not pay for the next one";
  EXPECT_EQ(replica.requests(), 6);
}

TEST(ClientRetry, AnOverloadedServiceGetsAtMostTenPercentMore) {
  Refusing refusing{.times = 1'000'000};
  const Replica a(refusing.decide());
  const Replica b(refusing.decide());
  ClientConfig config = config_for({&a, &b});
  config.hedge.max_budget_tokens = 5;
  config.max_in_flight = 32;
  Client client = client_of(config);
  Answers answers;
  constexpr int kRequests = 400;
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(client.send({}, answers.next()));
  ASSERT_TRUE(eventually([&] { return answers.count(503) == kRequests; }));
  EXPECT_LE(a.requests() + b.requests(), kRequests + kRequests / 10 + 5);
  EXPECT_EQ(client.stats().hedges, 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline client::testkit
