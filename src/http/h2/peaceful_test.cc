#include <string>

#include <gtest/gtest.h>

#include "http/h2/session_testing.h"

/// Behaviour of valid clients that other servers have punished: the connection must stay open.

namespace weir::inline v0::http::h2 {
namespace {

using namespace wire;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(H2Peaceful, ABrowserThatCancelsAHundredStreams) {
  TestPeer peer({}, quiet());
  peer.handshake();
  for (int i = 0; i < 100; ++i) peer.send(headers(id_of(i), get()));
  for (int i = 0; i < 100; ++i) peer.send(rst(id_of(i)));
  EXPECT_TRUE(peer.alive());
  EXPECT_FALSE(peer.goaway_code());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(peer.streams[id_of(i)].end, StreamEnd::kPeerReset);
  peer.send(headers(id_of(100), get()));
  EXPECT_EQ(peer.streams.size(), 101U);
}

TEST(H2Peaceful, AClientThatResetsAfterEachReply) {
  TestPeer peer;
  peer.handshake();
  for (int i = 0; i < 5000; ++i) {
    peer.send(headers(id_of(i), get()));
    ASSERT_EQ(peer.status_of(id_of(i)), "200") << i;
    peer.send(rst(id_of(i)));
    peer.now += milliseconds(20);
    peer.frames.clear();
  }
  EXPECT_TRUE(peer.alive());
  EXPECT_EQ(peer.session().stats(peer.now).glitch_score, 0);
  EXPECT_EQ(peer.all_glitches(), 0U);
}

TEST(H2Peaceful, AClientThatResetsInTheMiddleOfEachReply) {
  PeerOptions options;
  options.body = std::string(100'000, 'x');
  TestPeer peer({}, options);
  peer.handshake();
  for (int i = 0; i < 5000; ++i) {
    peer.send(headers(id_of(i), get()) + rst(id_of(i)) + window_update(0, 65'535));
    peer.now += milliseconds(20);
    ASSERT_TRUE(peer.alive()) << i;
    peer.frames.clear();
  }
  EXPECT_FALSE(peer.goaway_code());
  EXPECT_EQ(peer.glitches(H2Glitch::kEarlyReset), 0U) << "we had begun to answer";
}

TEST(H2Peaceful, ContinuationByteByByte) {
  TestPeer peer;
  peer.handshake();
  const std::string rest = block({{"x-a", std::string(3000, 'x')}, {"x-b", "2"}});
  peer.send_by_byte(headers_raw(1, block(get()), kEnd) + continuation(1, rest.substr(0, 2000), 0) +
                    continuation(1, rest.substr(2000)));
  EXPECT_TRUE(peer.alive());
  EXPECT_EQ(peer.status_of(1), "200");
  EXPECT_EQ(peer.all_glitches(), 0U);
}

TEST(H2Peaceful, AnUploadInTheFirstFlight) {
  // Before a client has received our SETTINGS, it may send 65535 bytes.
  PeerOptions options;
  options.acknowledge = false;
  TestPeer peer({}, options);
  std::string first = preface() + settings() + headers(1, post(), 0);
  std::string body;
  for (int i = 0; i < 4; ++i) {
    const std::string piece(i < 3 ? 16'384 : 16'383, static_cast<char>('a' + i));
    body += piece;
    first += data(1, piece, i == 3 ? kEnd : 0);
  }
  peer.send(first);
  EXPECT_TRUE(peer.alive());
  EXPECT_EQ(peer.streams[1].body, body);
  EXPECT_EQ(peer.status_of(1), "200");
  EXPECT_EQ(peer.all_glitches(), 0U);
}

TEST(H2Peaceful, ALongUploadIsGrantedAsItIsTaken) {
  TestPeer peer;
  peer.handshake();
  peer.send(headers(1, post(), 0));
  std::int64_t stream_window = 16'384;
  std::int64_t connection_window = 65'535;
  std::size_t sent = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto n = static_cast<std::size_t>(
        std::min<std::int64_t>({stream_window, connection_window, std::int64_t{10'000}}));
    ASSERT_GT(n, 0U) << "a window never closes for an owner who takes everything";
    peer.send(data(1, std::string(n, 'x')));
    sent += n;
    stream_window -= static_cast<std::int64_t>(n);
    connection_window -= static_cast<std::int64_t>(n);
    for (const OutFrame& f : peer.frames) {
      if (!f.header.is(FrameType::kWindowUpdate)) continue;
      (f.header.stream == 0 ? connection_window : stream_window) += f.word(0);
    }
    peer.frames.clear();
  }
  peer.send(data(1, "", kEnd));
  EXPECT_EQ(peer.streams[1].body.size(), sent);
  EXPECT_EQ(peer.all_glitches(), 0U);
}

TEST(H2Peaceful, ABrowserWithPrioritiesAndHints) {
  TestPeer peer;
  peer.handshake();
  for (StreamId id = 3; id <= 13; id += 2) peer.send(priority(id, 0));  // a tree of idle streams
  for (int i = 10; i < 2000; ++i) {
    const StreamId id = id_of(i);
    peer.send(headers(id, get()) + priority(id, 0) + priority(id, 3) +
              frame(0x10, 0, 0, u32(id) + "u=1") + window_update(0, 100));
    peer.frames.clear();
    ASSERT_TRUE(peer.alive()) << i;
  }
  EXPECT_EQ(peer.all_glitches(), 0U);
}

TEST(H2Peaceful, AClientThatPingsForEachDataFrame) {
  PeerOptions options;
  options.body = std::string(60'000, 'x');
  TestPeer peer({}, options);
  peer.handshake();
  for (int i = 0; i < 1000; ++i) {
    peer.send(headers(id_of(i), get()));
    for (int k = 0; k < 4; ++k) peer.send(ping());
    peer.send(window_update(0, 60'000));
    peer.frames.clear();
  }
  EXPECT_TRUE(peer.alive());
  EXPECT_EQ(peer.all_glitches(), 0U);
}

TEST(H2Peaceful, LateFramesAfterWeRefusedAnUpload) {
  PeerOptions options = quiet();
  TestPeer peer({}, options);
  peer.handshake();
  for (int i = 0; i < 50; ++i) {
    const StreamId id = id_of(i);
    peer.send(headers(id, post(), 0));
    peer.respond(id, "", {}, 503);
    peer.drain();
    EXPECT_EQ(peer.streams[id].end, StreamEnd::kDone);
    // The client has not received the response yet, nor the reset at half of the window.
    for (int k = 0; k < 16; ++k) {
      peer.send(data(id, std::string(1000, 'x')));
      EXPECT_EQ(peer.reset_code(id).has_value(), k >= 8) << k;
    }
    EXPECT_EQ(peer.reset_code(id), ErrorCode::kNoError) << "stop sending, nothing is wrong";
    peer.send(data(id, "", kEnd) + rst(id));
    peer.frames.clear();
  }
  EXPECT_TRUE(peer.alive());
  EXPECT_EQ(peer.all_glitches(), 0U);
}

TEST(H2Peaceful, OneEmptyDataFrameBetweenOthers) {
  TestPeer peer;
  peer.handshake().send(headers(1, post(), 0));
  for (int i = 0; i < 100; ++i) peer.send(data(1, "x") + data(1, ""));
  peer.send(data(1, "", kEnd));
  EXPECT_EQ(peer.status_of(1), "200");
  EXPECT_EQ(peer.all_glitches(), 0U);
}

TEST(H2Peaceful, TenThousandRequestsLeaveNothingBehind) {
  TestPeer peer;
  peer.handshake();
  peer.send(headers(1, get()));
  const std::size_t before = peer.session().stats(peer.now).memory_used;
  for (int i = 1; i < 10'000; ++i) {
    peer.send(headers(id_of(i), get()) + window_update(0, 2));
    peer.frames.clear();
    peer.responses.clear();
    peer.streams.clear();
  }
  EXPECT_TRUE(peer.alive());
  EXPECT_EQ(peer.session().stats(peer.now).memory_used, before);
  EXPECT_EQ(peer.all_glitches(), 0U);
}

TEST(H2Peaceful, GracefulShutdownServesWhatIsOnItsWay) {
  TestPeer peer({}, quiet());
  peer.handshake().send(headers(1, get()));
  peer.session().announce_shutdown();
  peer.drain();
  ASSERT_EQ(peer.count(FrameType::kGoaway), 1U);
  EXPECT_EQ(peer.frames.back().word(0), 0x7fffffffU);
  EXPECT_EQ(peer.goaway_code(), ErrorCode::kNoError);
  peer.send(headers(3, get()));
  EXPECT_EQ(peer.streams.size(), 2U) << "it had not seen the notice";
  peer.session().shut_down();
  peer.drain();
  EXPECT_EQ(peer.frames.back().word(0), 3U);
  peer.send(headers(5, get()) + headers(7, post(), 0) + data(7, "x", kEnd));
  EXPECT_EQ(peer.streams.size(), 2U) << "nothing new";
  EXPECT_FALSE(peer.session().finished());
  peer.respond(1, "one");
  peer.respond(3, "three");
  peer.drain();
  EXPECT_EQ(peer.responses[1].body, "one");
  EXPECT_EQ(peer.responses[3].body, "three");
  EXPECT_TRUE(peer.session().finished());
  EXPECT_EQ(peer.ended(), SessionEnd::kFinished);
}

TEST(H2Peaceful, AfterItsGoawayAClientIsServedToTheEnd) {
  TestPeer peer({}, quiet());
  peer.handshake().send(headers(1, get()) + goaway(0, 0));
  EXPECT_TRUE(peer.session().peer_is_leaving());
  EXPECT_FALSE(peer.session().finished());
  peer.respond(1, "bye");
  peer.drain();
  EXPECT_EQ(peer.responses[1].body, "bye");
  EXPECT_TRUE(peer.session().finished());
}

}  // namespace
}  // namespace weir::inline v0::http::h2
