#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "client_testing.h"

// Reads that are sent to a second endpoint, over real connections: what counts is which server was
// asked, and what it saw.

namespace weir::inline v0::inline client::testkit {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kSoon = milliseconds(5);
constexpr Duration kNever = seconds(60);

/// Two replicas, of which the one that is asked first does not answer.
struct OneIsSlow {
  FirstIsHeld first;
  Replica a{first.decide()};
  Replica b{first.decide()};

  [[nodiscard]] int requests() const { return a.requests() + b.requests(); }
  [[nodiscard]] int aborts() const { return a.aborts() + b.aborts(); }
  /// The one that has not answered.
  [[nodiscard]] const Replica& fast(const ClientResponse& response) const {
    return response.endpoint == a.name() ? a : b;
  }
};

TEST(ClientHedge, HedgeWinsWhenPrimarySlow) {
  for (const char* scheme : kSchemes) {
    OneIsSlow replicas;
    Client client = hedging_client({&replicas.a, &replicas.b}, kSoon, scheme);
    const Client::Answer answer = client.get("/");
    ASSERT_TRUE(answer) << scheme << name_of(answer.error().kind);
    EXPECT_TRUE(answer->hedged);
    EXPECT_EQ(answer->attempts, 2U);
    EXPECT_EQ(replicas.requests(), 2) << scheme;
    EXPECT_EQ(replicas.fast(*answer).asked().at(0).header("x-weir-attempt"), "2");
    EXPECT_EQ(client.stats().hedges, 1U);
    EXPECT_EQ(client.stats().hedges_won, 1U);
  }
}

TEST(ClientHedge, TheHandlerOfTheLoserSeesItsAbort) {
  for (const char* scheme : kSchemes) {
    OneIsSlow replicas;
    Client client = hedging_client({&replicas.a, &replicas.b}, kSoon, scheme);
    const Client::Answer answer = client.get("/");
    ASSERT_TRUE(answer) << scheme;
    EXPECT_TRUE(eventually([&] { return replicas.aborts() == 1; })) << scheme;
    EXPECT_EQ(replicas.fast(*answer).aborts(), 0);
    // HTTP/2 resets the stream only: the connection serves the next request.
    replicas.first.again();
    static_cast<void>(replicas.first.decide()({}));
    EXPECT_TRUE(client.get("/")) << scheme;
  }
}

TEST(ClientHedge, PrimaryWinsBeforeDelay) {
  const Replica a(always({}));
  const Replica b(always({}));
  Client client = hedging_client({&a, &b}, kNever);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(client.get("/"));
  EXPECT_EQ(a.requests() + b.requests(), 20);
  EXPECT_EQ(client.stats().hedges, 0U);
}

TEST(ClientHedge, HedgeDisabledGoesDirect) {
  OneIsSlow replicas;
  ClientConfig config = config_for({&replicas.a, &replicas.b});
  config.hedge.enabled = false;
  config.hedge.default_delay = config.hedge.max_delay = milliseconds(1);
  Client client = client_of(config);
  Answers answers;
  ASSERT_TRUE(client.send({}, answers.next()));
  ASSERT_TRUE(eventually([&] { return replicas.requests() == 1; }));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(client.get("/")) << "many times the delay pass";
  EXPECT_EQ(answers.count(), 0U);
  EXPECT_EQ(replicas.requests(), 21);
  replicas.a.release();
  replicas.b.release();
  EXPECT_TRUE(eventually([&] { return answers.count(200) == 1; }));
  EXPECT_EQ(client.stats().hedges, 0U);
}

TEST(ClientHedge, ARequestCanSayNo) {
  OneIsSlow replicas;
  Client client = hedging_client({&replicas.a, &replicas.b}, kSoon);
  const Client::Answer answer = client.request({.timeout = milliseconds(150), .hedge = false});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ClientErrorKind::kDeadline);
  EXPECT_EQ(replicas.requests(), 1);
}

TEST(ClientHedge, HedgeNoReplicasGoesDirect) {
  const Replica only(always({}));
  Client client = client_of(config_for({&only}));
  EXPECT_TRUE(client.get("/"));
  EXPECT_EQ(only.requests(), 1);
  EXPECT_EQ(client.stats().hedges, 0U);
}

TEST(ClientHedge, PrimaryFailureUsesTheNext) {
  const Replica sick(always({.status = 503}));
  const Replica well(always({}));
  Client client = hedging_client({&sick, &well}, kNever);
  for (int i = 0; i < 50 && sick.requests() == 0; ++i) {
    const Client::Answer answer = client.get("/");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200) << "the other replica was asked at once";
  }
  EXPECT_GE(sick.requests(), 1);
}

TEST(ClientHedge, ADeadReplicaIsNotAnError) {
  auto dead = std::make_unique<Replica>(always({}));
  const Replica well(always({}));
  ClientConfig config = config_for({dead.get(), &well});
  Client client = client_of(config);
  dead.reset();
  for (int i = 0; i < 30; ++i) {
    const Client::Answer answer = client.get("/");
    ASSERT_TRUE(answer) << name_of(answer.error().kind);
    EXPECT_EQ(answer->endpoint, well.name());
  }
}

