// A body that is complete before its call starts.
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "upstream/call.h"
#include "upstream/dispatcher_testing.h"

namespace weir::upstream {
namespace {

class CallBufferTest : public DispatcherTest {
 protected:
  static std::string body_of(std::size_t size) {
    std::string body(size, ' ');
    for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>('a' + i % 25);
    return body;
  }
  void write_head(Call& call, std::size_t length) {
    const std::string text = text_of({.length = length});
    put_head(*dispatcher, call, text,
             head_parts(text, http::Method::kPost, RequestFraming::kLength));
  }
};

TEST_F(CallBufferTest, NothingIsSentBeforeStartAndThenHeadAndBody) {
  FakeOrigin origin;
  make({origin.name()});
  for (const std::size_t size : {1UL, 16UL * 1024, 16UL * 1024 + 1, 64UL * 1024}) {
    SCOPED_TRACE(size);
    const std::string body = body_of(size);
    Asked asked;
    write_head(asked.call, size);
    ASSERT_TRUE(asked.call.buffer_body(size, {}));
    EXPECT_EQ(memory.buffers.stats().used, (size + 16 * 1024 - 1) / (16 * 1024));
    for (std::size_t at = 0; at < size; at += 1000) {
      asked.call.add_to_buffer(std::string_view(body).substr(at, 1000));
    }
    EXPECT_EQ(asked.call.held_bytes(), size);
    for (int i = 0; i < 5; ++i) loop.run_once();
    EXPECT_FALSE(origin.has_caller());
    EXPECT_FALSE(asked.call.under_way());
    ASSERT_TRUE(asked.call.start({}));
    if (dispatcher->idle_connections() == 0 && origin.has_caller()) origin.accept(loop);
    const std::string head = text_of({.length = size}) + "\r\n";
    EXPECT_TRUE(origin.read(loop, head.size() + size) == head + body);
    origin.write(kNoContent);
    run_until([&] { return asked.seen.complete; });
    EXPECT_EQ(asked.seen.writable, 0) << "nothing more is to be passed";
    EXPECT_EQ(memory.buffers.stats().used, 0U);
    EXPECT_EQ(memory.bodies.stats().peak, 0U) << "there is one copy";
  }
}

TEST_F(CallBufferTest, IsSentAgainCompletelyWhateverRetryBodyMaxIs) {
  FakeOrigin a;
  FakeOrigin b;
  UpstreamConfig config = plain();
  config.retry_body_max = 0;
  make({a.name(), b.name()}, config);
  const std::string body = body_of(40'000);
  Asked asked;
  write_head(asked.call, body.size());
  const Call::Start start{.idempotent = true};
  ASSERT_TRUE(asked.call.buffer_body(body.size(), start));
  asked.call.add_to_buffer(body);
  ASSERT_TRUE(asked.call.start(start));
  FakeOrigin& first = accept_at_one(a, b);
  const std::string head = text_of({.length = body.size()});
  EXPECT_TRUE(first.read(loop, head.size() + 2 + body.size()) == head + "\r\n" + body);
  first.reset();
  FakeOrigin& second = &first == &a ? b : a;
  second.accept(loop);
  const std::string again = head + "x-weir-attempt: 2\r\n\r\n" + body;
  EXPECT_TRUE(second.read(loop, again.size()) == again);
  second.write(kNoContent);
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(memory.buffers.stats().used, 0U);
}

TEST_F(CallBufferTest, WithoutEnoughBlocksItHoldsNoneAndTheBodyCanBePassedOn) {
  FakeOrigin origin;
  make({origin.name()});
  Asked first;
  write_head(first.call, 60'000);
  ASSERT_TRUE(first.call.buffer_body(60'000, {}));  // all four
  Asked second;
  write_head(second.call, 20'000);
  EXPECT_FALSE(second.call.buffer_body(20'000, {}));
  EXPECT_EQ(memory.buffers.stats().used, 4U);
  first.call.cancel();
  EXPECT_EQ(memory.buffers.stats().used, 0U);
  ASSERT_TRUE(second.call.start({}));
  EXPECT_FALSE(second.call.send_body({}, false));
  origin.accept(loop);
  run_until([&] { return second.seen.writable == 1; });
  second.call.cancel();
}

TEST_F(CallBufferTest, ItsTimeoutsRunWhileItIsReceived) {
  make({FakeOrigin().name()});
  for (const bool callers : {false, true}) {
    Asked asked;
    write_head(asked.call, 10);
    Call::Start start;
    if (callers) {
      start.deadline = loop.now() + std::chrono::milliseconds(20);
    } else {
      start.overall = std::chrono::milliseconds(20);
    }
    ASSERT_TRUE(asked.call.buffer_body(10, start));
    asked.call.add_to_buffer("hello");
    run_until_failed(asked.seen);
    EXPECT_EQ(asked.seen.failure,
              callers ? UpstreamFailure::kDeadline : UpstreamFailure::kOverallTimeout);
    EXPECT_TRUE(asked.call.waited_for_owner());
    EXPECT_EQ(memory.buffers.stats().used, 0U);
  }
}

}  // namespace
}  // namespace weir::upstream
