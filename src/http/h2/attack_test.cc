#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "http/h2/session_testing.h"

/// Attacks on one connection and their bounds. Each test asserts the bound (memory, frames,
/// streams), the counter that rose and the answer on the wire.

namespace weir::inline v0::http::h2 {
namespace {

using namespace wire;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Code = ErrorCode;

/// A peer that never reads our output.
PeerOptions deaf() {
  PeerOptions options;
  options.drain = false;
  options.acknowledge = false;
  return options;
}

/// Sends `attack(i)` until the session ends; returns the number of rounds.
template <class F>
int rounds_until_closed(TestPeer& peer, F attack, int most = 20'000) {
  int i = 0;
  while (i < most && peer.alive()) peer.send(attack(i++));
  return i;
}

void expect_closed_for_glitches(TestPeer& peer, H2Glitch glitch) {
  // If nothing is in flight, the GOAWAY at three quarters of the limit ends the session.
  EXPECT_TRUE(peer.ended() == SessionEnd::kGlitches || peer.ended() == SessionEnd::kFinished);
  EXPECT_EQ(peer.goaway_code(), Code::kEnhanceYourCalm);
  EXPECT_GT(peer.glitches(glitch), 100U) << name_of(glitch);
  EXPECT_TRUE(peer.session().finished());
}

// ---- Rapid reset and similar attacks
// -------------------------------------------------------------

TEST(H2Attack, RapidResetEndsWithGoaway) {
  TestPeer peer({}, quiet());
  peer.handshake();
  const int rounds = rounds_until_closed(peer, [&](int i) {
    EXPECT_LE(peer.session().stats(peer.now).streams, 100U);
    return headers(id_of(i), get()) + rst(id_of(i));
  });
  EXPECT_EQ(rounds, 750) << "nothing was in flight at three quarters";
  EXPECT_EQ(peer.ended(), SessionEnd::kFinished);
  expect_closed_for_glitches(peer, H2Glitch::kEarlyReset);
}

TEST(H2Attack, RapidResetBesideARequestIsToldToStopAndThenClosed) {
  TestPeer peer({}, quiet());
  peer.handshake().send(headers(1, get()));
  int goaway_at = 0;
  const int rounds = rounds_until_closed(peer, [&](int i) {
    if (goaway_at == 0 && peer.goaway_code()) goaway_at = i;
    return headers(id_of(i + 1), get()) + rst(id_of(i + 1));
  });
  EXPECT_EQ(goaway_at, 750);
  EXPECT_LT(rounds, 1000) << "after it new streams are only late frames: the first ones free";
  EXPECT_EQ(peer.ended(), SessionEnd::kGlitches);
  EXPECT_EQ(peer.streams.size(), 751U) << "no request after the GOAWAY reached the owner";
  EXPECT_EQ(peer.frames.back().word(0), 1501U) << "and the last one says which did";
}

TEST(H2Attack, AResetStreamKeepsItsPlaceUntilItsOwnerIsDone) {
  PeerOptions options = quiet();
  options.release = false;  // the upstream still processes it
  TestPeer peer({}, options);
  peer.handshake();
  for (int i = 0; i < 300; ++i) {
    peer.send(headers(id_of(i), get()) + rst(id_of(i)));
    ASSERT_LE(peer.session().stats(peer.now).streams, 100U);
  }
  EXPECT_EQ(peer.streams.size(), 100U) << "no more than 100 ever in flight";
  EXPECT_EQ(peer.glitches(H2Glitch::kRefusedStream), 200U);
  EXPECT_EQ(peer.reset_code(id_of(150)), Code::kRefusedStream);
  peer.session().release(1);
  peer.send(headers(id_of(300), get()));
  EXPECT_EQ(peer.streams.size(), 101U) << "the place is free again";
}

/// The client sent the frames after the head before it could read our reset.
TEST(H2Attack, AStreamTooManyWithItsBodyInOneFlightIsRefusedAlone) {
  TestPeer peer({}, quiet());
  peer.handshake();
  for (int i = 0; i < 100; ++i) peer.send(headers(id_of(i), get()));
  for (int i = 100; i < 110; ++i) {
    const StreamId id = id_of(i);
    peer.send(headers(id, post(), 0) + window_update(id, 1) + data(id, std::string(16000, 'x')) +
              headers(id, {{"x-trailer", "t"}}));
    ASSERT_TRUE(peer.alive()) << i << ": nor does the connection's window shrink with each";
    EXPECT_EQ(peer.reset_code(id), Code::kRefusedStream);
  }
  EXPECT_EQ(peer.streams.size(), 100U);
  EXPECT_EQ(peer.glitches(H2Glitch::kRefusedStream), 10U);
  EXPECT_EQ(peer.glitches(H2Glitch::kClosedStreamFrame), 0U);
}

struct Primitive {
  const char* name;
  H2Glitch glitch;
  std::string (*attack)(StreamId);
  Code code;
};

class MadeYouReset : public testing::TestWithParam<Primitive> {};

/// The client never sends RST_STREAM; it makes the server send it.
TEST_P(MadeYouReset, CountsInTheSameScore) {
  const Primitive& p = GetParam();
  TestPeer peer({}, quiet());
  peer.handshake();
  bool reset = false;
  rounds_until_closed(peer, [&](int i) {
    if (i == 1) reset = peer.reset_code(1) == p.code;
    EXPECT_LE(peer.session().stats(peer.now).streams, 101U);
    return p.attack(id_of(i));
  });
  EXPECT_TRUE(reset) << "the stream is reset, with the right code";
  expect_closed_for_glitches(peer, p.glitch);
  EXPECT_LE(peer.streams.size(), 750U);
}

INSTANTIATE_TEST_SUITE_P(
    H2Attack, MadeYouReset,
    testing::Values(
        Primitive{"WindowUpdateZero", H2Glitch::kWindowUpdateZero,
                  [](StreamId id) { return headers(id, get()) + window_update(id, 0); },
                  Code::kProtocolError},
        Primitive{"WindowUpdateOverflow", H2Glitch::kWindowOverflow,
                  [](StreamId id) { return headers(id, get()) + window_update(id, 0x7fffffff); },
                  Code::kFlowControlError},
        Primitive{"PriorityOfWrongLength", H2Glitch::kBadPriority,
                  [](StreamId id) { return headers(id, get()) + frame(2, 0, id, "abcd"); },
                  Code::kFrameSizeError},
        Primitive{"PriorityOnItself", H2Glitch::kSelfDependency,
                  [](StreamId id) { return headers(id, get()) + priority(id, id); },
                  Code::kProtocolError},
        Primitive{"MalformedRequest", H2Glitch::kMalformedMessage,
                  [](StreamId id) {
                    return headers(id, with(get(), {{"a", "\n"}}));
                  },
                  Code::kProtocolError},
        Primitive{
            "ContentLengthMismatch", H2Glitch::kContentLengthMismatch,
            [](StreamId id) {
              return headers(id, with(post(), {{"content-length", "1"}}), 0) + data(id, "ab", kEnd);
            },
            Code::kProtocolError},
        Primitive{"StreamWindowExceeded", H2Glitch::kFlowControl,
                  [](StreamId id) {
                    return headers(id, post(), 0) + data(id, std::string(16384, 'x')) +
                           data(id, "x");
                  },
                  Code::kFlowControlError}),
    [](const auto& one) { return one.param.name; });

/// The two other primitives send frames on half-closed streams, which ends the connection.
TEST(H2Attack, FramesAfterTheEndOfTheRequestEndTheConnection) {
  for (const std::string& more : {data(1, "x", kEnd), headers(1, get())}) {
    TestPeer peer({}, quiet());
    peer.handshake().send(headers(1, get()) + more);
    EXPECT_EQ(peer.ended(), SessionEnd::kStreamClosed);
    EXPECT_EQ(peer.goaway_code(), Code::kStreamClosed);
  }
}

TEST(H2Attack, StreamWindowExceededMayGrantNothing) {
  PeerOptions options = quiet();
  options.grant = false;
  TestPeer peer({}, options);
  peer.handshake().send(headers(1, post(), 0) + data(1, "hello"));
  EXPECT_EQ(peer.glitches(H2Glitch::kUngrantedData), 1U);
  EXPECT_EQ(peer.reset_code(1), Code::kRefusedStream);
  EXPECT_EQ(peer.streams[1].body, "");
  EXPECT_EQ(peer.streams[1].end, StreamEnd::kReset);
  // Body bytes that still arrive are discarded, and the connection's window is returned.
  std::size_t returned = 0;
  for (int i = 0; i < 8; ++i) {
    peer.send(headers(id_of(i + 1), post(), 0) + data(id_of(i + 1), std::string(16384, 'x')));
    ASSERT_TRUE(peer.alive()) << i;
  }
  for (const OutFrame& f : peer.frames)
    if (f.header.is(FrameType::kWindowUpdate) && f.header.stream == 0) returned += f.word(0);
  EXPECT_GE(returned, 5U * 16384);
}

// ---- Floods that the library does not count -----------------------------------------------------

TEST(H2Attack, UnacknowledgedSettingsAndRefusedStreamsHoldNoMemory) {
  TestPeer peer({}, deaf());
  peer.handshake();
  StreamId next = 1;
  for (int i = 0; i < 50'000 && peer.alive() && !peer.blocked; ++i, next += 2) {
    peer.send(headers(next, get(), 0));
    ASSERT_LE(peer.session().stats(peer.now).outbound_frames, 64U);
  }
  EXPECT_TRUE(peer.blocked) << "nothing is read any more until the peer reads";
  EXPECT_LT(next, 400U);
  const std::size_t before = peer.session().stats(peer.now).memory_used;
  for (int i = 0; i < 1000; ++i) peer.send(headers(next, get(), 0));
  EXPECT_EQ(peer.session().stats(peer.now).memory_used, before);
  peer.session().expire(peer.now + seconds(11));
  EXPECT_EQ(peer.ended(), SessionEnd::kSettingsTimeout);
  peer.drain();
  EXPECT_EQ(peer.goaway_code(), Code::kSettingsTimeout);
}

TEST(H2Attack, PingFloodToADeafPeerIsBounded) {
  TestPeer peer({}, deaf());
  peer.handshake();
  for (int i = 0; i < 10'000 && !peer.blocked; ++i) peer.send(ping());
  EXPECT_TRUE(peer.blocked);
  EXPECT_LE(peer.session().stats(peer.now).outbound_frames, 33U);
}

TEST(H2Attack, SettingsFloodToADeafPeerIsBounded) {
  TestPeer peer({}, deaf());
  peer.handshake();
  for (int i = 0; i < 10'000 && !peer.blocked; ++i) peer.send(settings({{3, 10}}));
  EXPECT_TRUE(peer.blocked);
  EXPECT_LE(peer.session().stats(peer.now).outbound_frames, 33U);
}

struct Flood {
  const char* name;
  H2Glitch glitch;
  std::string frames;
};

class H2Flood : public testing::TestWithParam<Flood> {};

/// The peer reads the answers, so no output accumulates; the rate of the frames is still bounded.
TEST_P(H2Flood, IsClosedThoughThePeerReads) {
  TestPeer peer({}, quiet());
  peer.handshake().send(headers(1, post(), 0));
  const std::size_t before = peer.session().stats(peer.now).memory_used;
  const int rounds = rounds_until_closed(peer, [&](int) {
    EXPECT_LE(peer.session().stats(peer.now).memory_used, before + 1024);
    return GetParam().frames;
  });
  EXPECT_LT(rounds, 2000);
  expect_closed_for_glitches(peer, GetParam().glitch);
}

INSTANTIATE_TEST_SUITE_P(
    H2Attack, H2Flood,
    testing::Values(
        Flood{"Ping", H2Glitch::kPingFlood, ping()},
        Flood{"PingAck", H2Glitch::kPingFlood, ping(kAck)},
        Flood{"Settings", H2Glitch::kSettingsFlood, settings()},
        Flood{"SettingsThatFlipTheTable", H2Glitch::kSettingsFlood,
              settings({{1, 0}}) + settings({{1, 4096}})},
        Flood{"Priority", H2Glitch::kPriorityFlood, priority(1, 3)},
        Flood{"PriorityOfIdleStreams", H2Glitch::kPriorityFlood, priority(99'999, 1)},
        Flood{"WindowUpdateOfTheConnection", H2Glitch::kWindowUpdateFlood, window_update(0, 1)},
        Flood{"WindowUpdateOfAStream", H2Glitch::kWindowUpdateFlood, window_update(1, 1)},
        Flood{"EmptyData", H2Glitch::kEmptyFrame, data(1, "")},
        Flood{"PaddingOnly", H2Glitch::kEmptyFrame, data(1, std::string("\x03\0\0\0", 4), kPadded)},
        Flood{"UnknownFrames", H2Glitch::kUnknownFrame, frame(0x42, 0, 0, "")}),
    [](const auto& one) { return one.param.name; });

TEST(H2Attack, SettingsWithTooManyEntries) {
  TestPeer peer;
  peer.handshake().send(
      settings(std::vector<std::pair<unsigned, std::uint32_t>>(33, {3U, std::uint32_t{1}})));
  EXPECT_EQ(peer.ended(), SessionEnd::kSettings);
  EXPECT_EQ(peer.goaway_code(), Code::kEnhanceYourCalm);
}

TEST(H2Attack, FramesForStreamsThatThePeerItselfReset) {
  TestPeer peer({}, quiet());
  peer.handshake().send(headers(1, post(), 0) + rst(1));
  rounds_until_closed(peer, [](int) { return data(1, "x"); });
  expect_closed_for_glitches(peer, H2Glitch::kClosedStreamFrame);
}

// ---- Header blocks ------------------------------------------------------------------------------

TEST(H2Attack, ContinuationFloodIsCutByCount) {
  TestPeer peer;
  peer.handshake().send(headers_raw(1, block(get()), kEnd));
  const int rounds = rounds_until_closed(
      peer, [](int) { return continuation(1, std::string(1100, '\0').replace(0, 3, ""), 0); });
  EXPECT_LE(rounds, 16);
  EXPECT_TRUE(peer.ended() == SessionEnd::kHeaderBlock || peer.ended() == SessionEnd::kCompression);
}

TEST(H2Attack, ContinuationsWithoutEndAreCutByBytes) {
  H2Limits limits;
  limits.header_fragments_max = 1000;
  TestPeer peer(limits);
  peer.handshake().send(headers_raw(1, block(get()), kEnd));
  std::size_t sent = 0;
  rounds_until_closed(peer, [&](int) {
    const std::string fragment = literal("x", std::string(2000, 'x'));
    sent += fragment.size();
    EXPECT_LT(peer.session().stats(peer.now).memory_used, 60U * 1024);
    return continuation(1, fragment, 0);
  });
  EXPECT_EQ(peer.ended(), SessionEnd::kHeaderBlock);
  EXPECT_EQ(peer.goaway_code(), Code::kEnhanceYourCalm);
  EXPECT_LE(sent, 32U * 1024 + 2010) << "the one too many is not looked at";
}

TEST(H2Attack, EmptyContinuationsAreGlitches) {
  H2Limits limits;
  limits.header_fragments_max = 10'000;
  TestPeer peer(limits);
  peer.handshake().send(headers_raw(1, block(get()), kEnd));
  rounds_until_closed(peer, [](int) { return continuation(1, "", 0); });
  expect_closed_for_glitches(peer, H2Glitch::kEmptyFrame);
}

TEST(H2Attack, TinyFragmentsAreGlitches) {
  H2Limits limits;
  limits.header_fragments_max = 10'000;
  TestPeer peer(limits);
  peer.handshake().send(headers_raw(1, block(get()), kEnd));
  rounds_until_closed(peer, [](int) { return continuation(1, literal("x", "y"), 0); });
  expect_closed_for_glitches(peer, H2Glitch::kSmallFragment);
}

TEST(H2Attack, AHeaderBlockThatNeverEndsMeetsItsDeadline) {
  TestPeer peer;
  peer.handshake().send(headers_raw(1, block(get()), kEnd));
  EXPECT_EQ(peer.session().next_expiry(), peer.now + seconds(10));
  peer.now += seconds(9);
  peer.session().expire(peer.now);
  EXPECT_TRUE(peer.alive());
  peer.send(continuation(1, literal("x", "y"), 0));
  peer.now += seconds(1);
  peer.session().expire(peer.now);
  EXPECT_EQ(peer.ended(), SessionEnd::kHeaderTimeout) << "absolute: a trickle does not move it";
}

TEST(H2Attack, HpackBombIsAnswered431AndTheNextRequestIsServed) {
  TestPeer peer;
  peer.handshake();
  // One field of 4000 bytes enters the table, then each byte refers to it: 48 MB when decoded.
  const std::string bomb = block(get()) + indexed_literal("x", std::string(4000, 'x')) +
                           std::string(12'000, static_cast<char>(0x80 | 62));
  peer.send(headers_raw(1, bomb, kEnd | kEndHeaders));
  EXPECT_EQ(peer.status_of(1), "431");
  EXPECT_EQ(peer.streams.count(1), 0U) << "nobody else saw it";
  EXPECT_EQ(peer.glitches(H2Glitch::kHeadersTooLarge), 1U);
  EXPECT_LT(peer.session().stats(peer.now).memory_peak, 64U * 1024);
  // The dynamic table is still in sync: the same index refers to the same field.
  peer.send(headers_raw(3, block(get()) + std::string(1, static_cast<char>(0x80 | 62)),
                        kEnd | kEndHeaders));
  EXPECT_EQ(peer.status_of(3), "200");
  ASSERT_EQ(peer.streams[3].fields.size(), 1U);
  EXPECT_EQ(peer.streams[3].fields[0].second, std::string(4000, 'x'));
}

TEST(H2Attack, CookieCrumbsCountEach) {
  TestPeer peer;
  peer.handshake();
  // One-byte references to an empty cookie: small on the wire and when decoded, but 10 000 fields.
  const std::string crumbs = block(get()) + indexed_literal("cookie", "") +
                             std::string(10'000, static_cast<char>(0x80 | 62));
  for (StreamId id = 1; id < 200; id += 2)
    peer.send(headers_raw(id, id == 1 ? crumbs : block(get()) + std::string(10'000, '\xbe'),
                          kEnd | kEndHeaders));
  EXPECT_EQ(peer.streams.size(), 0U);
  EXPECT_EQ(peer.status_of(1), "431");
  EXPECT_EQ(peer.glitches(H2Glitch::kHeadersTooLarge), 100U);
  EXPECT_LT(peer.session().stats(peer.now).memory_peak, 64U * 1024);
}

TEST(H2Attack, RepeatedBombsEndTheConnection) {
  TestPeer peer;
  peer.handshake();
  rounds_until_closed(peer, [](int i) {
    return headers_raw(id_of(i), block(get()) + literal("x", std::string(16'250, 'x')),
                       kEnd | kEndHeaders);
  });
  expect_closed_for_glitches(peer, H2Glitch::kHeadersTooLarge);
}

TEST(H2Attack, LongPathIs414AndTooManyTrailersAreReset) {
  TestPeer peer;
  peer.handshake().send(headers(1, get("/" + std::string(8192, 'x'))));
  EXPECT_EQ(peer.status_of(1), "414");
  Fields many;
  for (int i = 0; i < 33; ++i) many.emplace_back("x-" + std::to_string(i), "");
  peer.send(headers(3, post(), 0) + headers(3, many));
  EXPECT_EQ(peer.reset_code(3), Code::kEnhanceYourCalm);
  EXPECT_EQ(peer.streams[3].end, StreamEnd::kReset);
  EXPECT_FALSE(peer.streams[3].complete);
  peer.send(headers(5, get()));
  EXPECT_EQ(peer.status_of(5), "200");
}

TEST(H2Attack, EmptyFieldNamesAreMalformed) {
  TestPeer peer;
  peer.handshake().send(headers(1, with(get(), {{"", "x"}})));
  EXPECT_EQ(peer.reset_code(1), Code::kProtocolError);
}

// ---- Memory -------------------------------------------------------------------------------------

TEST(H2Attack, AHundredStreamsOfTheLargestHeadsFitTheBudget) {
  PeerOptions options = quiet();
  TestPeer peer({}, options);
  peer.handshake();
  const std::string value(3900, 'v');
  for (int i = 0; i < 100; ++i)
    peer.send(headers(id_of(i), with(get(), {{"x-a", value}, {"x-b", value}, {"x-c", value}})));
  EXPECT_TRUE(peer.alive());
  EXPECT_EQ(peer.streams.size(), 100U);
  for (int i = 0; i < 100; ++i) peer.respond(id_of(i), "hello", {{"x-answer", value}});
  EXPECT_GT(peer.blocked_submits, 0U) << "an owner in a hurry is held back, not killed";
  peer.drain();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(peer.responses[id_of(i)].ended) << i;
  const SessionStats stats = peer.session().stats(peer.now);
  EXPECT_LT(stats.memory_peak, 112U * 1024);
  EXPECT_EQ(stats.streams, 0U);
}

TEST(H2Attack, ATableOfTinyEntriesFitsTheBudget) {
  TestPeer peer;
  peer.handshake();
  // 4096 / 32 = 128 entries without content: the maximum number of allocations for the table.
  std::string fill = block(get());
  for (int i = 0; i < 95; ++i) fill += indexed_literal("a", "");
  for (int i = 0; i < 20; ++i) peer.send(headers_raw(id_of(i), fill, kEnd | kEndHeaders));
  EXPECT_TRUE(peer.alive());
  EXPECT_LT(peer.session().stats(peer.now).memory_used, 64U * 1024);
}

/// Each allocation in turn fails: the session ends, reports it, and frees everything.
TEST(H2Attack, RunningOutOfMemoryAnywhereEndsCleanly) {
  bool survived = false;
  int failures = 0;
  for (std::uint64_t n = 0; n < 200 && !survived; ++n) {
    PeerOptions options;
    options.body = std::string(20'000, 'x');
    TestPeer peer({}, options);
    peer.handshake();
    peer.library_session().heap().refuse_after(n);
    peer.send(
        headers(1, with(get(), {{"cookie", "a=1"}, {"cookie", "b=2"}})) +
        headers_raw(3, block(post()) + indexed_literal("x-y", std::string(100, 'z')), kEndHeaders) +
        data(3, std::string(9000, 'y')) + ping() + settings({{4, 70'000}}) + data(3, "", kEnd) +
        headers(5, get()) + rst(5) + headers(7, with(get(), {{"A", ""}})) + goaway(0, 0));
    peer.drain();
    if (peer.library_session().heap().refused() == 0) {
      survived = true;
      EXPECT_TRUE(peer.responses[1].ended);
      EXPECT_TRUE(peer.responses[3].ended);
      break;
    }
    ++failures;
    EXPECT_EQ(peer.ended(), SessionEnd::kMemory) << n;
    EXPECT_EQ(peer.goaway_code(), Code::kEnhanceYourCalm) << n;
    EXPECT_TRUE(peer.session().finished()) << n;
    peer.library_session().heap().check();
  }
  EXPECT_TRUE(survived);
  EXPECT_GT(failures, 20);
}

TEST(H2Attack, TooLittleMemoryToBegin) {
  SessionKit kit({});
  struct NoHandler final : SessionEvents {
    void* on_request(StreamId, const RequestHead&) override { return nullptr; }
    void on_body(StreamId, void*, const BodyChunk&) override {}
    void on_trailers(StreamId, void*, const HeaderList&) override {}
    void on_stream_end(StreamId, void*, StreamEnd, ErrorCode) override {}
    void on_windows_opened() override {}
  } nobody;
  std::vector<std::max_align_t> memory(48 * 1024 / sizeof(std::max_align_t));
  const auto all = std::as_writable_bytes(std::span(memory));
  int made = 0;
  for (std::size_t bytes = 0; bytes <= all.size(); bytes += 512)
    if (kit.make(all.first(bytes), nobody, time_from_ns(1)) != nullptr) ++made;
  EXPECT_GT(made, 0) << "48 KB suffice";
  EXPECT_LT(made, 60) << "and much less does not";
}

}  // namespace
}  // namespace weir::inline v0::http::h2
