#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "weir/experimental/io/syscalls.h"

#include "upstream/dispatcher_testing.h"

// A response in pieces of every size, and what is left of one that was cancelled.

namespace weir::upstream {
namespace {

std::size_t receives_max = 1;

long receive_some(int fd, void* into, std::size_t size) {
  return io::system_calls().recv(fd, into, std::min(size, receives_max));
}

class H1WireResponseTest : public DispatcherTest {
 protected:
  void SetUp() override {
    receives_max = ~std::size_t{0};
    calls.recv = receive_some;
    loop.use(calls);
  }
  io::Syscalls calls = io::system_calls();
};

TEST_F(H1WireResponseTest, IsTheSameHoweverManyBytesArriveAtOnce) {
  constexpr std::string_view kResponse =
      "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
      "5;x=y\r\nhello\r\n1\r\n,\r\n6\r\n world\r\n0\r\nx-sum: 1\r\nx-end: 2\r\n\r\n";
  for (const std::size_t size : {1UL, 2UL, 3UL, 7UL, 50UL, 1000UL}) {
    for (const std::size_t takes : {1UL, 4UL, 1000UL}) {
      receives_max = size;
      FakeOrigin origin;
      make({origin.name()});
      Asked asked;
      asked.seen.take_at_most = takes;
      get_from(origin, asked.call);
      origin.write(kResponse);
      run_until([&] {
        asked.call.resume();
        return asked.seen.ended();
      });
      EXPECT_TRUE(asked.seen.complete);
      EXPECT_EQ(asked.seen.interim, std::vector<unsigned>{103});
      EXPECT_EQ(asked.seen.status, 200U);
      EXPECT_EQ(asked.seen.body, "hello, world");
      EXPECT_EQ(asked.seen.trailers, 2U);
      EXPECT_EQ(dispatcher->idle_connections(), 1U);
      TearDown();
    }
  }
}

TEST_F(H1WireResponseTest, HoldsNoRegionWhileItWaits) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  get_from(origin, asked.call);
  EXPECT_EQ(memory.regions.stats().used, 0U);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab");
  run_until([&] { return asked.seen.body == "ab"; });
  EXPECT_EQ(memory.regions.stats().used, 0U);
  asked.seen.take_at_most = 1;
  origin.write("cd");
  run_until([&] { return asked.seen.body == "abc"; });
  EXPECT_EQ(memory.regions.stats().used, 0U);
  EXPECT_EQ(asked.call.kept_bytes(), 1U) << "one byte was not taken";
  asked.call.resume();
  EXPECT_TRUE(asked.seen.complete);
}

struct CancelledAt {
  const char* name;
  std::string_view before;  // arrives before the call is cancelled
  std::string_view after;
  std::size_t takes;
  bool reused;
};

class CancelledResponseTest : public H1WireResponseTest,
                              public ::testing::WithParamInterface<CancelledAt> {};

TEST_P(CancelledResponseTest, IsReadToItsEndIfThatIsNear) {
  const CancelledAt& test = GetParam();
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  asked.seen.take_at_most = test.takes;
  get_from(origin, asked.call);
  origin.write(test.before);
  run_until(
      [&] { return asked.seen.status != 0 || test.before.find("\r\n\r\n") == test.before.npos; });
  loop.run_once();
  asked.call.cancel();
  EXPECT_FALSE(asked.call.active());
  if (test.reused) {
    if (!test.after.empty()) origin.write(test.after);
    run_until([&] { return dispatcher->idle_connections() == 1; });
    Asked next;
    ASSERT_TRUE(get(next.call));
    EXPECT_EQ(origin.read_head(loop), kGetOnWire);
    origin.write(kNoContent);
    run_until([&] { return next.seen.complete; });
    EXPECT_EQ(counters().connects.get(), 1U);
  } else {
    run_until([&] { return upstream->connections() == 0; });
    EXPECT_TRUE(origin.ended());
  }
  EXPECT_FALSE(asked.seen.ended());
}

INSTANTIATE_TEST_SUITE_P(
    All, CancelledResponseTest,
    ::testing::Values(
        CancelledAt{"small_rest", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", "567890",
                    1000, true},
        CancelledAt{"no_byte_of_the_body", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", "abc",
                    1000, true},
        CancelledAt{"paused_within", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", "567890",
                    2, true},
        CancelledAt{"paused_before_the_last_bytes",
                    "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhalf", "", 2, true},
        CancelledAt{"large_rest", "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nhalf", "", 1000,
                    false},
        CancelledAt{"unknown_rest", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhe",
                    "", 1000, false},
        CancelledAt{"last_of_its_connection",
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 10\r\n\r\nhalf", "",
                    1000, false},
        CancelledAt{"within_the_head", "HTTP/1.1 200 OK\r\ncontent-le", "", 1000, false}),
    [](const auto& info) { return info.param.name; });

TEST_F(H1WireResponseTest, ACancelWithinAnEventLeavesAUsableConnection) {
  for (const CallEvent at : {CallEvent::kHead, CallEvent::kBody}) {
    for (const std::string_view response :
         {"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody",
          "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbody-more"}) {
      FakeOrigin origin;
      make({origin.name()});
      Asked asked;
      asked.seen.take_at_most = 4;
      asked.seen.within(at, [&] { asked.call.cancel(); });
      get_from(origin, asked.call);
      origin.write(response);
      run_until([&] { return dispatcher->idle_connections() == 1; });
      EXPECT_FALSE(asked.seen.ended());
      Asked next;
      ASSERT_TRUE(get(next.call));
      EXPECT_EQ(origin.read_head(loop), kGetOnWire);
      origin.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
      run_until([&] { return next.seen.complete; });
      EXPECT_EQ(next.seen.body, "hi");
      EXPECT_EQ(counters().connects.get(), 1U);
      TearDown();
    }
  }
}

TEST_F(H1WireResponseTest, ACancelledAnswerWithoutABodyLeavesAUsableConnection) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  asked.seen.within(CallEvent::kHead, [&] { asked.call.cancel(); });
  get_from(origin, asked.call);
  origin.write(kNoContent);
  run_until([&] { return !asked.call.active(); });
  run_until([&] { return dispatcher->idle_connections() == 1; });
}

TEST_F(H1WireResponseTest, BytesBehindTheResponseEndTheConnection) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  get_from(origin, asked.call);
  origin.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi-and-more");
  run_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.body, "hi");
  run_until([&] { return upstream->connections() == 0; });
}

}  // namespace
}  // namespace weir::upstream
