#include "proxied_request.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core.h"
#include "fake_stream_testing.h"
#include "gateway_loop.h"
#include "gateway_testing.h"
#include "head_testing.h"
#include "rules.h"
#include "upstream/dispatcher_testing.h"
#include "upstream_answer.h"

// One ProxiedRequest with a stream without a server. The test calls the call's events in place
// of the upstream; the origin only accepts connections.

namespace weir::inline v0::gateway {
namespace {

using testkit::FakeStream;

/// The gateway's part of one loop, which the test steps.
class ProxiedRequestTest : public ::testing::Test {
 protected:
  void start(const std::function<void(config::Config&)>& change = {}) {
    config::Config config =
        testkit::gateway_config({"127.0.0.1:" + std::to_string(origin_.name().address.port)});
    config.server.loops = 1;
    config.admission.limit.policy = LimitKind::kFixed;
    config.admission.limit.initial_limit = 1;
    config.admission.normal_wait_max = std::chrono::seconds(30);
    if (change) change(config);
    core_ = std::make_unique<GatewayCore>(config, 1, Rng(7), GatewayCore::Parts{});
    config_ = config;
    home_ = std::make_unique<GatewayLoop>(*core_, loop, 0, table());
    front_handler_ = home_->make_front_handler();
  }
  void TearDown() override { stop(); }
  /// The upstreams in force, and their routes.
  GatewayLoop::Table table() const {
    const std::shared_ptr<const UpstreamSet> upstreams = core_->upstreams.in_force();
    return {.upstreams = upstreams,
            .rules = std::make_shared<const Rules>(config_, upstreams->names())};
  }
  /// Every request must have ended.
  void stop() {
    if (!home_) return;
    home_->stop();
    for (int i = 0; i < 1000 && !home_->quiet(); ++i) loop.run_once();
    EXPECT_TRUE(home_->quiet()) << "something of a request is left";
    EXPECT_EQ(in_flight(), 0U);
    home_.reset();
    loop.run_once();
  }

  /// Acts as the server that has read a head.
  void ask(FakeStream& stream, std::optional<std::uint64_t> body_length = 0,
           std::uint8_t client = 7) {
    const TestHead head{{"host", "t"}};
    ServerRequest request = head.request(body_length == std::uint64_t{0} ? "GET" : "POST");
    request.peer.ip[3] = client;
    request.received_at = loop.now();
    request.body_length = body_length;
    stream.set_handler(*front_handler_);
    front_handler_->on_headers(stream, request);
  }
  /// The events of the call of this stream's request.
  static upstream::CallEvents& upstream_of(const FakeStream& stream) {
    return static_cast<ProxiedRequest&>(stream.handler());
  }
  static upstream::ResponseHead head_of(unsigned status, http::h1::BodyFraming body) {
    upstream::ResponseHead head;
    head.status = status;
    head.body = body;
    return head;
  }
  static void give_body(FakeStream& stream, std::string_view text, bool last) {
    stream.received += text.size();
    stream.handler().on_body(
        stream, {.data = reinterpret_cast<const std::uint8_t*>(text.data()),
                 .len = text.size(),
                 .status = last ? http::BodyStatus::kComplete : http::BodyStatus::kContinue});
  }
  /// Sends a complete response and reports to the handler that it is sent.
  static void answer(FakeStream& stream) {
    ASSERT_TRUE(upstream_of(stream).on_upstream_head(head_of(204, {})));
    upstream_of(stream).on_upstream_complete();
    stream.handler().on_finished(stream);
  }
  bool turned_away(const FakeStream& stream) const {
    return &stream.handler() == front_handler_.get();
  }

  /// Steps the loop until the origin has the head of a request.
  bool sent_to_origin() {
    origin_.accept(loop);
    return !origin_.read_head(loop).empty();
  }
  [[nodiscard]] const UpstreamCounters& counts() const {
    return *core_->upstreams.in_force()->all[0]->place.counters[0];
  }
  [[nodiscard]] std::uint32_t under_way() const { return core_->counters[0]->proxied.load(); }
  [[nodiscard]] std::uint32_t in_flight() const { return core_->controller.stats().in_flight; }
  [[nodiscard]] std::uint32_t streaming() const { return core_->controller.stats().streaming; }
  [[nodiscard]] std::uint64_t outcome(Outcome which) const {
    return counts().outcomes[static_cast<std::size_t>(which)].get();
  }
  [[nodiscard]] std::uint64_t aborted_by(EndedBy who) const {
    return counts().aborted[static_cast<std::size_t>(who)].get();
  }
  [[nodiscard]] std::uint64_t refused_for(GatewayReason why) const {
    return counts().refused[why.index()].get();
  }

