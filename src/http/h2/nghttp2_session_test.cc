#include <gtest/gtest.h>

#include "http/h2/session_testing.h"

namespace weir::inline v0::http::h2 {
namespace {

using namespace wire;
using std::chrono::seconds;

constexpr std::size_t kAlignUnit = sizeof(std::max_align_t);
static_assert(kAlignUnit >= 16);

TEST(H2Session, SpeaksFirst) {
  TestPeer peer;
  peer.drain();
  ASSERT_EQ(peer.frames.size(), 1U);
  EXPECT_TRUE(peer.frames[0].header.is(FrameType::kSettings));
  // MAX_CONCURRENT_STREAMS 100, INITIAL_WINDOW_SIZE 16384, MAX_HEADER_LIST_SIZE 16384,
  // NO_RFC7540_PRIORITIES 1
  EXPECT_EQ(peer.frames[0].payload,
            u16(3) + u32(100) + u16(4) + u32(16384) + u16(6) + u32(16384) + u16(9) + u32(1));
}

TEST(H2Session, AnnouncesExtendedConnectIfItsOwnerCanServeIt) {
  H2Limits limits;
  limits.extended_connect = true;
  TestPeer peer(limits);
  peer.drain();
  ASSERT_EQ(peer.frames.size(), 1U);
  EXPECT_EQ(peer.frames[0].payload, u16(3) + u32(100) + u16(4) + u32(16384) + u16(6) + u32(16384) +
                                        u16(9) + u32(1) + u16(8) + u32(1));
}

TEST(H2Session, AnswersARequest) {
  TestPeer peer;
  peer.handshake().send(headers(1, get("/x?y=1")));
  EXPECT_TRUE(peer.alive());
  const SeenStream& stream = peer.streams[1];
  EXPECT_EQ(stream.method, "GET");
  EXPECT_EQ(stream.path, "/x?y=1");
  EXPECT_EQ(stream.authority, "a");
  EXPECT_TRUE(stream.end_stream);
  EXPECT_EQ(stream.body_length, 0U);
  EXPECT_EQ(peer.status_of(1), "200");
  EXPECT_EQ(peer.responses[1].body, "ok");
  EXPECT_TRUE(peer.responses[1].ended);
  EXPECT_TRUE(stream.ended);
  EXPECT_EQ(stream.end, StreamEnd::kDone);
  EXPECT_EQ(peer.session().stats(peer.now).streams, 0U);
  EXPECT_EQ(peer.all_glitches(), 0U);
}

TEST(H2Session, TakesABodyAndTrailers) {
  TestPeer peer;
  peer.handshake()
      .send(headers(1, with(post(), {{"content-length", "10"}}), 0))
      .send(data(1, "hello") + data(1, "world"))
      .send(headers(1, {{"x-sum", "1"}}));
  const SeenStream& stream = peer.streams[1];
  EXPECT_EQ(stream.body_length, 10U);
  EXPECT_EQ(stream.body, "helloworld");
  EXPECT_TRUE(stream.complete);
  EXPECT_EQ(stream.trailers, (Fields{{"x-sum", "1"}}));
  EXPECT_EQ(peer.status_of(1), "200");
}

TEST(H2Session, SendsALargeBodyAsTheWindowsAllow) {
  PeerOptions options;
  options.body = std::string(200'000, 'x');
  TestPeer peer({}, options);
  peer.handshake().send(headers(1, get()));
  EXPECT_EQ(peer.responses[1].body.size(), 65535U) << "both windows";
  for (const OutFrame& f : peer.frames) EXPECT_LE(f.header.length, 16384U);
  peer.send(window_update(1, 100'000));
  EXPECT_EQ(peer.responses[1].body.size(), 65535U) << "the connection's window is closed";
  peer.send(window_update(0, 50'000));
  EXPECT_EQ(peer.responses[1].body.size(), 115'535U);
  peer.send(window_update(0, 500'000) + window_update(1, 500'000));
  EXPECT_EQ(peer.responses[1].body, options.body);
  EXPECT_TRUE(peer.responses[1].ended);
}

TEST(H2Session, SendsTrailersWithoutAnEmptyDataFrame) {
  PeerOptions options;
  options.answer = false;
  TestPeer peer({}, options);
  peer.handshake().send(headers(1, get()));
  ASSERT_EQ(peer.session().submit_head(1, {200, {}, false}), SubmitStatus::kOk);
  peer.drain();
  std::array<std::byte, 12> frame{};
  ASSERT_TRUE(
      peer.session().write_data(1, {std::span<std::byte, 9>(frame.data(), 9), 3, false}, peer.now));
  EXPECT_EQ(read_frame_header(reinterpret_cast<std::uint8_t*>(frame.data())),
            (FrameHeader{.length = 3, .type = 0, .flags = 0, .stream = 1}));
  const std::array<Field, 1> trailers = {{{"grpc-status", "0"}}};
  ASSERT_EQ(peer.session().submit_trailers(1, trailers), SubmitStatus::kOk);
  EXPECT_EQ(peer.session().submit_trailers(1, trailers), SubmitStatus::kClosed);
  peer.drain();
  EXPECT_EQ(peer.count(FrameType::kData), 0U);
  ASSERT_EQ(peer.count(FrameType::kHeaders), 2U);
  EXPECT_TRUE(peer.frames.back().header.has(flag::kEndStream));
  EXPECT_EQ(peer.responses[1].fields.back(),
            (std::pair<std::string, std::string>("grpc-status", "0")));
  EXPECT_TRUE(peer.streams[1].ended);
}

TEST(H2Session, MemoryOfAnIdleSessionIsSmall) {
  TestPeer peer;
  peer.handshake();
  const SessionStats stats = peer.session().stats(peer.now);
  RecordProperty("used", static_cast<int>(stats.memory_used));
  RecordProperty("own", static_cast<int>(sizeof(Nghttp2Session)));
  EXPECT_LT(stats.memory_used, 28U * 1024);
  EXPECT_EQ(stats.outbound_frames, 0U);
}

/// The memory of an idle connection in pages: one for the session and its first streams, three for
/// the library, which include the beginning of its output buffer.
TEST(H2Session, AfterSmallRequestsFourPagesAreInUse) {
  TestPeer peer;
  peer.handshake();
  EXPECT_EQ(peer.touched_pages(), 4U);
  for (StreamId id = 1; id < 20; id += 2) {
    peer.send(headers(id, get("/page?number=1")));
    EXPECT_EQ(peer.status_of(id), "200");
  }
  EXPECT_EQ(peer.touched_pages(), 4U);
}

}  // namespace
}  // namespace weir::inline v0::http::h2
