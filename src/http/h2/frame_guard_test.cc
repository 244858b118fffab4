#include "http/h2/frame_guard.h"

#include <vector>

#include <gtest/gtest.h>

namespace weir::inline v0::http::h2 {
namespace {

using Action = Judgement::Action;

constexpr TimePoint kNow = time_from_ns(1'000'000'000);

/// A guard without a codec.
struct Guard {
  explicit Guard(const H2Limits& given = {}, Side side = Side::kServer)
      : limits(given),
        words(StreamTable::bytes_for(given.concurrent_streams_max) / 8 + 1),
        guard(limits, words.data(), side) {
    static_cast<void>(judge(FrameType::kSettings, 0, 0, 0));
  }
  Judgement judge(FrameType type, std::uint8_t flags, StreamId stream, std::uint32_t length,
                  std::vector<std::uint8_t> prefix = {}) {
    const FrameHeader header{length, static_cast<std::uint8_t>(type), flags, stream};
    prefix.resize(FrameGuard::prefix_bytes(header));
    return guard.judge(header, prefix, kNow);
  }
  Judgement headers(StreamId stream, std::uint8_t flags = flag::kEndStream | flag::kEndHeaders) {
    return judge(FrameType::kHeaders, flags, stream, 10);
  }

  H2Limits limits;
  std::vector<std::uint64_t> words;
  FrameGuard guard;
};

TEST(FrameGuard, AsksForTheBytesItJudgesBy) {
  const auto prefix = [](FrameType type, std::uint8_t flags, std::uint32_t length) {
    return FrameGuard::prefix_bytes({length, static_cast<std::uint8_t>(type), flags, 1});
  };
  EXPECT_EQ(prefix(FrameType::kData, 0, 100), 0U);
  EXPECT_EQ(prefix(FrameType::kData, flag::kPadded, 100), 1U);
  EXPECT_EQ(prefix(FrameType::kData, flag::kPadded, 0), 0U);
  EXPECT_EQ(prefix(FrameType::kHeaders, flag::kPriority | flag::kPadded, 100), 6U);
  EXPECT_EQ(prefix(FrameType::kHeaders, flag::kPriority, 3), 3U);
  EXPECT_EQ(prefix(FrameType::kPriority, 0, 5), 5U);
  EXPECT_EQ(prefix(FrameType::kPriority, 0, 9000), 5U);
  EXPECT_EQ(prefix(FrameType::kWindowUpdate, 0, 4), 4U);
  EXPECT_EQ(prefix(FrameType::kSettings, 0, 600), 0U);
}

TEST(FrameGuard, TheFirstFrameIsSettings) {
  for (const auto& [type, flags] : std::vector<std::pair<FrameType, std::uint8_t>>{
           {FrameType::kPing, 0}, {FrameType::kHeaders, 4}, {FrameType::kSettings, flag::kAck}}) {
    const H2Limits limits;
    std::vector<std::uint64_t> words(StreamTable::bytes_for(limits.concurrent_streams_max));
    FrameGuard guard(limits, words.data());
    const Judgement j = guard.judge({0, static_cast<std::uint8_t>(type), flags, 0}, {}, kNow);
    EXPECT_EQ(j.action, Action::kEnd);
    EXPECT_EQ(j.code, ErrorCode::kProtocolError);
  }
}

TEST(FrameGuard, CountsTheConnectionWindowItself) {
  Guard g;
  g.headers(1, flag::kEndHeaders);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(g.judge(FrameType::kData, 0, 1, 16384).action, Action::kPass);
  EXPECT_EQ(g.judge(FrameType::kData, 0, 1, 16384).end, SessionEnd::kFlowControl);

  Guard h;
  h.headers(1, flag::kEndHeaders);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(h.judge(FrameType::kData, 0, 1, 16384).action, Action::kPass);
    h.guard.on_window_sent(0, 16384);
    h.guard.on_window_sent(1, 16384);
  }
}

TEST(FrameGuard, StreamWindowsShrinkWhenOurSettingsAreAcknowledged) {
  Guard g;
  g.headers(1, flag::kEndHeaders);
  EXPECT_EQ(g.judge(FrameType::kData, 0, 1, 16384).reset, 0U);
  g.guard.on_settings_acked();  // 65535 becomes 16384: the window is used up
  const Judgement j = g.judge(FrameType::kData, 0, 1, 1);
  EXPECT_EQ(j.reset, 1U);
  EXPECT_EQ(j.code, ErrorCode::kFlowControlError);
  EXPECT_EQ(j.action, Action::kPass) << "the codec counts the connection's window";
  g.headers(3, flag::kEndHeaders);
  EXPECT_EQ(g.judge(FrameType::kData, 0, 3, 16384).reset, 0U);
  EXPECT_EQ(g.judge(FrameType::kData, 0, 3, 1).reset, 3U);
}

TEST(FrameGuard, AfterGoawayNewStreamsAreLateFrames) {
  Guard g;
  g.headers(1);
  g.guard.on_goaway_sent(1);
  EXPECT_EQ(g.headers(3).action, Action::kPass) << "the codec must decode it";
  EXPECT_EQ(g.guard.streams().find(3), nullptr);
  EXPECT_EQ(g.judge(FrameType::kData, 0, 3, 5).action, Action::kPass);
  EXPECT_EQ(g.guard.score().score(kNow), 0);
}

TEST(FrameGuard, LateFramesAreFreeAsLongAsTheyAreFew) {
  Guard g;
  g.headers(1, flag::kEndHeaders);
  Stream* stream = g.guard.streams().find(1);
  stream->open = false;
  g.guard.on_closed(1, ClosedHow::kResetByUs);
  g.guard.streams().close(*stream);
  for (int i = 0; i < 64 + 16; ++i) {
    EXPECT_EQ(g.judge(FrameType::kData, 0, 1, 1).action, Action::kPass);
    ASSERT_EQ(g.guard.score().count(H2Glitch::kClosedStreamFrame), 0U) << i;
  }
  EXPECT_EQ(g.judge(FrameType::kData, 0, 1, 1).action, Action::kPass);
  EXPECT_EQ(g.guard.score().count(H2Glitch::kClosedStreamFrame), 1U);
}

TEST(FrameGuard, AStreamThatTheOwnerHoldsIsClosedAllTheSame) {
  Guard g;
  g.headers(1);
  Stream* stream = g.guard.streams().find(1);
  stream->open = false;  // answered; its owner has not released it yet
  stream->held = true;
  g.guard.on_closed(1, ClosedHow::kEnded);
  EXPECT_EQ(g.headers(1).end, SessionEnd::kStreamClosed);
}

TEST(FrameGuard, ABadPriorityIsAnsweredAlsoWhenItsStreamIsJustOver) {
  Guard g;
  g.headers(1);
  Stream* stream = g.guard.streams().find(1);
  stream->open = false;
  g.guard.on_closed(1, ClosedHow::kEnded);
  g.guard.streams().close(*stream);
  const Judgement length = g.judge(FrameType::kPriority, 0, 1, 4);
  EXPECT_EQ(length.reset, 1U);
  EXPECT_EQ(length.code, ErrorCode::kFrameSizeError);
  EXPECT_EQ(length.action, Action::kSkip);
  const Judgement itself = g.judge(FrameType::kPriority, 0, 1, 5, {0, 0, 0, 1, 9});
  EXPECT_EQ(itself.reset, 1U);
  EXPECT_EQ(itself.code, ErrorCode::kProtocolError);
  EXPECT_EQ(g.guard.score().count(H2Glitch::kBadPriority), 1U);
  EXPECT_EQ(g.guard.score().count(H2Glitch::kSelfDependency), 1U);
  const Judgement good = g.judge(FrameType::kPriority, 0, 1, 5, {0, 0, 0, 3, 9});
  EXPECT_EQ(good.reset, 0U);
}

TEST(FrameGuard, SettingsPayloadsAreBounded) {
  Guard g;
  EXPECT_EQ(g.judge(FrameType::kSettings, 0, 0, 32 * 6).action, Action::kPass);
  EXPECT_EQ(g.judge(FrameType::kSettings, 0, 0, 33 * 6).end, SessionEnd::kSettings);
}

TEST(FrameGuard, HeaderBlockBytesAndFragments) {
  H2Limits limits;
  limits.header_block_bytes_max = 1000;
  limits.header_fragments_max = 3;
  limits.small_fragment_bytes = 0;
  Guard g(limits);
  EXPECT_EQ(g.judge(FrameType::kHeaders, 0, 1, 600).action, Action::kPass);
  EXPECT_TRUE(g.guard.in_header_block());
  EXPECT_EQ(g.judge(FrameType::kContinuation, 0, 1, 400).action, Action::kPass);
  EXPECT_EQ(g.judge(FrameType::kContinuation, flag::kEndHeaders, 1, 0).action, Action::kPass);
  EXPECT_FALSE(g.guard.in_header_block());
  EXPECT_EQ(g.judge(FrameType::kHeaders, 0, 3, 600).action, Action::kPass) << "counted anew";
  EXPECT_EQ(g.judge(FrameType::kContinuation, 0, 3, 401).end, SessionEnd::kHeaderBlock);

  Guard h(limits);
  h.judge(FrameType::kHeaders, 0, 1, 1);
  h.judge(FrameType::kContinuation, 0, 1, 1);
  h.judge(FrameType::kContinuation, 0, 1, 1);
  EXPECT_EQ(h.judge(FrameType::kContinuation, 0, 1, 1).end, SessionEnd::kHeaderBlock);
}

/// A client's guard with one request that was sent.
struct ClientGuard : Guard {
  ClientGuard() : Guard({}, Side::kClient) { open(1); }
  Stream& open(StreamId id) {
    Stream* stream = guard.open_own(id);
    guard.on_own_sent(id);
    return *stream;
  }
};

TEST(FrameGuardOfAClient, OnlySentStreamsAreAnswered) {
  ClientGuard g;
  EXPECT_EQ(g.headers(1, flag::kEndHeaders).action, Action::kPass);
  EXPECT_EQ(g.headers(3, flag::kEndHeaders).end, SessionEnd::kProtocolError);
  ClientGuard h;
  ASSERT_NE(h.guard.open_own(3), nullptr);
  EXPECT_EQ(h.headers(3, flag::kEndHeaders).end, SessionEnd::kProtocolError) << "not sent yet";
  ClientGuard skipped;
  skipped.open(5);
  EXPECT_EQ(skipped.headers(3, flag::kEndHeaders).end, SessionEnd::kProtocolError) << "withdrawn";
}

TEST(FrameGuardOfAClient, HeadsMayPrecedeTheFinalHeadAndTrailersMustEnd) {
  ClientGuard g;
  EXPECT_EQ(g.headers(1, flag::kEndHeaders).reset, 0U);
  EXPECT_EQ(g.headers(1, flag::kEndHeaders).reset, 0U) << "the first was a 1xx";
  EXPECT_EQ(g.judge(FrameType::kData, 0, 1, 1).reset, 1U) << "no final head";
  ClientGuard h;
  h.guard.streams().find(1)->has_head = true;
  EXPECT_EQ(h.judge(FrameType::kData, 0, 1, 1).reset, 0U);
  EXPECT_EQ(h.headers(1, flag::kEndHeaders).reset, 1U);
}

TEST(FrameGuardOfAClient, TheFirstWindowIsOurs) {
  ClientGuard g;
  g.guard.streams().find(1)->has_head = true;
  EXPECT_EQ(g.judge(FrameType::kData, 0, 1, 16384).reset, 0U);
  const Judgement j = g.judge(FrameType::kData, 0, 1, 1);
  EXPECT_EQ(j.reset, 1U);
  EXPECT_EQ(j.code, ErrorCode::kFlowControlError) << "before SETTINGS are acknowledged, too";
}

TEST(FrameGuardOfAClient, AResetStreamMayUseUpItsWindowInSmallFrames) {
  ClientGuard g;
  Stream* stream = g.guard.streams().find(1);
  stream->open = false;
  g.guard.on_closed(1, ClosedHow::kResetByUs);
  g.guard.streams().close(*stream);
  for (int i = 0; i < 64 + 16 + 16384 / 64; ++i)
    static_cast<void>(g.judge(FrameType::kData, 0, 1, 1));
  EXPECT_EQ(g.guard.score().count(H2Glitch::kClosedStreamFrame), 0U);
  static_cast<void>(g.judge(FrameType::kData, 0, 1, 1));
  EXPECT_EQ(g.guard.score().count(H2Glitch::kClosedStreamFrame), 1U);
}

TEST(FrameGuardOfAClient, PongsPassWhileOneIsExpected) {
  ClientGuard g;
  EXPECT_EQ(g.judge(FrameType::kPing, flag::kAck, 0, 8).action, Action::kSkip);
  g.guard.on_ping_sent();
  EXPECT_EQ(g.judge(FrameType::kPing, flag::kAck, 0, 8).action, Action::kPass);
  g.guard.on_pong();
  EXPECT_EQ(g.judge(FrameType::kPing, flag::kAck, 0, 8).action, Action::kSkip);
}

}  // namespace
}  // namespace weir::inline v0::http::h2
