#include "weir/experimental/http/response_framing.h"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

TEST(ResponseFraming, FollowsTheTable) {
  using F = ResponseFraming;
  struct Row {
    ResponseFacts facts;
    F framing;
    std::uint64_t length;
    bool body;
  };
  constexpr auto kClose = OpenEnded::kUntilClose;
  constexpr auto kChunks = OpenEnded::kChunked;
  constexpr auto kFrames = OpenEnded::kFrames;
  const Row rows[] = {
      // A known length is announced in every protocol.
      {{.length = 5, .open_ended = kClose}, F::kLength, 5, true},
      {{.length = 5, .open_ended = kChunks}, F::kLength, 5, true},
      {{.length = 5, .open_ended = kFrames}, F::kLength, 5, true},
      {{.length = 0, .open_ended = kFrames}, F::kLength, 0, false},
      // An unknown length: the protocol's own delimiter.
      {{.open_ended = kClose}, F::kUntilClose, 0, true},
      {{.open_ended = kChunks}, F::kChunked, 0, true},
      {{.open_ended = kFrames}, F::kFrames, 0, true},
      // The head is the whole response.
      {{.open_ended = kClose, .last = true}, F::kLength, 0, false},
      {{.open_ended = kChunks, .last = true}, F::kLength, 0, false},
      {{.open_ended = kFrames, .last = true}, F::kFrames, 0, true},
      // HEAD: a length is announced, but no body follows.
      {{.method = Method::kHead, .length = 5}, F::kLength, 5, false},
      {{.method = Method::kHead}, F::kChunked, 0, false},
      {{.method = Method::kHead, .last = true}, F::kNone, 0, false},
      {{.method = Method::kHead, .open_ended = kFrames, .last = true}, F::kNone, 0, false},
      // Statuses without a body, even if the handler gives one.
      {{.status = 103, .length = 5}, F::kNone, 0, false},
      {{.status = 204, .length = 5}, F::kNone, 0, false},
      {{.status = 304, .length = 5, .open_ended = kFrames}, F::kNone, 0, false},
      // Tunnels.
      {{.method = Method::kConnect, .status = 200, .length = 5}, F::kTunnel, 0, true},
      {{.method = Method::kConnect, .status = 204}, F::kTunnel, 0, true},
      {{.method = Method::kConnect, .status = 404, .length = 5}, F::kLength, 5, true},
      {{.status = 101, .upgrade = true}, F::kTunnel, 0, true},
      {{.status = 101}, F::kNone, 0, false},
  };
  for (const Row& row : rows) {
    const ResponsePlan plan = plan_response(row.facts);
    const std::ptrdiff_t at = &row - rows;
    EXPECT_EQ(plan.framing, row.framing) << "row " << at;
    EXPECT_EQ(plan.length, row.length) << "row " << at;
    EXPECT_EQ(plan.body_follows, row.body) << "row " << at;
  }
}

TEST(ResponseFraming, AHeadThatAnnouncesBytesIsNotTheWholeResponse) {
  EXPECT_FALSE(may_be_whole(plan_response({.length = 5, .last = true})));
  EXPECT_TRUE(may_be_whole(plan_response({.length = 0, .last = true})));
  EXPECT_TRUE(may_be_whole(plan_response({.method = Method::kHead, .length = 5, .last = true})));
  EXPECT_TRUE(may_be_whole(plan_response({.status = 304, .length = 5, .last = true})));
  EXPECT_TRUE(may_be_whole(plan_response({.open_ended = OpenEnded::kFrames, .last = true})));
}

}  // namespace
}  // namespace weir::http
