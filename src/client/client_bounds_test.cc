#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "client_testing.h"

// The bounds of a client: places, sizes, and what close() leaves.

namespace weir::inline v0::inline client::testkit {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ClientConfig small(const Replica& replica) {
  ClientConfig config = config_for({&replica});
  config.max_in_flight = 2;
  config.queue_max = 3;
  config.timeout = seconds(30);
  return config;
}

TEST(ClientBounds, AFullQueueRefusesAtOnceWithAdvice) {
  Replica replica(always({.hold = true}));
  Client client = client_of(small(replica));
  Answers answers;
  std::vector<Duration> delays;
  for (int i = 0; i < 5; ++i) {
    const auto sent = client.send({}, answers.next());
    ASSERT_TRUE(sent);
    delays.push_back(sent->delay);
  }
  EXPECT_EQ(delays.front(), Duration(0));
  EXPECT_EQ(delays.back(), milliseconds(500)) << "that was the last place";
  const auto refused = client.send({}, answers.next());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ClientErrorKind::kQueueFull);
  EXPECT_EQ(refused.error().retry_after, milliseconds(500));
  ASSERT_TRUE(eventually([&] { return replica.requests() == 2; })) << "max_in_flight";
  EXPECT_EQ(client.stats().places, 5U);
  EXPECT_EQ(client.stats().refused, 1U);
  replica.release();
  EXPECT_TRUE(eventually([&] { return answers.count(200) == 5; }));
  EXPECT_EQ(client.stats().state, policy::OutgoingState::kHealthy);
}

TEST(ClientBounds, ABlockingRequestWaitsForAPlaceAsAfterAnOverloadedAnswer) {
  Replica replica(always({.hold = true}));
  Client client = client_of(small(replica));
  Answers answers;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client.send({}, answers.next()));
  const Client::Answer hurried = client.request({.timeout = milliseconds(100)});
  ASSERT_FALSE(hurried);
  EXPECT_EQ(hurried.error().kind, ClientErrorKind::kQueueFull) << "no time to wait for 500 ms";
  Client::Answer patient = unexpected(ClientError{});
  std::thread waits([&] { patient = client.get("/"); });
  ASSERT_TRUE(eventually([&] { return client.stats().refused == 2; }));
  replica.release();
  waits.join();
  ASSERT_TRUE(patient);
  EXPECT_EQ(patient->status, 200);
}

TEST(ClientBounds, ImportantRequestsBeginFirstAndCriticalOnesAtOnce) {
  Replica replica([](const Asked& asked) { return Reply{.hold = asked.path == "/hold"}; });
  ClientConfig config = small(replica);
  config.max_in_flight = 1;
  Client client = client_of(config);
  Answers answers;
  ASSERT_TRUE(client.send({.path = "/hold"}, answers.next()));
  ASSERT_TRUE(eventually([&] { return replica.requests() == 1; }));
  ASSERT_TRUE(client.send({.path = "/low", .priority = Priority::kLow}, answers.next()));
  ASSERT_TRUE(client.send({.path = "/normal"}, answers.next()));
  ASSERT_TRUE(client.send({.path = "/high", .priority = Priority::kHigh}, answers.next()));
  ASSERT_FALSE(client.send({}, answers.next())) << "full";
  ASSERT_TRUE(client.send({.path = "/critical", .priority = Priority::kCritical}, answers.next()));
  ASSERT_TRUE(eventually([&] { return answers.count() == 1; })) << "beside the one in flight";
  replica.release();
  ASSERT_TRUE(eventually([&] { return answers.count(200) == 5; }));
  std::string order;
  for (const Asked& asked : replica.asked()) order += asked.path;
  EXPECT_EQ(order, "/hold/critical/high/normal/low");
}

TEST(ClientBounds, CriticalPlacesAreBoundedToo) {
  Replica replica(always({.hold = true}));
  ClientConfig config = config_for({&replica}, "h2c://");
  Client client = client_of(config);
  Answers answers;
  for (std::uint32_t i = 0; i < ClientConfig::kCriticalMax; ++i) {
    ASSERT_TRUE(client.send({.priority = Priority::kCritical}, answers.next()));
  }
  const auto refused = client.send({.priority = Priority::kCritical}, answers.next());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ClientErrorKind::kCriticalFull);
}

TEST(ClientBounds, ARequestThatWaitsTooLongInTheQueueIsNotSent) {
  Replica replica(always({.hold = true}));
  Client client = client_of(small(replica));
  Answers answers;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(client.send({}, answers.next()));
  const Client::Answer answer = client.request({.timeout = milliseconds(50)});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ClientErrorKind::kDeadline);
  EXPECT_EQ(replica.requests(), 2);
}

