// What the owner of a call does not accept is kept for it, and its connection serves others.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "upstream/call.h"
#include "upstream/dispatcher_testing.h"

namespace weir::upstream {
namespace {

class CallResponseTest : public DispatcherTest {
 protected:
  /// The owner accepts nothing of this answer.
  void receive(FakeOrigin& origin, Asked& asked, std::string_view answer) {
    asked.seen.take_at_most = 0;
    asked.seen.take_trailers = false;
    get_from(origin, asked.call);
    origin.write(answer);
    run_until([&] { return asked.seen.received; });
  }
  std::uint64_t blocks_used() { return dispatcher->memory().heads.stats().used; }
};

constexpr std::string_view kHello = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

TEST_F(CallResponseTest, AResponseThatNobodyTakesGivesItsConnectionBack) {
  FakeOrigin origin;
  make({origin.name()});
  Asked slow;
  receive(origin, slow, kHello);
  EXPECT_TRUE(slow.call.active());
  EXPECT_FALSE(slow.seen.complete);
  EXPECT_EQ(slow.call.kept_bytes(), 5U);
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
  EXPECT_EQ(endpoint().in_flight(), 0U);

  Asked next;  // on the same connection
  ASSERT_TRUE(get(next.call));
  EXPECT_EQ(origin.read_head(loop), kGetOnWire);
  origin.write(kHello);
  run_until([&] { return next.seen.complete; });
  EXPECT_EQ(counters().connects.get(), 1U);

  slow.seen.take_at_most = 2;
  slow.call.resume();
  EXPECT_EQ(slow.seen.body, "he");
  EXPECT_EQ(slow.call.kept_bytes(), 3U);
  EXPECT_FALSE(slow.seen.complete);
  slow.seen.take_at_most = 100;
  slow.call.resume();
  EXPECT_EQ(slow.seen.body, "hello");
  EXPECT_TRUE(slow.seen.complete);
  EXPECT_FALSE(slow.call.active());
  EXPECT_EQ(slow.seen.ends, 1);
}

TEST_F(CallResponseTest, ChunksAndTrailersAreKeptToo) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  receive(origin, asked,
          "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
          "5\r\nhello\r\n7\r\n, world\r\n0\r\nx-sum: 12\r\n\r\n");
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
  asked.call.resume();
  EXPECT_EQ(asked.seen.body, "");
  asked.seen.take_at_most = 100;
  asked.call.resume();
  EXPECT_EQ(asked.seen.body, "hello, world");
  EXPECT_EQ(asked.seen.trailers, 0U) << "they are offered again";
  EXPECT_FALSE(asked.seen.complete);
  asked.seen.take_trailers = true;
  asked.call.resume();
  EXPECT_EQ(asked.seen.trailers, 1U);
  EXPECT_TRUE(asked.seen.complete);
}

TEST_F(CallResponseTest, MoreThanABlockHoldsTheUpstreamBack) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  asked.seen.take_at_most = 0;
  get_from(origin, asked.call);
  const std::size_t block = dispatcher->memory().heads.block_bytes();
  const std::string body(2 * block, 'x');
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" +
               body);
  run_until([&] { return asked.call.kept_bytes() == block - block / 4; });
  for (int i = 0; i < 5; ++i) loop.run_once();
  EXPECT_FALSE(asked.seen.received);
  EXPECT_EQ(dispatcher->idle_connections(), 0U);
  asked.seen.take_at_most = ~std::size_t{0};
  asked.call.resume();
  run_until([&] { return asked.seen.complete; });
  EXPECT_TRUE(asked.seen.body == body);
}

TEST_F(CallResponseTest, ACallThatIsCancelledGivesItsBlockBack) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  const std::uint64_t before = blocks_used();
  receive(origin, asked, kHello);
  asked.call.cancel();
  EXPECT_FALSE(asked.call.active());
  EXPECT_LE(blocks_used(), before + 1) << "the loop may cache one";
  EXPECT_EQ(asked.seen.ends, 0);

  Asked second;  // cancelled while it delivers
  second.seen.within(CallEvent::kBody, [&] { second.call.cancel(); });
  second.seen.take_at_most = 0;
  ASSERT_TRUE(get(second.call));
  EXPECT_EQ(origin.read_head(loop), kGetOnWire);
  second.seen.within(CallEvent::kHead, [&] {});
  origin.write(kHello);
  run_until([&] { return second.seen.received; });
  second.seen.take_at_most = 100;
  second.seen.within(CallEvent::kBody, [&] { second.call.cancel(); });
  second.call.resume();
  EXPECT_FALSE(second.call.active());
  EXPECT_FALSE(second.seen.complete);
}

TEST_F(CallResponseTest, ACallThatNobodyNeedsEndsWithItsAttempt) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  get_from(origin, asked.call);
  asked.call.finish_alone(loop.now() + std::chrono::hours(1));
  EXPECT_LE(blocks_used(), 1U) << "its request is never sent again; the loop may cache one";
  origin.close();
  run_until([&] { return asked.seen.ended(); });
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kClosedEarly);
  EXPECT_EQ(counters().attempts.get(), 1U);

  Asked late;
  get_from(origin, late.call);
  late.call.finish_alone(loop.now() + std::chrono::milliseconds(10));
  run_until([&] { return late.seen.ended(); });
  EXPECT_EQ(late.seen.failure, UpstreamFailure::kOverallTimeout);
  EXPECT_EQ(dispatcher->idle_connections(), 0U);
}

TEST_F(CallResponseTest, AnOwnerThatNeverTakesItIsTheOneThatIsSlow) {
  FakeOrigin origin;
  UpstreamConfig config;
  config.overall_timeout = std::chrono::milliseconds(30);
  make({origin.name()}, config);
  Asked asked;
  receive(origin, asked, kHello);
  run_until([&] { return asked.seen.ended(); });
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kOverallTimeout);
  EXPECT_TRUE(asked.call.waited_for_owner());
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
}

}  // namespace
}  // namespace weir::upstream