TEST(ClientHedge, BudgetExhausted) {
  const Replica a(always({.hold = true}));
  const Replica b(always({.hold = true}));
  ClientConfig config = config_for({&a, &b});
  config.hedge.default_delay = config.hedge.max_delay = milliseconds(1);
  config.hedge.budget_pct = 0;
  config.hedge.max_budget_tokens = 3;
  Client client = client_of(config);
  wait_until_warm(client, 2);
  Answers answers;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(client.send({.timeout = milliseconds(400)}, answers.next()));
  }
  EXPECT_TRUE(eventually([&] { return answers.count(ClientErrorKind::kDeadline) == 20; }));
  EXPECT_LE(a.requests() + b.requests(), 23) << "20, and as many as there were tokens";
  EXPECT_EQ(client.stats().hedges, static_cast<std::uint64_t>(a.requests() + b.requests() - 20));
}

TEST(ClientHedge, HedgeSkippedUnderBackpressure) {
  const Replica a(always({.hold = true}));
  const Replica b(always({.hold = true}));
  ClientConfig config = config_for({&a, &b});
  config.hedge.default_delay = config.hedge.max_delay = milliseconds(50);
  config.max_in_flight = 2;
  config.queue_max = 4;
  Client client = client_of(config);
  wait_until_warm(client, 2);
  Answers answers;
  for (int i = 0; i < 5; ++i) {  // those in the queue give up before a place is free
    ASSERT_TRUE(client.send({.timeout = milliseconds(400 - 50 * i)}, answers.next()));
  }
  EXPECT_EQ(client.stats().state, policy::OutgoingState::kThrottled);
  EXPECT_TRUE(eventually([&] { return answers.count() == 5; }));
  EXPECT_EQ(client.stats().hedges, 0U);
  EXPECT_EQ(a.requests() + b.requests(), 2);
}

TEST(ClientHedge, NothingIsHedgedWhileTheServiceReportsOverload) {
  const auto decide = [](const Asked& asked) {
    if (asked.path == "/refused") return Reply{.status = 429, .body = {}};
    return Reply{.hold = true};
  };
  const Replica a(decide);
  const Replica b(decide);
  ClientConfig config = config_for({&a, &b});
  config.hedge.default_delay = config.hedge.max_delay = milliseconds(300);
  Client client = client_of(config);
  wait_until_warm(client, 2);
  Answers answers;
  ASSERT_TRUE(client.send({.timeout = milliseconds(900)}, answers.next()));
  // All other answers report overload, before and when the hedge is due.
  while (answers.count() == 0) {
    const Client::Answer refused = client.request({.method = "POST", .path = "/refused"});
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 429);
  }
  EXPECT_EQ(answers.count(ClientErrorKind::kDeadline), 1U);
  EXPECT_EQ(client.stats().hedges, 0U);
}

TEST(ClientHedge, WritesAreNeverHedged) {
  OneIsSlow replicas;
  // Over HTTP/2 the writes leave room for a hedge on their connections.
  Client client = hedging_client({&replicas.a, &replicas.b}, milliseconds(1), "h2c://");
  Answers answers;
  int sent = 0;
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "MERGE"}) {
    for (const bool idempotent : {false, true}) {
      replicas.first.again();
      ASSERT_TRUE(client.send({.method = method, .idempotent = idempotent}, answers.next()));
      ++sent;
      ASSERT_TRUE(eventually([&] { return replicas.requests() == sent; }));
    }
  }
  // A read beside them is hedged at once, so there was time for theirs.
  replicas.first.again();
  EXPECT_TRUE(client.get("/"));
  EXPECT_EQ(client.stats().hedges, 1U);
  EXPECT_EQ(replicas.requests(), sent + 2);
  EXPECT_EQ(answers.count(), 0U);
}

TEST(ClientHedge, HedgingReducesTailLatency) {
  // Three replicas; the owner of the key does not answer for as long as the test runs.
  Replica* held = nullptr;
  std::vector<std::unique_ptr<Replica>> nodes;
  std::atomic<const void*> slow{nullptr};
  for (int i = 0; i < 3; ++i) {
    nodes.push_back(std::make_unique<Replica>([&slow, i](const Asked& asked) {
      const void* me = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(i) + 1);
      return Reply{.body = "value", .hold = asked.path == "/key" && slow.load() == me};
    }));
  }
  ClientConfig config = config_for({nodes[0].get(), nodes[1].get(), nodes[2].get()});
  config.balance = policy::Balance::kHash;
  Client client = client_of(config);
  wait_until_warm(client, 3);
  const Client::Answer before = client.get("/key");
  ASSERT_TRUE(before);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->name() != before->endpoint) continue;
    slow = reinterpret_cast<const void*>(i + 1);
    held = nodes[i].get();
  }
  ASSERT_NE(held, nullptr);
  const Client::Answer after = client.request({.path = "/key", .timeout = seconds(10)});
  ASSERT_TRUE(after);
  EXPECT_EQ(after->body, "value");
  EXPECT_TRUE(after->hedged);
  EXPECT_NE(after->endpoint, before->endpoint);
  EXPECT_TRUE(eventually([&] { return held->aborts() == 1; }));
}

}  // namespace
}  // namespace weir::inline v0::inline client::testkit