TEST(ClientBounds, ADeadlineInThePastSendsNothing) {
  const Replica replica(always({}));
  Client client = client_of(config_for({&replica}));
  const Client::Answer late = client.request({.deadline = io::monotonic_now() - seconds(1)});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ClientErrorKind::kDeadline);
  EXPECT_EQ(replica.requests(), 0);
  EXPECT_TRUE(client.request({.timeout = Duration::max()})) << "as long as allowed";
  EXPECT_TRUE(client.close(Duration::max()));
}

TEST(ClientBounds, ALargerResponseIsAnError) {
  for (const char* scheme : kSchemes) {
    for (const bool unknown : {false, true}) {
      const Replica replica([unknown](const Asked& asked) {
        const std::size_t size = asked.path == "/fits" ? 1000 : 1001;
        return Reply{.body = std::string(size, 'x'), .unknown_size = unknown};
      });
      ClientConfig config = config_for({&replica}, scheme);
      config.response_body_max = 1000;
      Client client = client_of(config);
      const Client::Answer fits = client.get("/fits");
      ASSERT_TRUE(fits);
      EXPECT_EQ(fits->body.size(), 1000U);
      const Client::Answer larger = client.get("/larger");
      ASSERT_FALSE(larger) << scheme << unknown;
      EXPECT_EQ(larger.error().kind, ClientErrorKind::kResponseTooLarge);
      EXPECT_EQ(replica.requests(), 2) << "it is not asked for again";
      EXPECT_TRUE(client.get("/fits"));
    }
  }
}

TEST(ClientBounds, WhatCannotBeSentIsRefusedHere) {
  const Replica replica(always({}));
  Client client = client_of(config_for({&replica}));
  const Client::Answer bad = client.get("no slash");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().kind, ClientErrorKind::kBadRequest);
  const Client::Answer large = client.request({.body = std::string(64 * 1024 + 1, 'x')});
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().kind, ClientErrorKind::kBodyTooLarge);
  EXPECT_EQ(replica.requests(), 0);
  EXPECT_EQ(client.stats().refused, 2U);
  EXPECT_EQ(client.stats().places, 0U);
}

TEST(ClientBounds, CloseGivesRequestsUnderWayTheirTime) {
  Replica replica(always({.hold = true}));
  Client client = client_of(small(replica));
  Answers answers;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(client.send({}, answers.next()));
  ASSERT_TRUE(eventually([&] { return replica.requests() == 2; }));
  bool drained = false;
  std::thread closes([&] { drained = client.close(seconds(30)); });
  ASSERT_TRUE(eventually([&] {
    const auto sent = client.send({}, answers.next());
    return !sent && sent.error().kind == ClientErrorKind::kClosed;
  }));
  const std::size_t accepted = client.stats().sent;
  replica.release();
  closes.join();
  EXPECT_TRUE(drained);
  EXPECT_EQ(answers.count(200), accepted);
  EXPECT_EQ(answers.count(), accepted);
}

TEST(ClientBounds, CloseEndsWhatIsLeft) {
  for (const char* scheme : kSchemes) {
    Replica replica([](const Asked& asked) {
      if (asked.path == "/later") return Reply{.status = 503, .fields = {{"retry-after", "20"}}};
      return Reply{.hold = true};
    });
    ClientConfig config = small(replica);
    config.endpoints = {scheme + replica.name()};
    Client client = client_of(config);
    Answers answers;
    ASSERT_TRUE(client.send({.path = "/later"}, answers.next()));
    ASSERT_TRUE(eventually([&] { return client.stats().retries == 1; }));
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(client.send({}, answers.next()));
    Client::Answer blocked = unexpected(ClientError{});
    ASSERT_TRUE(eventually([&] { return replica.requests() == 3; }));
    EXPECT_FALSE(client.close(milliseconds(10)));
    EXPECT_EQ(answers.count(ClientErrorKind::kClosed), 5U) << "queued, under way and waiting";
    EXPECT_EQ(client.stats().places, 0U);
    EXPECT_FALSE(client.close(seconds(1))) << "closed already";
    const Client::Answer after = client.get("/");
    ASSERT_FALSE(after);
    EXPECT_EQ(after.error().kind, ClientErrorKind::kClosed);
  }
}

TEST(ClientBounds, ABlockedThreadReturnsWhenTheClientIsClosed) {
  Replica replica(always({.hold = true}));
  Client client = client_of(small(replica));
  Client::Answer answer = unexpected(ClientError{});
  std::thread waits([&] { answer = client.get("/"); });
  ASSERT_TRUE(eventually([&] { return replica.requests() == 1; }));
  EXPECT_FALSE(client.close(Duration(0)));
  waits.join();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ClientErrorKind::kClosed);
}

TEST(ClientBounds, DestroyingAClientEndsItsRequests) {
  Replica replica(always({.hold = true}));
  Answers answers;
  {
    Client client = client_of(small(replica));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(client.send({}, answers.next()));
  }
  EXPECT_EQ(answers.count(ClientErrorKind::kClosed), 5U);
}

}  // namespace
}  // namespace weir::inline v0::inline client::testkit