  static constexpr http::h1::BodyFraming kThree = {.kind = http::h1::BodyKind::kLength,
                                                   .length = 3};
  static constexpr http::h1::BodyFraming kChunked = {.kind = http::h1::BodyKind::kChunked};

  io::Loop loop;

 private:
  upstream::FakeOrigin origin_;
  config::Config config_;
  std::unique_ptr<GatewayCore> core_;
  std::unique_ptr<GatewayLoop> home_;
  std::unique_ptr<Handler> front_handler_;
};

TEST_F(ProxiedRequestTest, ARefusalThatExplainsItselfIsNotOurOverload) {
  start();
  const auto outcome_after = [&](unsigned status, http::FieldId id, std::string_view name) {
    FakeStream stream(loop);
    ask(stream);
    std::array<http::HeaderView, 1> storage;
    upstream::ResponseHead head = head_of(status, {});
    head.headers.reset(storage);
    if (!name.empty()) head.headers.append({.name = name, .value = "1", .id = id});
    EXPECT_TRUE(upstream_of(stream).on_upstream_head(head));
    const std::uint64_t ignored = outcome(Outcome::kIgnored);
    const std::uint64_t overload = outcome(Outcome::kOverload);
    upstream_of(stream).on_upstream_complete();
    stream.handler().on_finished(stream);
    return outcome(Outcome::kIgnored) > ignored     ? Outcome::kIgnored
           : outcome(Outcome::kOverload) > overload ? Outcome::kOverload
                                                    : Outcome::kOk;
  };
  EXPECT_EQ(outcome_after(503, {}, ""), Outcome::kOverload);
  EXPECT_EQ(outcome_after(503, http::FieldId::kXWeirReason, "x-weir-reason"), Outcome::kIgnored);
  EXPECT_EQ(outcome_after(429, http::FieldId::kXWeirReason, "x-weir-reason"), Outcome::kIgnored);
  EXPECT_EQ(outcome_after(503, http::FieldId::kRetryAfter, "retry-after"), Outcome::kIgnored);
  EXPECT_EQ(outcome_after(429, {}, ""), Outcome::kOk) << "of one client, not of the service";
}

TEST_F(ProxiedRequestTest, AnAnswerThatIsReceivedHoldsNoPlaceHoweverSlowItsClientIs) {
  start();
  for (const unsigned status : {200U, 500U}) {
    FakeStream stream(loop);
    ask(stream);
    EXPECT_EQ(in_flight(), 1U);
    ASSERT_TRUE(upstream_of(stream).on_upstream_head(head_of(status, kThree)));
    upstream_of(stream).on_upstream_received();
    EXPECT_EQ(in_flight(), 0U);
    EXPECT_EQ(streaming(), 0U);
    EXPECT_EQ(under_way(), 1U);
    const std::uint64_t errors = outcome(Outcome::kError);
    stream.handler().on_abort(stream, CloseReason::kWriteTimeout);
    EXPECT_EQ(outcome(Outcome::kError), errors) << "it is counted once";
    EXPECT_EQ(under_way(), 0U);
  }
  EXPECT_EQ(outcome(Outcome::kOk), 1U);
  EXPECT_EQ(outcome(Outcome::kError), 1U);
  EXPECT_EQ(outcome(Outcome::kIgnored), 0U);
}

TEST_F(ProxiedRequestTest, OurOwnShortageIsNeverOverloadOfTheService) {
  start();
  for (const auto failure :
       {upstream::UpstreamFailure::kNoConnection, upstream::UpstreamFailure::kNoBuffer}) {
    FakeStream stream(loop);
    ask(stream);
    upstream_of(stream).on_upstream_failed(failure);
    EXPECT_EQ(stream.status, 503);
  }
  EXPECT_EQ(outcome(Outcome::kOverload), 0U);
  EXPECT_EQ(outcome(Outcome::kError), 2U);
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(ProxiedRequestTest, ARequestThatIsTakenBackHoldsItsPermitUntilItsAttemptIsOver) {
  start();
  FakeStream stream(loop);
  ask(stream);
  ASSERT_TRUE(sent_to_origin());
  upstream::CallEvents& upstream = upstream_of(stream);
  stream.handler().on_abort(stream, CloseReason::kClientAbort);
  EXPECT_EQ(aborted_by(EndedBy::kClient), 1U);
  EXPECT_EQ(in_flight(), 1U) << "the upstream works on it";
  EXPECT_EQ(under_way(), 1U);
  EXPECT_FALSE(upstream.on_upstream_interim(head_of(103, {})));
  upstream.on_upstream_writable();
  EXPECT_TRUE(upstream.on_upstream_head(head_of(200, kThree)));
  EXPECT_EQ(in_flight(), 0U);
  EXPECT_EQ(under_way(), 0U);
  EXPECT_EQ(outcome(Outcome::kOk), 1U) << "its time is that of the service";
}

TEST_F(ProxiedRequestTest, AnAttemptThatTakesLongIsCancelledAfterItsClientLeft) {
  start();
  FakeStream stream(loop);
  ask(stream);
  ASSERT_TRUE(sent_to_origin());
  stream.handler().on_abort(stream, CloseReason::kClientAbort);
  EXPECT_EQ(in_flight(), 1U);
  while (under_way() > 0) loop.run_once();
  EXPECT_EQ(in_flight(), 0U);
  EXPECT_EQ(outcome(Outcome::kIgnored), 1U);

  FakeStream second(loop);  // nothing lingers when the server stops
  ask(second);
  ASSERT_TRUE(sent_to_origin());
  second.handler().on_abort(second, CloseReason::kShutdown);
  EXPECT_EQ(under_way(), 0U);
}

TEST_F(ProxiedRequestTest, AnAnswerPassesAndTheRequestEndsWhenItIsOut) {
  start();
  FakeStream stream(loop);
  ask(stream);
  ASSERT_FALSE(turned_away(stream));
  EXPECT_EQ(in_flight(), 1U);
  upstream::CallEvents& upstream = upstream_of(stream);
  ASSERT_TRUE(upstream.on_upstream_head(head_of(200, kThree)));
  EXPECT_EQ(stream.status, 200);
  EXPECT_FALSE(stream.ended);
  EXPECT_EQ(upstream.on_upstream_body("abc"), 3U);
  upstream.on_upstream_complete();
  EXPECT_EQ(stream.body, "abc");
  EXPECT_TRUE(stream.ended);
  EXPECT_EQ(under_way(), 1U) << "until the server has sent it";
  stream.handler().on_finished(stream);
  EXPECT_EQ(under_way(), 0U);
  EXPECT_EQ(counts().answered[1].get(), 1U);
  EXPECT_EQ(outcome(Outcome::kOk), 1U);
}

TEST_F(ProxiedRequestTest, AWaitingRequestIsPausedAndGoesOnWithTheNextPermit) {
  start();
  FakeStream first(loop);
  FakeStream second(loop);
  ask(first);
  ask(second);
  EXPECT_TRUE(second.paused);
  EXPECT_EQ(under_way(), 2U);
  answer(first);
  EXPECT_TRUE(second.paused) << "granted, but its turn has not come";
  loop.run_once();
  EXPECT_FALSE(second.paused);
  EXPECT_EQ(in_flight(), 1U);
  answer(second);
  EXPECT_EQ(under_way(), 0U);
  EXPECT_EQ(counts().answered[1].get(), 2U);
}

TEST_F(ProxiedRequestTest, ClientsWithoutAnIdentityTakeTurnsByAddress) {
  start();
  FakeStream first(loop);
  ask(first);
  FakeStream greedy(loop);
  FakeStream greedy_too(loop);
  FakeStream modest(loop);
  ask(greedy, 0, 8);
  ask(greedy_too, 0, 8);
  ask(modest, 0, 9);
  answer(first);
  loop.run_once();
  EXPECT_FALSE(greedy.paused);
  answer(greedy);
  loop.run_once();
  EXPECT_FALSE(modest.paused) << "it came last, and it is another client's turn";
  EXPECT_TRUE(greedy_too.paused);
  answer(modest);
  loop.run_once();
  answer(greedy_too);
}

TEST_F(ProxiedRequestTest, AWaitingRequestEndsAtOnceWhenItsClientLeaves) {
  start();
  FakeStream first(loop);
  FakeStream second(loop);
  ask(first);
  ask(second);
  second.handler().on_abort(second, CloseReason::kClientAbort);
  EXPECT_EQ(under_way(), 1U);
  EXPECT_EQ(aborted_by(EndedBy::kClient), 1U);
  EXPECT_EQ(outcome(Outcome::kIgnored), 0U) << "it had no permit";
  answer(first);
}

TEST_F(ProxiedRequestTest, APermitThatWasGrantedAfterTheClientLeftIsGivenBack) {
  start();
  FakeStream first(loop);
  FakeStream second(loop);
  ask(first);
  ask(second);
  answer(first);  // grants the permit; the second request sees it in the next turn
  second.handler().on_abort(second, CloseReason::kClientAbort);
  EXPECT_EQ(under_way(), 1U) << "the permit is still to be collected";
  loop.run_once();
  EXPECT_EQ(under_way(), 0U);
  EXPECT_EQ(in_flight(), 0U);
  FakeStream third(loop);
  ask(third);
  EXPECT_FALSE(third.paused) << "the place is free";
  answer(third);
}

TEST_F(ProxiedRequestTest, ARequestThatMayNotWaitIsRefusedAndItsStreamHandedBack) {
  start([](config::Config& config) { config.admission.normal_wait_max = Duration(0); });
  FakeStream first(loop);
  FakeStream second(loop);
  ask(first);
  ask(second);
  EXPECT_EQ(second.status, 503);
  EXPECT_NE(second.fields.find("x-weir-reason: overload"), std::string::npos) << second.fields;
  EXPECT_TRUE(turned_away(second));
  EXPECT_EQ(refused_for(Reason::kOverload), 1U);
  EXPECT_EQ(under_way(), 1U);
  answer(first);
}

TEST_F(ProxiedRequestTest, AFailureBeforeTheHeadIsAnsweredByItsOwnStatus) {
  for (const upstream::UpstreamFailure failure :
       {upstream::UpstreamFailure::kConnectRefused, upstream::UpstreamFailure::kClosedEarly,
        upstream::UpstreamFailure::kFirstByteTimeout}) {
    SCOPED_TRACE(name_of(failure));
    start();
    FakeStream stream(loop);
    ask(stream);
    upstream_of(stream).on_upstream_failed(failure);
    EXPECT_EQ(stream.status, meaning_of(failure).http);
    EXPECT_TRUE(turned_away(stream));
    EXPECT_EQ(outcome(meaning_of(failure).outcome), 1U);
    EXPECT_EQ(counts().answered[4].get(), 1U);
    EXPECT_EQ(under_way(), 0U);
    stop();
  }
}

TEST_F(ProxiedRequestTest, AFailureInTheAnswerResetsTheStreamAndIsTheUpstreams) {
  start();
  FakeStream stream(loop);
  ask(stream);
  ASSERT_TRUE(upstream_of(stream).on_upstream_head(head_of(200, kThree)));
  upstream_of(stream).on_upstream_failed(upstream::UpstreamFailure::kTruncated);
  EXPECT_EQ(stream.resets, 1);
  EXPECT_EQ(in_flight(), 0U) << "the permit does not wait for the server";
  EXPECT_EQ(under_way(), 1U);
  stream.handler().on_abort(stream, CloseReason::kReset);
  EXPECT_EQ(aborted_by(EndedBy::kUpstream), 1U);
  EXPECT_EQ(outcome(Outcome::kError), 1U);
  EXPECT_EQ(under_way(), 0U);
}

TEST_F(ProxiedRequestTest, AnAbortIsTheClientsOrTheServersByItsReason) {
  start();
  const std::array<std::pair<CloseReason, EndedBy>, 4> rows = {{
      {CloseReason::kClientAbort, EndedBy::kClient},
      {CloseReason::kWriteTimeout, EndedBy::kClient},
      {CloseReason::kShutdown, EndedBy::kServer},
      {CloseReason::kBackpressure, EndedBy::kServer},
  }};
  for (const auto& [reason, who] : rows) {
    const std::uint64_t before = aborted_by(who);
    FakeStream stream(loop);
    ask(stream);
    stream.handler().on_abort(stream, reason);
    EXPECT_EQ(aborted_by(who), before + 1) << name_of(reason);
  }
  EXPECT_EQ(outcome(Outcome::kIgnored), rows.size());
  EXPECT_EQ(under_way(), 0U);
}

TEST_F(ProxiedRequestTest, AHeadWithoutRoomIsNotTakenAndMayComeAgain) {
  start();
  FakeStream stream(loop);
  ask(stream);
  stream.takes_head = SendResult::kBlocked;
  EXPECT_FALSE(upstream_of(stream).on_upstream_head(head_of(200, kThree)));
  EXPECT_EQ(counts().latency.snapshot().count(), 0U);
  stream.takes_head = SendResult::kSent;
  EXPECT_TRUE(upstream_of(stream).on_upstream_head(head_of(200, kThree)));
  EXPECT_EQ(counts().latency.snapshot().count(), 1U);
  stream.room = 2;
  EXPECT_EQ(upstream_of(stream).on_upstream_body("abc"), 2U) << "the rest comes again";
  stream.room = 1;
  EXPECT_EQ(upstream_of(stream).on_upstream_body("c"), 1U);
  upstream_of(stream).on_upstream_complete();
  stream.handler().on_finished(stream);
  EXPECT_EQ(stream.body, "abc");
}

TEST_F(ProxiedRequestTest, AHeadThatCannotBeSentIsABadResponse) {
  start();
  FakeStream stream(loop);
  ask(stream);
  stream.takes_head = SendResult::kInvalid;
  EXPECT_TRUE(upstream_of(stream).on_upstream_head(head_of(200, kThree)));
  EXPECT_EQ(stream.status, 502);
  EXPECT_TRUE(turned_away(stream));
  EXPECT_EQ(under_way(), 0U);
}

TEST_F(ProxiedRequestTest, AHeadForAStreamThatIsOverWaitsForTheAbort) {
  start();
  FakeStream stream(loop);
  ask(stream);
  stream.takes_head = SendResult::kClosed;
  EXPECT_TRUE(upstream_of(stream).on_upstream_head(head_of(200, kThree)));
  EXPECT_EQ(under_way(), 1U);
  stream.handler().on_abort(stream, CloseReason::kClientAbort);
  EXPECT_EQ(under_way(), 0U);
  EXPECT_EQ(aborted_by(EndedBy::kClient), 1U);
}

TEST_F(ProxiedRequestTest, TrailersEndTheAnswerAndThoseThatCannotBeSentAreDropped) {
  start();
  for (const SendResult takes : {SendResult::kSent, SendResult::kInvalid}) {
    FakeStream stream(loop);
    ask(stream);
    ASSERT_TRUE(upstream_of(stream).on_upstream_head(head_of(200, kChunked)));
    const TestHead trailers{{"x-sum", "1"}};
    stream.takes_trailers = SendResult::kBlocked;
    EXPECT_FALSE(upstream_of(stream).on_upstream_trailers(trailers.list()));
    stream.takes_trailers = takes;
    EXPECT_TRUE(upstream_of(stream).on_upstream_trailers(trailers.list()));
    EXPECT_EQ(stream.trailers, takes == SendResult::kSent ? "x-sum: 1\n" : "");
    upstream_of(stream).on_upstream_complete();
    EXPECT_TRUE(stream.ended);
    stream.handler().on_finished(stream);
  }
}

TEST_F(ProxiedRequestTest, ABodyWaitsUntilTheHeadIsOut) {
  start([](config::Config& config) { config.buffering.buffer_request_max = 0; });
  FakeStream stream(loop);
  ask(stream, 5);
  EXPECT_TRUE(stream.paused) << "there is room for the head only";
  for (int i = 0; i < 1000 && stream.paused; ++i) loop.run_once();
  EXPECT_FALSE(stream.paused);
  give_body(stream, "hello", true);
  answer(stream);
  EXPECT_EQ(counts().answered[1].get(), 1U);
}

TEST_F(ProxiedRequestTest, ABodyLargerThanItsRouteAllowsIs413OrAReset) {
  for (const bool answered : {false, true}) {
    SCOPED_TRACE(answered);
    start([](config::Config& config) { config.routes.front().max_body = 4; });
    FakeStream stream(loop);
    ask(stream, std::nullopt);
    for (int i = 0; i < 1000 && stream.paused; ++i) loop.run_once();
    if (answered) {
      ASSERT_TRUE(upstream_of(stream).on_upstream_head(head_of(200, kChunked)));
    }
    give_body(stream, "hello", false);
    EXPECT_EQ(stream.resets, answered ? 1 : 0);
    EXPECT_EQ(stream.status, answered ? 200 : 413);
    EXPECT_EQ(turned_away(stream), !answered);
    if (answered) stream.handler().on_abort(stream, CloseReason::kReset);
    EXPECT_EQ(refused_for(GatewayRefusal::kBodyTooLarge), answered ? 0U : 1U);
    EXPECT_EQ(under_way(), 0U);
    stop();
  }
}

TEST_F(ProxiedRequestTest, AServiceThatSaysOverloadIsHeardByTheLimiter) {
  start();
  const std::array<std::pair<unsigned, Outcome>, 4> rows = {{{200, Outcome::kOk},
                                                             {404, Outcome::kOk},
                                                             {500, Outcome::kError},
                                                             {503, Outcome::kOverload}}};
  for (const auto& [status, expected] : rows) {
    const std::uint64_t before = outcome(expected);
    FakeStream stream(loop);
    ask(stream);
    ASSERT_TRUE(upstream_of(stream).on_upstream_head(head_of(status, {})));
    upstream_of(stream).on_upstream_complete();
    stream.handler().on_finished(stream);
    EXPECT_EQ(outcome(expected), before + 1) << status;
  }
}

}  // namespace
}  // namespace weir::inline v0::gateway
