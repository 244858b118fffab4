#include <chrono>

#include <gtest/gtest.h>

#include "http/h2/session_testing.h"

namespace weir::inline v0::http::h2 {
namespace {

using namespace wire;
using Code = ErrorCode;
using std::chrono::milliseconds;

/// A stream whose response is sent before its request is complete.
class H2Linger : public testing::Test {
 protected:
  explicit H2Linger(bool release = true) : peer({}, options(release)) { peer.handshake(); }

  static PeerOptions options(bool release) {
    PeerOptions options;
    options.answer = false;
    options.release = release;
    return options;
  }
  void answer_early(StreamId id, const Fields& head = post()) {
    peer.send(headers(id, head, 0));
    peer.respond(id, "", {}, 413);
    peer.drain();
    ASSERT_TRUE(peer.responses[id].ended);
    ASSERT_FALSE(peer.reset_code(id).has_value()) << "not at once";
  }
  std::uint32_t places() { return peer.session().stats(peer.now).streams; }

  TestPeer peer;
};

TEST_F(H2Linger, TheOwnerIsDoneAtOnceAndToldOnce) {
  answer_early(1);
  EXPECT_TRUE(peer.streams[1].ended);
  EXPECT_EQ(peer.streams[1].end, StreamEnd::kDone);
  EXPECT_EQ(places(), 1U) << "the peer may still send";
  peer.streams[1].ended = false;
  peer.send(data(1, "the rest", kEnd));
  EXPECT_FALSE(peer.streams[1].ended) << "told again";
  EXPECT_EQ(peer.streams[1].body, "") << "nobody wants it";
  EXPECT_EQ(places(), 0U);
}

TEST_F(H2Linger, ASmallRestIsLetComeWithoutAReset) {
  answer_early(1);
  for (int i = 0; i < 8; ++i) peer.send(data(1, std::string(1000, 'x')));
  peer.send(data(1, "", kEnd));
  EXPECT_EQ(peer.count(FrameType::kRstStream), 0U);
  EXPECT_EQ(places(), 0U);
  peer.send(data(1, "more"));
  EXPECT_EQ(peer.goaway_code(), Code::kStreamClosed) << "it had said that this was all";
}

TEST_F(H2Linger, TrailersEndItToo) {
  answer_early(1);
  peer.send(data(1, "x") + headers(1, {{"x-sum", "1"}}, kEnd));
  EXPECT_EQ(peer.count(FrameType::kRstStream), 0U);
  EXPECT_EQ(places(), 0U);
  EXPECT_TRUE(peer.streams[1].trailers.empty());
}

TEST_F(H2Linger, ALargeRestIsCutOffWithoutBlame) {
  answer_early(1);
  peer.send(data(1, std::string(8192, 'x')));
  EXPECT_FALSE(peer.reset_code(1).has_value());
  peer.send(data(1, "x"));
  EXPECT_EQ(peer.reset_code(1), Code::kNoError);
  EXPECT_EQ(places(), 0U);
  for (int i = 0; i < 8; ++i) peer.send(data(1, std::string(1000, 'x')));
  EXPECT_TRUE(peer.alive());
  EXPECT_EQ(peer.all_glitches(), 0U);
}

TEST_F(H2Linger, AnUploadThatWaitsForItsWindowIsCutOffAtOnce) {
  PeerOptions options;
  options.answer = false;
  options.grant = false;
  TestPeer paused({}, options);
  paused.handshake().send(headers(1, post(), 0));
  paused.session().grant(1, 16384);
  paused.send(data(1, std::string(16384, 'x')));
  paused.respond(1, "", {}, 413);
  paused.drain();
  EXPECT_EQ(paused.reset_code(1), Code::kNoError);
  EXPECT_EQ(paused.streams[1].end, StreamEnd::kDone);
}

TEST_F(H2Linger, ARestThatDoesNotComeIsCutOffInTime) {
  answer_early(1);
  const TimePoint start = peer.now;
  ASSERT_EQ(peer.session().next_expiry(), start + milliseconds(250));
  peer.now = start + milliseconds(200);
  answer_early(3);
  peer.now = start + milliseconds(250);
  peer.session().expire(peer.now);
  peer.drain();
  EXPECT_EQ(peer.count(FrameType::kRstStream), 0U) << "the second has hardly begun";
  ASSERT_EQ(peer.session().next_expiry(), start + milliseconds(500));
  peer.now = start + milliseconds(500);
  peer.session().expire(peer.now);
  peer.drain();
  EXPECT_EQ(peer.reset_code(1), Code::kNoError);
  EXPECT_EQ(peer.reset_code(3), Code::kNoError);
  EXPECT_EQ(places(), 0U);
  EXPECT_EQ(peer.session().next_expiry(), TimePoint{}) << "nothing is left to do";
  EXPECT_EQ(peer.all_glitches(), 0U);
}

TEST_F(H2Linger, ItsFramesAreJudgedLikeAnyOthers) {
  answer_early(1);
  peer.send(window_update(1, 0));
  EXPECT_EQ(peer.reset_code(1), Code::kProtocolError);
  answer_early(3);
  peer.send(window_update(3, 0x7fffffff) + window_update(3, 0x7fffffff));
  EXPECT_EQ(peer.reset_code(3), Code::kFlowControlError);
  answer_early(5);
  peer.send(data(5, "x") + headers(5, {{"x", "y"}}, 0));
  EXPECT_EQ(peer.reset_code(5), Code::kProtocolError) << "trailers that end nothing";
  Fields promised = post();
  promised.emplace_back("content-length", "1");
  answer_early(7, promised);
  peer.send(data(7, "four", kEnd));
  EXPECT_EQ(peer.reset_code(7), Code::kProtocolError) << "not the length it said";
  answer_early(9);
  peer.send(rst(9) + data(9, "x"));
  EXPECT_EQ(peer.reset_code(9), Code::kStreamClosed);
  EXPECT_TRUE(peer.alive());
  EXPECT_EQ(places(), 0U);
}

TEST_F(H2Linger, TheSessionFinishesWhenTheLastOneIsCutOff) {
  answer_early(1);
  peer.session().shut_down();
  peer.drain();
  EXPECT_FALSE(peer.session().finished());
  for (int i = 1; i <= 2; ++i) {
    peer.now += milliseconds(250);
    peer.session().expire(peer.now);
    peer.drain();
  }
  EXPECT_TRUE(peer.session().finished());
}

class H2LingerHeld : public H2Linger {
 protected:
  H2LingerHeld() : H2Linger(false) {}
};

TEST_F(H2LingerHeld, ThePlaceIsTakenUntilBothAreDone) {
  answer_early(1);
  answer_early(3);
  peer.session().release(3);
  EXPECT_EQ(places(), 2U) << "the peer may still send to both";
  peer.send(data(1, "x", kEnd) + data(3, "x", kEnd));
  EXPECT_EQ(places(), 1U) << "one is held by its owner";
  peer.session().release(1);
  EXPECT_EQ(places(), 0U);
}

}  // namespace
}  // namespace weir::inline v0::http::h2
