#include <chrono>
#include <string_view>

#include <gtest/gtest.h>

#include "upstream/call.h"
#include "upstream/dispatcher_testing.h"

// Calls that need HTTP/2, at endpoints that turn out to speak HTTP/1.1.

namespace weir::upstream {
namespace {

class Http2RequiredTest : public DispatcherTest {
 protected:
  Result<void, UpstreamFailure> grpc(Call& call) {
    constexpr std::string_view kHead = "POST /S/M HTTP/1.1\r\nhost: x\r\n";
    RequestHead parts = head_parts(kHead, http::Method::kPost, RequestFraming::kChunked);
    parts.http2_only = true;
    put_head(*dispatcher, call, kHead, parts);
    return call.start({.idempotent = true});
  }
  FakeOrigin origin;
  FakeOrigin other;
};

TEST_F(Http2RequiredTest, ANewConnectionThatIsHttp1IsNotUsedForThem) {
  make({origin.name(), other.name()});
  Asked asked;
  ASSERT_TRUE(grpc(asked.call));
  FakeOrigin& one = accept_at_one(origin, other);
  run_until_failed(asked.seen);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kHttp2Required);
  EXPECT_EQ(one.read_some(), "") << "nothing reaches the endpoint";
  EXPECT_FALSE(origin.has_caller() || other.has_caller()) << "and no other one is asked";
  EXPECT_EQ(dispatcher->idle_connections(), 1U);
  EXPECT_TRUE(endpoint(0).open() && endpoint(1).open()) << "the endpoint is well";
}

TEST_F(Http2RequiredTest, AnIdleConnectionStaysForOthers) {
  make({origin.name()});
  keep_one_idle(origin);
  for (int i = 0; i < 3; ++i) {
    Asked asked;
    const auto started = grpc(asked.call);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error(), UpstreamFailure::kHttp2Required);
  }
  EXPECT_EQ(origin.read_some(), "");
  Asked plain;
  ASSERT_TRUE(get(plain.call));
  EXPECT_EQ(origin.read_head(loop), kGetOnWire);
  origin.write(kNoContent);
  run_until([&] { return plain.seen.complete; });
  EXPECT_EQ(upstream->connections(), 1U);
}

}  // namespace
}  // namespace weir::upstream
