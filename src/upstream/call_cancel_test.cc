#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "upstream/call.h"
#include "upstream/dispatcher_testing.h"

// The end of a call in each of its states: by cancel(), by its owner's destruction, by stop().
// TearDown() checks that nothing is left.

namespace weir::upstream {
namespace {

using std::chrono::milliseconds;

enum class Stage {
  kOpened,
  kConnecting,
  kQueued,
  kSending,
  kAwaiting,
  kReceiving,
  kPausedAtHead,
  kPausedInBody,
  kBackOff,
  kHeld,
  kTunnel,
};

struct Ended {
  const char* name;
  Stage stage;
};

class EndedCallTest : public DispatcherTest, public ::testing::WithParamInterface<Ended> {
 protected:
  void begin(Stage stage) {
    UpstreamConfig config = plain();
    config.hold_max = std::chrono::seconds(20);
    if (stage == Stage::kQueued) config.max_connections = 1;
    if (stage == Stage::kHeld) return make({}, config);
    make({origin.name()}, config);
  }
  void bring_to(Stage stage, Asked& asked) {
    switch (stage) {
      case Stage::kOpened:
        put_head(*dispatcher, asked.call, kGet,
                 head_parts(kGet, http::Method::kGet, RequestFraming::kNone));
        return;
      case Stage::kConnecting:
      case Stage::kHeld:
        ASSERT_TRUE(get(asked.call));
        return;
      case Stage::kQueued:
        ASSERT_TRUE(get(busy.call));
        ASSERT_TRUE(get(asked.call));
        return;
      case Stage::kSending:
        ASSERT_TRUE(ask(asked.call, {.method = http::Method::kPut, .length = 1'000'000'000}));
        origin.accept(loop);
        origin.read_head(loop);
        while (asked.call.send_body(std::string(32768, 'x'), false)) {
        }
        return;
      case Stage::kTunnel:
        ASSERT_TRUE(
            ask(asked.call,
                {.method = http::Method::kGet, .framing = RequestFraming::kNone, .upgrade = true}));
        origin.accept(loop);
        origin.read_head(loop);
        origin.write("HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: w\r\n\r\nhi");
        run_until([&] { return asked.seen.body == "hi"; });
        return;
      default:
        break;
    }
    asked.seen.take_heads = stage != Stage::kPausedAtHead;
    asked.seen.take_at_most = stage == Stage::kPausedInBody ? 1 : 1000;
    get_from(origin, asked.call);
    if (stage == Stage::kAwaiting) return;
    if (stage == Stage::kBackOff) {
      origin.close();
      run_until([&] { return failures(UpstreamFailure::kClosedEarly) == 1; });
      return;
    }
    origin.write("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nsome");
    run_until([&] { return asked.seen.heads == 1; });
    loop.run_once();
  }

  FakeOrigin origin;
  Asked busy;
};

TEST_P(EndedCallTest, ByCancel) {
  begin(GetParam().stage);
  Asked asked;
  bring_to(GetParam().stage, asked);
  ASSERT_TRUE(asked.call.active());
  asked.call.cancel();
  EXPECT_FALSE(asked.call.active());
  asked.call.cancel();  // does nothing
  busy.call.cancel();
  let_pass(milliseconds(5));
  EXPECT_EQ(asked.seen.ends, 0);
  run_until([&] { return upstream->connections() == dispatcher->idle_connections(); });
}

TEST_P(EndedCallTest, ByItsOwnersDestruction) {
  begin(GetParam().stage);
  auto asked = std::make_unique<Asked>();
  bring_to(GetParam().stage, *asked);
  asked->call.cancel();
  asked.reset();
  busy.call.cancel();
  let_pass(milliseconds(5));
}

TEST_P(EndedCallTest, ByStopAndThenCancel) {
  begin(GetParam().stage);
  Asked asked;
  bring_to(GetParam().stage, asked);
  dispatcher->stop();
  loop.run_once();
  asked.call.cancel();
  busy.call.cancel();
  run_until([&] { return dispatcher->stopped(); });
}

TEST_P(EndedCallTest, ByItsDeadline) {
  const Stage stage = GetParam().stage;
  if (stage == Stage::kOpened || stage == Stage::kTunnel) return;  // no deadline there
  begin(stage);
  UpstreamTimeouts timeouts = upstream->timeouts();
  timeouts.overall = milliseconds(600);
  upstream->set_timeouts(timeouts);
  Asked asked;
  bring_to(stage, asked);
  if (stage == Stage::kBackOff) origin.accept(loop);
  if (asked.call.active()) run_until_ended(asked.seen);
  EXPECT_EQ(asked.seen.ends, 1);
  // Nobody was slow while it was held: there was nobody.
  EXPECT_EQ(asked.seen.failure, stage == Stage::kHeld ? UpstreamFailure::kNoEndpoint
                                                      : UpstreamFailure::kOverallTimeout);
  busy.call.cancel();
}

INSTANTIATE_TEST_SUITE_P(
    In, EndedCallTest,
    ::testing::Values(Ended{"Opened", Stage::kOpened}, Ended{"Connecting", Stage::kConnecting},
                      Ended{"Queued", Stage::kQueued}, Ended{"Sending", Stage::kSending},
                      Ended{"Awaiting", Stage::kAwaiting}, Ended{"Receiving", Stage::kReceiving},
                      Ended{"PausedAtHead", Stage::kPausedAtHead},
                      Ended{"PausedInBody", Stage::kPausedInBody},
                      Ended{"BackOff", Stage::kBackOff}, Ended{"Held", Stage::kHeld},
                      Ended{"Tunnel", Stage::kTunnel}),
    [](const auto& info) { return info.param.name; });

// ---- owners that end or start calls within an event

class CallWithinEventTest : public DispatcherTest, public ::testing::WithParamInterface<CallEvent> {
 protected:
  static constexpr std::string_view kAll =
      "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
      "2\r\nhi\r\n0\r\nx-sum: 1\r\n\r\n";
};

TEST_P(CallWithinEventTest, CanBeDestroyed) {
  FakeOrigin origin;
  make({origin.name()});
  auto asked = std::make_unique<Asked>();
  asked->seen.take_interim = false;
  asked->seen.within(GetParam(), [&] {
    asked->call.cancel();
    asked.reset();
  });
  get_from(origin, asked->call);
  origin.write(kAll);
  if (GetParam() == CallEvent::kFailed) origin.write("rubbish");
  run_until([&] { return asked == nullptr; });
}

TEST_P(CallWithinEventTest, CanBeUsedForAnotherRequest) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  asked.seen.take_interim = false;
  bool restarted = false;
  asked.seen.within(GetParam(), [&] {
    asked.call.cancel();
    restarted = true;
    ASSERT_TRUE(get(asked.call));
  });
  get_from(origin, asked.call);
  origin.write(kAll);
  run_until([&] { return restarted; });
  const int ends = asked.seen.ends;
  if (GetParam() == CallEvent::kComplete) {
    EXPECT_EQ(origin.read_head(loop), kGetOnWire) << "on the same connection";
  } else {
    origin.accept(loop);
    origin.read_head(loop);
  }
  origin.write(kNoContent);
  run_until([&] { return asked.seen.ends == ends + 1; });
  EXPECT_EQ(asked.seen.status, 204U);
  EXPECT_EQ(asked.call.attempts(), 1U);
}

INSTANTIATE_TEST_SUITE_P(In, CallWithinEventTest,
                         ::testing::Values(CallEvent::kInterim, CallEvent::kHead, CallEvent::kBody,
                                           CallEvent::kTrailers, CallEvent::kComplete));

TEST_F(EndedCallTest, AnOwnerMayDestroyItsCallWhenItFails) {
  make({origin.name()});
  auto asked = std::make_unique<Asked>();
  asked->seen.within(CallEvent::kFailed, [&] { asked.reset(); });
  get_from(origin, asked->call);
  origin.write("SSH-2.0-x\r\n\r\n");
  UpstreamTimeouts timeouts = upstream->timeouts();
  timeouts.overall = milliseconds(1);
  upstream->set_timeouts(timeouts);
  for (int i = 0; i < 3 && asked != nullptr; ++i) {  // until its attempts are used up
    run_until([&] { return asked == nullptr || origin.has_caller(); });
    if (asked == nullptr) break;
    origin.accept(loop);
    origin.read_head(loop);
    origin.write("SSH-2.0-x\r\n\r\n");
  }
  run_until([&] { return asked == nullptr; });
}

TEST_F(EndedCallTest, AnOwnerMayEndItsCallWhenItMayWrite) {
  make({origin.name()});
  auto asked = std::make_unique<Asked>();
  ASSERT_TRUE(ask(asked->call, {.length = 4}));
  EXPECT_FALSE(asked->call.send_body({}, false));
  asked->seen.within(CallEvent::kWritable, [&] {
    asked->call.cancel();
    asked.reset();
  });
  origin.accept(loop);
  run_until([&] { return asked == nullptr; });
}

TEST_F(EndedCallTest, AnOwnerMaySendMoreWhenItMayWrite) {
  make({origin.name()});
  Asked asked;
  ASSERT_TRUE(ask(asked.call, {.length = 4}));
  EXPECT_FALSE(asked.call.send_body({}, false));
  asked.seen.within(CallEvent::kWritable, [&] { EXPECT_TRUE(asked.call.send_body("four", true)); });
  origin.accept(loop);
  const std::string all = text_of({.length = 4}) + "\r\nfour";
  EXPECT_EQ(origin.read(loop, all.size()), all);
  origin.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
}

TEST_F(EndedCallTest, ARefusalThatIsRetriedMayEndTheCallAtOnce) {
  FakeOrigin second;
  UpstreamConfig config = plain();
  config.connection_queue_max = 1;
  make({origin.name(), second.name()}, config);
  auto asked = std::make_unique<Asked>();
  ASSERT_TRUE(get(asked->call));
  FakeOrigin& first = accept_at_one(origin, second);
  first.read_head(loop);
  ASSERT_TRUE(get(busy.call));  // fills the queue: the retry finds no place
  asked->seen.within(CallEvent::kFailed, [&] { asked.reset(); });
  first.write(kUnavailable);
  run_until([&] {
    return asked == nullptr || !busy.call.active() || busy.seen.ended() ||
           asked->call.attempts() == 2;
  });
  if (asked != nullptr) asked->call.cancel();
  busy.call.cancel();
}

}  // namespace
}  // namespace weir::upstream
