#include "http/h2/nghttp2_client_session.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "http/h2/client_session_testing.h"
#include "http/h2/header_reader_testing.h"

namespace weir::inline v0::http::h2 {
namespace {

using namespace wire;
using std::chrono::seconds;

OwnerOptions by_hand() {
  OwnerOptions options;
  options.drain = false;
  return options;
}

TEST(H2Client, SpeaksFirst) {
  TestClient client;
  client.drain();
  ASSERT_EQ(client.frames.size(), 2U);
  EXPECT_TRUE(client.frames[0].header.is(FrameType::kSettings));
  // HEADER_TABLE_SIZE 4096, ENABLE_PUSH 0, INITIAL_WINDOW_SIZE 16384, MAX_HEADER_LIST_SIZE 16384
  EXPECT_EQ(client.frames[0].payload,
            u16(1) + u32(4096) + u16(2) + u32(0) + u16(4) + u32(16384) + u16(6) + u32(16384));
  EXPECT_TRUE(client.frames[1].header.is(FrameType::kWindowUpdate));
  EXPECT_EQ(65535 + client.opened_window(0), 16U * 16384) << "16 streams' windows";
}

TEST(H2Client, SendsARequestAndReceivesItsResponse) {
  TestClient client;
  client.handshake();
  const std::array<Field, 2> fields = {{{"X-Upper", "1"}, {"te", "trailers"}}};
  const StreamId id = client.open({"GET", "https", "example.org", "/x?y=1", fields, true});
  ASSERT_EQ(id, 1U);
  ASSERT_EQ(client.frames.size(), 1U);
  EXPECT_EQ(client.frames[0].header.flags, flag::kEndStream | flag::kEndHeaders);
  HeaderReader reader;
  EXPECT_EQ(reader.read(client.frames[0].payload), (Fields{{":method", "GET"},
                                                           {":scheme", "https"},
                                                           {":authority", "example.org"},
                                                           {":path", "/x?y=1"},
                                                           {"x-upper", "1"},
                                                           {"te", "trailers"}}));
  client.send(headers(1, status("200", {{"content-length", "10"}}), 0) + data(1, "hello") +
              data(1, "world", kEnd));
  const SeenResponse& seen = client.streams[1];
  EXPECT_EQ(seen.status, 200U);
  EXPECT_EQ(seen.body_length, 10U);
  EXPECT_EQ(seen.body, "helloworld");
  EXPECT_TRUE(seen.complete);
  EXPECT_TRUE(seen.ended);
  EXPECT_EQ(seen.end, StreamEnd::kDone);
  EXPECT_EQ(seen.code, ErrorCode::kNoError);
  EXPECT_EQ(seen.processed, Processed::kYes);
  EXPECT_EQ(client.session().stats(client.now).streams, 0U);
  EXPECT_EQ(client.session().glitches(), 0U);
}

TEST(H2Client, SendsABodyAsTheWindowsAllow) {
  TestClient client;
  client.handshake({{4, 1000}});
  const StreamId id = client.post();
  const std::string body(3000, 'b');
  EXPECT_EQ(client.write(id, body, true), 1000U);
  EXPECT_EQ(client.session().sendable(id), 0U);
  client.send(window_update(id, 1500));
  EXPECT_EQ(client.windows_opened, 2U) << "SETTINGS and WINDOW_UPDATE";
  EXPECT_EQ(client.write(id, std::string_view(body).substr(1000), true), 1500U);
  client.send(settings({{4, 500}}));
  EXPECT_EQ(client.session().window(id), 0U) << "lowered below what was sent";
  client.send(window_update(id, 400));
  EXPECT_EQ(client.session().sendable(id), 0U) << "still 100 short";
  client.send(window_update(id, 1600));
  EXPECT_EQ(client.write(id, std::string_view(body).substr(2500), true), 500U);
  EXPECT_EQ(client.count(FrameType::kData, flag::kEndStream), 1U);
  client.send(headers(id, status("201")));
  EXPECT_EQ(client.streams[id].status, 201U);
  EXPECT_EQ(client.streams[id].end, StreamEnd::kDone);
}

TEST(H2Client, SendsTrailers) {
  TestClient client;
  client.handshake();
  const StreamId id = client.post();
  EXPECT_EQ(client.write(id, "abc", false), 3U);
  const std::array<Field, 1> trailers = {{{"x-sum", "1"}}};
  EXPECT_EQ(client.session().submit_trailers(id, trailers), SubmitStatus::kOk);
  EXPECT_EQ(client.session().submit_trailers(id, trailers), SubmitStatus::kClosed);
  client.drain();
  EXPECT_EQ(client.count(FrameType::kHeaders, flag::kEndStream), 1U);
}

TEST(H2Client, TrailersWaitForTheHead) {
  TestClient client({}, by_hand());
  client.handshake();
  const StreamId id = client.post();
  const std::array<Field, 1> trailers = {{{"x-sum", "1"}}};
  EXPECT_EQ(client.session().submit_trailers(id, trailers), SubmitStatus::kBlocked);
  client.drain();
  EXPECT_EQ(client.session().submit_trailers(id, trailers), SubmitStatus::kOk);
  client.drain();
  EXPECT_EQ(client.count(FrameType::kHeaders), 2U);
}

TEST(H2Client, ReceivesInterimResponsesAndTrailers) {
  TestClient client;
  client.handshake();
  const StreamId id = client.get();
  client.send(headers(id, status("103", {{"link", "</a.css>"}}), 0));
  EXPECT_EQ(client.session().processed(id), Processed::kYes);
  client.send(headers(id, status("100"), 0) + headers(id, status("200"), 0) + data(id, "x") +
              headers(id, {{"grpc-status", "0"}}));
  const SeenResponse& seen = client.streams[id];
  EXPECT_EQ(seen.informed, (std::vector<unsigned>{103, 100}));
  EXPECT_EQ(seen.status, 200U);
  EXPECT_EQ(seen.body, "x");
  EXPECT_TRUE(seen.complete);
  EXPECT_EQ(seen.trailers, (Fields{{"grpc-status", "0"}}));
  EXPECT_EQ(seen.end, StreamEnd::kDone);
}

TEST(H2Client, OpensNoMoreStreamsThanBothSidesAllow) {
  H2Limits limits;
  limits.concurrent_streams_max = 20;
  TestClient client(limits);
  EXPECT_FALSE(client.session().has_settings());
  EXPECT_EQ(client.session().capacity(), 10U) << "the server's SETTINGS have not arrived";
  for (int i = 0; i < 10; ++i) EXPECT_NE(client.get(), 0U);
  EXPECT_EQ(client.get(), 0U);
  EXPECT_EQ(client.last_open, SubmitStatus::kClosed);
  client.send(settings());
  EXPECT_TRUE(client.session().has_settings());
  EXPECT_EQ(client.capacity_changes, 1U);
  EXPECT_EQ(client.session().capacity(), 10U) << "ours; the server sets no limit";
  client.send(settings({{3, 12}}));
  EXPECT_EQ(client.session().peer_streams_max(), 12U);
  EXPECT_EQ(client.session().capacity(), 2U);
  client.get();
  client.get();
  EXPECT_EQ(client.session().capacity(), 0U);
  client.send(headers(1, status("200")));
  EXPECT_EQ(client.session().capacity(), 1U);
  client.send(settings({{3, 5}}));
  EXPECT_EQ(client.session().capacity(), 0U) << "below the eleven that are open";
  for (int i = 1; i < 8; ++i) client.send(headers(id_of(i), status("200")));
  EXPECT_EQ(client.session().capacity(), 1U);
  client.send(settings({{3, 0}}));
  EXPECT_EQ(client.session().capacity(), 0U);
  EXPECT_TRUE(client.alive());
}

TEST(H2Client, AStreamCountsUntilItsOwnerReleasesIt) {
  H2Limits limits;
  limits.concurrent_streams_max = 1;
  OwnerOptions options;
  options.release = false;
  TestClient client(limits, options);
  client.handshake();
  const StreamId id = client.get();
  client.send(headers(id, status("200")));
  EXPECT_TRUE(client.streams[id].ended);
  EXPECT_EQ(client.session().capacity(), 0U);
  client.session().release(id);
  EXPECT_EQ(client.session().capacity(), 1U);
}

TEST(H2Client, ALowerLimitWithdrawsRequestsThatWereNotSent) {
  TestClient client({}, by_hand());
  client.handshake({{3, 4}});
  for (int i = 0; i < 4; ++i) EXPECT_NE(client.get(), 0U);
  std::array<std::byte, 1> one{};
  ASSERT_EQ(client.session().produce(one, client.now), 1U);  // the first head has begun
  client.send(settings({{3, 2}}));
  EXPECT_FALSE(client.streams[1].ended);
  EXPECT_FALSE(client.streams[3].ended) << "there is room for the oldest";
  for (const StreamId id : {5U, 7U}) {
    EXPECT_TRUE(client.streams[id].ended);
    EXPECT_EQ(client.streams[id].end, StreamEnd::kReset);
    EXPECT_EQ(client.streams[id].code, ErrorCode::kRefusedStream);
    EXPECT_EQ(client.streams[id].processed, Processed::kNo);
  }
  EXPECT_EQ(client.session().capacity(), 0U);
  std::string rest;
  std::array<std::byte, 4096> out{};
  while (client.session().has_output()) {
    const std::size_t n = client.session().produce(out, client.now);
    rest.append(reinterpret_cast<const char*>(out.data()), n);
    if (n == 0) break;
  }
  EXPECT_FALSE(client.session().has_output()) << "withdrawn requests are no output";
  EXPECT_EQ(rest.find(u32(5)), std::string::npos);
  client.send(headers(1, status("200")) + headers(3, status("200")));
  EXPECT_EQ(client.session().capacity(), 2U);
  const StreamId next = client.get();
  EXPECT_EQ(next, 9U);
  client.drain();
  client.send(headers(next, status("204")));
  EXPECT_EQ(client.streams[next].status, 204U);
  EXPECT_TRUE(client.alive());
}

TEST(H2Client, ALimitOfZeroHoldsNothingBack) {
  TestClient client({}, by_hand());
  client.handshake();
  const StreamId open = client.post();
  client.drain();
  for (int i = 0; i < 20; ++i) client.get();
  client.send(settings({{3, 0}}));
  client.drain();
  for (int i = 1; i <= 20; ++i) EXPECT_EQ(client.streams[id_of(i)].processed, Processed::kNo) << i;
  EXPECT_GT(client.session().sendable(open), 0U) << "bodies are not blocked by dead requests";
  EXPECT_EQ(client.write(open, "abc", true), 3U);
  for (int i = 0; i < 100; ++i) client.send(ping()).drain();
  EXPECT_TRUE(client.alive()) << "nor is input";
  client.send(headers(open, status("200")));
  client.drain();
  EXPECT_EQ(client.streams[open].end, StreamEnd::kDone);
  EXPECT_EQ(client.session().stats(client.now).outbound_frames, 0U);
  client.send(settings({{3, 100}}));
  EXPECT_NE(client.get(), 0U);
}

TEST(H2Client, AResetBeforeTheHeadIsSentSendsNothing) {
  TestClient client({}, by_hand());
  client.handshake();
  const StreamId id = client.get();
  client.session().reset(id, ErrorCode::kCancel);
  EXPECT_FALSE(client.streams[id].ended) << "not inside the call";
  client.drain();
  EXPECT_TRUE(client.streams[id].ended);
  EXPECT_EQ(client.streams[id].end, StreamEnd::kReset);
  EXPECT_EQ(client.streams[id].code, ErrorCode::kCancel);
  EXPECT_EQ(client.streams[id].processed, Processed::kNo);
  EXPECT_TRUE(client.frames.empty());
  EXPECT_EQ(client.session().stats(client.now).streams, 0U);
  client.get();
  client.drain();
  EXPECT_EQ(client.count(FrameType::kHeaders), 1U);
  client.send(headers(1, status("200")));
  EXPECT_EQ(client.ended(), SessionEnd::kProtocolError) << "1 was never used";
}

TEST(H2Client, AResetAfterTheHeadCancelsOnTheWire) {
  TestClient client;
  client.handshake();
  const StreamId id = client.get();
  client.send(headers(id, status("200"), 0));
  client.session().reset(id, ErrorCode::kCancel);
  client.drain();
  EXPECT_EQ(client.reset_code(id), ErrorCode::kCancel);
  EXPECT_EQ(client.streams[id].end, StreamEnd::kReset);
  EXPECT_EQ(client.streams[id].processed, Processed::kYes);
  client.frames.clear();
  const std::uint64_t before = client.session().glitches();
  // What the server had already sent is discarded, and the connection's window is returned.
  std::size_t late = 0;
  for (; late < 200; ++late) client.send(data(id, std::string(80, 'x')));
  EXPECT_TRUE(client.streams[id].body.empty());
  EXPECT_EQ(client.session().glitches(), before);
  for (int i = 0; i < 40; ++i) client.send(data(id, std::string(16'000, 'x')));
  EXPECT_TRUE(client.alive());
  EXPECT_GE(client.opened_window(0) + 16 * 16384, late * 80 + std::size_t{40} * 16'000);
}

TEST(H2Client, GoawayTellsWhichRequestsWereNotProcessed) {
  TestClient client;
  client.handshake();
  for (int i = 0; i < 4; ++i) client.get();
  client.send(headers(1, status("200"), 0) + headers(7, status("200"), 0));
  client.send(goaway(3, 11));
  EXPECT_TRUE(client.session().peer_is_leaving());
  EXPECT_EQ(client.session().peer_goaway_code(), ErrorCode::kEnhanceYourCalm);
  EXPECT_EQ(client.session().capacity(), 0U);
  EXPECT_EQ(client.capacity_changes, 2U);
  EXPECT_EQ(client.get(), 0U);
  EXPECT_FALSE(client.streams[1].ended);
  EXPECT_FALSE(client.streams[3].ended);
  EXPECT_EQ(client.session().processed(3), Processed::kMaybe) << "the last one may be processed";
  EXPECT_EQ(client.streams[5].end, StreamEnd::kPeerReset);
  EXPECT_EQ(client.streams[5].code, ErrorCode::kEnhanceYourCalm) << "not REFUSED_STREAM";
  EXPECT_EQ(client.streams[5].processed, Processed::kNo);
  EXPECT_TRUE(client.streams[7].ended);
  EXPECT_EQ(client.streams[7].processed, Processed::kYes)
      << "it was answered, whatever GOAWAY says";
  client.send(data(1, "rest", kEnd));
  EXPECT_EQ(client.streams[1].end, StreamEnd::kDone);
  EXPECT_TRUE(client.alive());
  client.send(data(7, "late"));
  EXPECT_TRUE(client.alive());
  client.send(headers(3, status("200")));
  EXPECT_EQ(client.ended(), SessionEnd::kFinished);
  EXPECT_TRUE(client.session().finished());
  EXPECT_EQ(client.session().glitches(), 0U);
}

TEST(H2Client, GoawayWithdrawsRequestsThatWereNotSent) {
  H2Limits limits;
  limits.session_bytes_max = 512 * 1024;
  TestClient client(limits, by_hand());
  client.handshake();
  client.get();
  client.drain();
  const std::string large(7000, '{');  // has a long Huffman code
  const std::vector<Field> fields(3, {"x-large", large});
  EXPECT_EQ(client.open({"GET", "http", "a", "/", fields, true}), 3U);
  std::array<std::byte, 12> part{};  // of a HEADERS and a CONTINUATION frame
  ASSERT_EQ(client.session().produce(part, client.now), part.size());
  client.get();
  client.send(goaway(0x7fffffff, 0));
  EXPECT_FALSE(client.streams[1].ended);
  EXPECT_TRUE(client.streams[5].ended);
  EXPECT_EQ(client.streams[5].end, StreamEnd::kPeerReset);
  EXPECT_EQ(client.streams[5].code, ErrorCode::kNoError);
  EXPECT_EQ(client.streams[5].processed, Processed::kNo);
  client.send(goaway(1, 0));
  EXPECT_TRUE(client.streams[3].ended) << "its head had begun";
  EXPECT_EQ(client.streams[3].processed, Processed::kNo);
  EXPECT_EQ(client.streams[3].end, StreamEnd::kPeerReset);
  std::array<std::byte, 4096> out{};
  while (client.session().produce(out, client.now) > 0) {
  }
  client.send(rst(3, 7));
  EXPECT_TRUE(client.alive()) << "the server has seen its number";
  client.send(headers(1, status("200")));
  EXPECT_EQ(client.ended(), SessionEnd::kFinished);
}

TEST(H2Client, RefusedStreamsWereNotProcessed) {
  TestClient client;
  client.handshake();
  for (int i = 0; i < 4; ++i) client.get();
  client.send(rst(1, 7) + rst(3, 13) + headers(5, status("103"), 0) + rst(5, 7) + rst(7, 0xbeef));
  EXPECT_EQ(client.streams[1].end, StreamEnd::kPeerReset);
  EXPECT_EQ(client.streams[1].code, ErrorCode::kRefusedStream);
  EXPECT_EQ(client.streams[1].processed, Processed::kNo);
  EXPECT_EQ(client.streams[3].code, ErrorCode::kHttp11Required);
  EXPECT_EQ(client.streams[3].processed, Processed::kMaybe);
  EXPECT_EQ(client.streams[5].processed, Processed::kYes);
  EXPECT_EQ(static_cast<std::uint32_t>(client.streams[7].code), 0xbeefU);
  EXPECT_EQ(client.session().glitches(), 0U) << "a server may refuse";
}

TEST(H2Client, AResetAfterTheAnswerDoesNotLoseIt) {
  TestClient client;
  client.handshake();
  const StreamId id = client.post();
  EXPECT_EQ(client.write(id, "part", false), 4U);
  client.send(headers(id, status("413"), 0) + data(id, "too large", kEnd));
  EXPECT_TRUE(client.streams[id].complete);
  EXPECT_FALSE(client.streams[id].ended) << "the request may go on";
  EXPECT_EQ(client.write(id, "more", false), 4U);
  client.send(rst(id, 0));
  EXPECT_EQ(client.streams[id].end, StreamEnd::kDone);
  EXPECT_EQ(client.streams[id].code, ErrorCode::kNoError);
  EXPECT_EQ(client.streams[id].body, "too large");

  const StreamId other = client.post();
  client.send(headers(other, status("200")));
  client.session().reset(other, ErrorCode::kNoError);
  client.drain();
  EXPECT_EQ(client.reset_code(other), ErrorCode::kNoError);
  EXPECT_EQ(client.streams[other].end, StreamEnd::kDone) << "given up after the answer";
}

TEST(H2Client, WindowsAreWhatTheOwnerGrants) {
  OwnerOptions options;
  options.grant = false;
  TestClient client({}, options);
  client.handshake();
  const StreamId paused = client.get();
  const StreamId other = client.get();
  client.send(headers(paused, status("200"), 0) + headers(other, status("200"), 0));
  client.send(data(paused, std::string(16'384, 'p')));
  EXPECT_EQ(client.opened_window(paused), 0U);
  // The connection's window is returned: the other stream is not stopped.
  std::size_t sent = 16'384;
  for (int i = 0; i < 100; ++i) {
    client.session().grant(other, 16'000);
    client.send(data(other, std::string(16'000, 'o')));
    sent += 16'000;
    ASSERT_TRUE(client.alive()) << i;
  }
  EXPECT_GT(client.opened_window(0) + 16 * 16'384, sent);
  EXPECT_EQ(client.streams[other].body.size(), std::size_t{100} * 16'000);
  client.session().grant(paused, 5000);
  client.drain();
  EXPECT_EQ(client.opened_window(paused), 5000U);
  client.send(data(paused, std::string(5001, 'p')));
  EXPECT_EQ(client.streams[paused].end, StreamEnd::kReset);
  EXPECT_EQ(client.reset_code(paused), ErrorCode::kFlowControlError);
  EXPECT_EQ(client.glitches(H2Glitch::kFlowControl), 1U);
}

TEST(H2Client, ALargeGrantIsAnnouncedAsItIsNeeded) {
  OwnerOptions options;
  options.grant = false;
  options.drain = false;
  TestClient client({}, options);
  client.handshake();
  const StreamId id = client.get();
  client.session().grant(id, 100'000);  // before the head was sent
  client.drain();
  client.send(headers(id, status("200"), 0) + data(id, std::string(16'000, 'x')));
  client.drain();
  EXPECT_EQ(client.opened_window(id), 100'000U);
}

TEST(H2Client, WithoutAFirstWindowNothingComesBeforeAGrant) {
  H2Limits limits;
  limits.stream_window_bytes = 0;
  OwnerOptions options;
  options.drain = false;
  TestClient client(limits, options);
  client.handshake();
  const StreamId id = client.get();
  client.session().grant(id, 100);
  client.drain();
  EXPECT_EQ(client.opened_window(id), 100U) << "granted before the head was sent, sent after it";
  client.send(headers(id, status("200"), 0) + data(id, std::string(100, 'x')));
  EXPECT_EQ(client.streams[id].body.size(), 100U);
  client.drain();
  const StreamId other = client.get();
  client.drain();
  client.send(headers(other, status("200"), 0) + data(other, "x"));
  EXPECT_TRUE(client.streams[other].body.empty());
  client.drain();
  EXPECT_EQ(client.reset_code(other), ErrorCode::kFlowControlError);
}

TEST(H2Client, LengthsAreVerified) {
  struct Case {
    const char* method;
    Fields head;
    unsigned head_flags;
    std::string body;
    bool valid;
  };
  const Case cases[] = {
      {"GET", status("200", {{"content-length", "3"}}), 0, "abc", true},
      {"GET", status("200", {{"content-length", "3"}}), 0, "ab", false},
      {"GET", status("200", {{"content-length", "3"}}), 0, "abcd", false},
      {"GET", status("200", {{"content-length", "3"}}), kEnd, "", false},
      {"GET", status("200", {{"content-length", "0"}}), kEnd, "", true},
      {"GET", status("200", {{"content-length", "x"}}), 0, "x", false},
      {"GET", status("200", {{"content-length", "3"}, {"content-length", "3"}}), 0, "abc", false},
      {"HEAD", status("200", {{"content-length", "3"}}), kEnd, "", true},
      {"HEAD", status("200", {{"content-length", "3"}}), 0, "", true},
      {"HEAD", status("200", {{"content-length", "3"}}), 0, "abc", false},
      {"GET", status("304", {{"content-length", "3"}}), kEnd, "", true},
      {"GET", status("304"), 0, "x", false},
      {"GET", status("204"), kEnd, "", true},
      {"GET", status("204", {{"content-length", "0"}}), kEnd, "", true},
      {"GET", status("204", {{"content-length", "3"}}), kEnd, "", false},
      {"GET", status("204"), 0, "x", false},
  };
  for (const Case& c : cases) {
    TestClient client;
    client.handshake();
    const StreamId id = client.get("/", c.method);
    client.send(headers(id, c.head, c.head_flags));
    if (c.head_flags == 0) client.send(data(id, c.body, kEnd));
    const std::string what = c.method + (" " + c.head[0].second) + " " + c.body;
    EXPECT_TRUE(client.streams[id].ended) << what;
    EXPECT_EQ(client.streams[id].end, c.valid ? StreamEnd::kDone : StreamEnd::kReset) << what;
    EXPECT_EQ(client.streams[id].complete, c.valid) << what;
    EXPECT_EQ(client.streams[id].code, c.valid ? ErrorCode::kNoError : ErrorCode::kProtocolError);
    EXPECT_TRUE(client.alive()) << what;
  }
}

TEST(H2Client, AWrongLengthBeforeTrailersIsNoAnswer) {
  TestClient client;
  client.handshake();
  const StreamId id = client.get();
  client.send(headers(id, status("200", {{"content-length", "3"}}), 0) + data(id, "ab") +
              headers(id, {{"x", "y"}}));
  EXPECT_EQ(client.streams[id].end, StreamEnd::kReset);
  EXPECT_EQ(client.streams[id].code, ErrorCode::kProtocolError);
  EXPECT_TRUE(client.streams[id].trailers.empty());
  EXPECT_FALSE(client.streams[id].complete);
}

TEST(H2Client, PingsOneAtATime) {
  TestClient client;
  client.handshake();
  EXPECT_EQ(client.session().ping_sent(), TimePoint{});
  EXPECT_TRUE(client.session().ping(client.now));
  EXPECT_FALSE(client.session().ping(client.now));
  EXPECT_EQ(client.session().ping_sent(), client.now);
  client.drain();
  ASSERT_EQ(client.count(FrameType::kPing), 1U);
  const std::string payload = client.frames.back().payload;
  client.send(ping(kAck));
  EXPECT_TRUE(client.pongs.empty()) << "not our payload";
  const TimePoint sent = client.now;
  client.now += seconds(1);
  client.send(frame(6, kAck, 0, payload));
  EXPECT_EQ(client.pongs, (std::vector<TimePoint>{sent}));
  EXPECT_EQ(client.session().ping_sent(), TimePoint{});
  client.send(frame(6, kAck, 0, payload));
  EXPECT_EQ(client.pongs.size(), 1U);
  EXPECT_TRUE(client.session().ping(client.now));
  client.drain();
  EXPECT_NE(client.frames.back().payload, payload);
}

TEST(H2Client, AnswersTheServersPings) {
  TestClient client;
  client.handshake().send(ping());
  ASSERT_EQ(client.count(FrameType::kPing, flag::kAck), 1U);
  EXPECT_EQ(client.frames.back().payload, "weirping");
}

TEST(H2Client, KnowsWhetherExtendedConnectIsAllowed) {
  TestClient client;
  client.handshake();
  EXPECT_FALSE(client.session().peer_allows_extended_connect());
  client.send(settings({{8, 1}}));
  EXPECT_TRUE(client.session().peer_allows_extended_connect());
  EXPECT_EQ(client.get("/", "CONNECT"), 0U);
  EXPECT_EQ(client.last_open, SubmitStatus::kBadField);
}

TEST(H2Client, ShutDownFinishesWhatIsOpen) {
  TestClient client;
  client.handshake();
  const StreamId id = client.get();
  client.session().shut_down();
  EXPECT_EQ(client.session().capacity(), 0U);
  client.drain();
  EXPECT_EQ(client.goaway_code(), ErrorCode::kNoError);
  client.send(headers(id, status("200")));
  EXPECT_EQ(client.streams[id].end, StreamEnd::kDone);
  EXPECT_EQ(client.ended(), SessionEnd::kFinished);
}

TEST(H2Client, WaitsForTheServersAcknowledgementForABoundedTime) {
  TestClient client;
  client.drain();
  EXPECT_EQ(client.session().next_expiry(), client.now + seconds(10));
  const StreamId id = client.get();
  client.now += seconds(10);
  client.session().expire(client.now);
  EXPECT_EQ(client.ended(), SessionEnd::kSettingsTimeout);
  EXPECT_EQ(client.session().processed(id), Processed::kMaybe);
  EXPECT_EQ(client.session().processed(99), Processed::kNo);
  client.drain();
  EXPECT_EQ(client.goaway_code(), ErrorCode::kSettingsTimeout);
  EXPECT_TRUE(client.session().finished());
}

TEST(H2Client, TheQueueOfHeadsIsBounded) {
  H2Limits limits;
  limits.outbound_frames_max = 8;
  TestClient client(limits, by_hand());
  client.handshake();
  for (int i = 0; i < 8; ++i) EXPECT_NE(client.get(), 0U);
  EXPECT_EQ(client.get(), 0U);
  EXPECT_EQ(client.last_open, SubmitStatus::kBlocked);
  client.drain();
  EXPECT_NE(client.get(), 0U);
}

TEST(H2Client, TheLastNumberIsUsedOnce) {
  TestClient client;
  client.handshake();
  ASSERT_EQ(nghttp2_session_set_next_stream_id(client.library_session().library(), 0x7ffffffd), 0);
  EXPECT_EQ(client.session().capacity(), 2U);
  EXPECT_EQ(client.get(), 0x7ffffffdU);
  EXPECT_EQ(client.get(), 0x7fffffffU);
  EXPECT_EQ(client.session().capacity(), 0U);
  client.send(headers(0x7ffffffd, status("200")));
  EXPECT_EQ(client.streams[0x7ffffffd].status, 200U);
  EXPECT_EQ(client.get(), 0U);
}

}  // namespace
}  // namespace weir::inline v0::http::h2
