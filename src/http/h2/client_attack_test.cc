#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "http/h2/client_session_testing.h"

/// Servers that break the rules or flood: the session ends, or the stream does, and no bound is
/// exceeded. The rules are those for clients (attack_test.cc), seen from the other side.

namespace weir::inline v0::http::h2 {
namespace {

using namespace wire;

/// Frames that end the connection at once.
struct Rude {
  const char* what;
  std::string bytes;
  SessionEnd end;
  ErrorCode code;
};

/// Streams 1 (open, no answer), 3 (answered and closed), 5 (head received, body open).
void serve(TestClient& client) {
  client.handshake();
  client.get();
  client.get();
  client.get();
  client.send(headers(3, status("200")) + headers(5, status("200"), 0));
}

TEST(H2ClientAttack, RudeFramesEndTheConnection) {
  const auto protocol = [](const char* what, std::string bytes) {
    return Rude{what, std::move(bytes), SessionEnd::kProtocolError, ErrorCode::kProtocolError};
  };
  const std::vector<Rude> all = {
      protocol("PUSH_PROMISE", frame(5, kEndHeaders, 1, u32(2) + block(get()))),
      protocol("HEADERS for an idle stream", headers(7, status("200"))),
      protocol("HEADERS for a stream of the server", headers(2, status("200"))),
      protocol("HEADERS for stream 0", headers(0, status("200"))),
      protocol("DATA for an idle stream", data(7, "x")),
      protocol("DATA for stream 0", data(0, "x")),
      protocol("DATA for a pushed stream", data(2, "x")),
      protocol("RST_STREAM for an idle stream", rst(7)),
      protocol("RST_STREAM for stream 0", rst(0)),
      protocol("WINDOW_UPDATE for an idle stream", window_update(7, 1)),
      protocol("WINDOW_UPDATE by 0 for the connection", window_update(0, 0)),
      protocol("CONTINUATION without HEADERS", continuation(1, "")),
      protocol("PING inside a header block", headers_raw(1, "", 0) + ping()),
      protocol("ENABLE_PUSH from a server", settings({{2, 1}})),
      protocol("GOAWAY with a higher number", goaway(5, 0) + goaway(7, 0)),
      protocol("GOAWAY with an even number", goaway(2, 0)),
      protocol("GOAWAY for a stream", frame(7, 0, 1, u32(1) + u32(0))),
      protocol("padding longer than the frame", frame(0, kPadded, 5, u8(9) + "abc")),
      protocol("extended CONNECT allowed, then not", settings({{8, 1}}) + settings({{8, 0}})),
      {"HEADERS after the end", headers(3, status("200")), SessionEnd::kStreamClosed,
       ErrorCode::kStreamClosed},
      {"DATA after the end", data(3, "x"), SessionEnd::kStreamClosed, ErrorCode::kStreamClosed},
      {"a frame too large", frame(0, 0, 5, std::string(16385, 'x')), SessionEnd::kFrameSize,
       ErrorCode::kFrameSizeError},
      {"SETTINGS of a wrong length", frame(4, 0, 0, "12345"), SessionEnd::kFrameSize,
       ErrorCode::kFrameSizeError},
      {"PING of a wrong length", frame(6, 0, 0, "1234567"), SessionEnd::kFrameSize,
       ErrorCode::kFrameSizeError},
      {"an initial window too large", settings({{4, 0x80000000}}), SessionEnd::kFlowControl,
       ErrorCode::kFlowControlError},
      {"the connection's window overflows", window_update(0, 0x7fffffff), SessionEnd::kFlowControl,
       ErrorCode::kFlowControlError},
      {"HPACK that does not decode", headers_raw(1, index(70), kEndHeaders),
       SessionEnd::kCompression, ErrorCode::kCompressionError},
      {"33 settings", settings(std::vector<std::pair<unsigned, std::uint32_t>>(33, {99, 1})),
       SessionEnd::kSettings, ErrorCode::kEnhanceYourCalm},
  };
  for (const Rude& rude : all) {
    TestClient client;
    serve(client);
    client.send(rude.bytes);
    EXPECT_EQ(client.ended(), rude.end) << rude.what;
    EXPECT_EQ(client.goaway_code(), rude.code) << rude.what;
    EXPECT_TRUE(client.session().finished()) << rude.what;
    EXPECT_EQ(client.session().capacity(), 0U) << rude.what;
    EXPECT_FALSE(client.session().ping(client.now)) << rude.what;
    EXPECT_EQ(client.session().processed(5), Processed::kYes) << rude.what;
  }
}

TEST(H2ClientAttack, TheFirstFrameIsSettings) {
  for (const std::string& bytes : {ping(), settings_ack(), headers(1, status("200")),
                                   std::string("HTTP/1.1 400 Bad\r\n\r\n")}) {
    TestClient client;
    client.get();
    client.send(bytes);
    EXPECT_FALSE(client.alive());
    EXPECT_TRUE(client.streams[1].status == 0);
    EXPECT_EQ(client.session().processed(1), Processed::kMaybe);
  }
}

TEST(H2ClientAttack, MalformedResponsesAreNeverDelivered) {
  const std::vector<Fields> heads = {
      {{"content-type", "a"}},                            // no :status
      {{":status", "200"}, {":status", "200"}},           // twice
      {{"a", "b"}, {":status", "200"}},                   // not first
      {{":status", "200"}, {":path", "/"}},               // of a request
      {{":status", "200"}, {":unknown", "x"}},            //
      {{":status", "20"}},                                //
      {{":status", "2000"}},                              //
      {{":status", "abc"}},                               //
      {{":status", "099"}},                               //
      {{":status", "600"}},                               //
      {{":status", ""}},                                  //
      {{":status", "101"}},                               // not in HTTP/2
      status("200", {{"connection", "close"}}),           //
      status("200", {{"transfer-encoding", "chunked"}}),  //
      status("200", {{"keep-alive", "1"}}),               //
      status("200", {{"proxy-connection", "x"}}),         //
      status("200", {{"upgrade", "h2c"}}),                //
      status("200", {{"te", "gzip"}}),                    //
      status("200", {{"Upper", "x"}}),                    //
      status("200", {{"", "x"}}),                         //
      status("200", {{"a b", "x"}}),                      //
      status("200", {{"a", "x\r\nset-cookie: y"}}),       //
      status("200", {{"a", std::string("x\0y", 3)}}),     //
      status("200", {{"a", " x"}}),                       //
      status("200", {{"transfer_encoding", "chunked"}}),  //
      status("103", {{"content-length", "3"}}),           //
      status("200", {{"content-length", "1"}, {"content-length", "2"}}),
      status("200", {{"content-length", "+1"}}),
  };
  for (const Fields& head : heads) {
    TestClient client;
    client.handshake();
    client.get();
    client.get();
    client.send(headers(1, head, 0));
    const SeenResponse& seen = client.streams[1];
    const std::string what = head[0].first + ": " + head.back().first + ": " + head.back().second;
    EXPECT_EQ(seen.status, 0U) << what;
    EXPECT_TRUE(seen.fields.empty()) << what;
    EXPECT_TRUE(seen.ended) << what;
    EXPECT_EQ(seen.end, StreamEnd::kReset) << what;
    EXPECT_EQ(seen.code, ErrorCode::kProtocolError) << what;
    EXPECT_EQ(seen.processed, Processed::kYes) << what;
    EXPECT_EQ(client.reset_code(1), ErrorCode::kProtocolError) << what;
    EXPECT_EQ(client.glitches(H2Glitch::kMalformedMessage), 1U) << what;
    client.send(headers(3, status("200")));
    EXPECT_EQ(client.streams[3].status, 200U) << "HPACK is in sync: " << what;
  }
}

TEST(H2ClientAttack, MalformedResponsesThatEndTheirStreamAreNoAnswer) {
  for (const Fields& head :
       {Fields{{"a", "b"}}, status("103"), status("200", {{"connection", "x"}})}) {
    TestClient client;
    client.handshake();
    client.get();
    client.send(headers(1, head, kEnd));
    EXPECT_EQ(client.streams[1].status, 0U);
    EXPECT_TRUE(client.streams[1].informed.empty());
    EXPECT_TRUE(client.streams[1].ended);
    EXPECT_EQ(client.streams[1].end, StreamEnd::kReset);
    EXPECT_EQ(client.streams[1].code, ErrorCode::kProtocolError);
    EXPECT_EQ(client.count(FrameType::kRstStream), 0U) << "the stream is closed already";
    EXPECT_TRUE(client.alive());
  }
}

TEST(H2ClientAttack, MalformedTrailersAreNeverDelivered) {
  for (const Fields& trailers : {Fields{{":status", "200"}}, Fields{{"content-length", "1"}},
                                 Fields{{"connection", "close"}}, Fields{{"Upper", "1"}}}) {
    TestClient client;
    client.handshake();
    client.get();
    client.send(headers(1, status("200"), 0) + data(1, "x") + headers(1, trailers, kEnd));
    EXPECT_TRUE(client.streams[1].trailers.empty());
    EXPECT_FALSE(client.streams[1].complete);
    EXPECT_EQ(client.streams[1].end, StreamEnd::kReset);
    EXPECT_EQ(client.streams[1].code, ErrorCode::kProtocolError);
  }
  TestClient client;
  client.handshake();
  client.get();
  client.send(headers(1, status("200"), 0) + headers(1, {{"a", "b"}}, 0));
  EXPECT_EQ(client.streams[1].code, ErrorCode::kProtocolError) << "trailers that do not end";
}

TEST(H2ClientAttack, ABodyBeforeItsHead) {
  for (const std::string& before : {std::string(), headers(1, status("103"), 0)}) {
    TestClient client;
    client.handshake();
    client.get();
    client.send(before + data(1, "body", kEnd));
    EXPECT_TRUE(client.streams[1].body.empty());
    EXPECT_EQ(client.streams[1].end, StreamEnd::kReset);
    EXPECT_EQ(client.streams[1].code, ErrorCode::kProtocolError);
    EXPECT_TRUE(client.alive());
  }
}

TEST(H2ClientAttack, InterimResponsesAreBounded) {
  TestClient client;
  client.handshake();
  client.get();
  for (int i = 0; i < 20; ++i) client.send(headers(1, status("103", {{"link", "x"}}), 0));
  EXPECT_EQ(client.streams[1].informed.size(), 8U);
  EXPECT_EQ(client.streams[1].end, StreamEnd::kReset);
  EXPECT_EQ(client.streams[1].code, ErrorCode::kEnhanceYourCalm);
  client.get();
  client.send(headers(3, status("103", {{"link", std::string(16'345, 'x')}}), 0));
  EXPECT_TRUE(client.streams[3].informed.empty());
  EXPECT_EQ(client.streams[3].code, ErrorCode::kEnhanceYourCalm) << "and in bytes";
}

TEST(H2ClientAttack, HeadsAndTrailersAreBounded) {
  const auto ends = [](const std::string& bytes) {
    TestClient client;
    client.handshake();
    client.get();
    client.get();
    client.send(bytes);
    EXPECT_EQ(client.streams[1].end, StreamEnd::kReset);
    EXPECT_EQ(client.streams[1].code, ErrorCode::kEnhanceYourCalm);
    EXPECT_FALSE(client.streams[1].complete);
    client.send(headers(3, status("200")));
    EXPECT_EQ(client.streams[3].status, 200U);
    EXPECT_TRUE(client.stayed_inside());
    return client.glitches(H2Glitch::kHeadersTooLarge) == 1;
  };
  EXPECT_TRUE(ends(headers(1, status("200", Fields(101, {"a", "b"})))));
  EXPECT_TRUE(ends(headers(1, status("200", {{"a", std::string(16'345, 'x')}}), 0)));
  EXPECT_TRUE(ends(headers(1, status("200"), 0) + headers(1, Fields(33, {"a", "b"}))));
  EXPECT_TRUE(ends(headers(1, status("200"), 0) + headers(1, {{"a", std::string(4'100, 'x')}})));
  // Many fields from few bytes: references to one entry of the table.
  std::string bomb = literal(":status", "200") + indexed_literal("x", std::string(3000, 'x'));
  for (int i = 0; i < 4000; ++i) bomb += index(62);
  EXPECT_TRUE(ends(headers_raw(1, bomb, kEndHeaders)));
}

TEST(H2ClientAttack, ContinuationsAreBounded) {
  TestClient client;
  client.handshake();
  client.get();
  client.send(headers_raw(1, literal(":status", "200"), 0));
  for (int i = 0; i < 100 && client.alive(); ++i)
    client.send(continuation(1, literal("a", "b"), 0));
  EXPECT_EQ(client.ended(), SessionEnd::kHeaderBlock);
  EXPECT_EQ(client.goaway_code(), ErrorCode::kEnhanceYourCalm);

  TestClient slow;
  slow.handshake();
  slow.get();
  slow.send(headers_raw(1, literal(":status", "200"), 0));
  slow.now = slow.session().next_expiry();
  slow.session().expire(slow.now);
  EXPECT_EQ(slow.ended(), SessionEnd::kHeaderTimeout);
}

/// Sends one frame again and again. Returns how many were accepted, at most `most`.
int flood(TestClient& client, const std::string& bytes, int most = 20'000) {
  for (int i = 0; i < most; ++i) {
    client.send(bytes);
    client.frames.clear();
    if (!client.alive()) return i;
  }
  return most;
}

TEST(H2ClientAttack, FloodsEndTheConnection) {
  const std::vector<std::pair<std::string, H2Glitch>> floods = {
      {ping(), H2Glitch::kPingFlood},
      {ping(kAck), H2Glitch::kPingFlood},
      {settings(), H2Glitch::kSettingsFlood},
      {settings({{3, 1}}) + settings({{3, 100}}), H2Glitch::kSettingsFlood},
      {window_update(0, 1), H2Glitch::kWindowUpdateFlood},
      {window_update(5, 1), H2Glitch::kWindowUpdateFlood},
      {data(5, ""), H2Glitch::kEmptyFrame},
      {priority(1, 3), H2Glitch::kPriorityFlood},
      {frame(0x20, 0, 0, "x"), H2Glitch::kUnknownFrame},
      {rst(3), H2Glitch::kClosedStreamFrame},
      {goaway(5, 0), H2Glitch::kSettingsFlood},
  };
  for (const auto& [bytes, glitch] : floods) {
    TestClient client;
    serve(client);
    const int accepted = flood(client, bytes);
    EXPECT_LT(accepted, 2500) << name_of(glitch);
    EXPECT_GT(accepted, 15) << name_of(glitch);
    EXPECT_EQ(client.ended(), SessionEnd::kGlitches) << name_of(glitch);
    EXPECT_GT(client.glitches(glitch), 100U) << name_of(glitch);
    EXPECT_TRUE(client.stayed_inside());
  }
}

TEST(H2ClientAttack, ThreeQuartersOfTheScoreStopNewStreams) {
  TestClient client;
  serve(client);
  const std::uint64_t before = client.capacity_changes;
  for (int i = 0; i < 830; ++i) client.send(ping());
  EXPECT_TRUE(client.alive());
  EXPECT_EQ(client.session().capacity(), 0U);
  EXPECT_EQ(client.capacity_changes, before + 1);
  EXPECT_TRUE(client.session().is_leaving());
  EXPECT_EQ(client.goaway_code(), ErrorCode::kEnhanceYourCalm);
  client.send(headers(1, status("200")));
  EXPECT_EQ(client.streams[1].end, StreamEnd::kDone) << "open streams go on";
}

TEST(H2ClientAttack, ResetsThatWeMustSendAreCounted) {
  const std::vector<std::string> provocations = {window_update(0xffff, 0),
                                                 window_update(0xffff, 0x7fffffff),
                                                 headers(0xffff, {{"a", "b"}}), data(0xffff, "x")};
  for (const std::string& bytes : provocations) {
    TestClient client;
    client.handshake();
    int streams = 0;
    for (; streams < 5000 && client.alive(); ++streams) {
      const StreamId id = client.get();
      if (id == 0) break;  // GOAWAY was sent
      std::string hit = bytes;
      write_u32(reinterpret_cast<std::uint8_t*>(hit.data()) + 5, id);
      client.send(hit);
      client.frames.clear();
    }
    EXPECT_LT(streams, 1000);
    EXPECT_TRUE(client.session().is_leaving());
  }
}

TEST(H2ClientAttack, AServerThatDoesNotReadIsNotServed) {
  OwnerOptions options;
  options.drain = false;
  TestClient client({}, options);
  client.handshake();
  int sent = 0;
  while (!client.blocked && sent < 1000) {
    client.send(ping());
    ++sent;
  }
  EXPECT_LE(sent, 33);
  EXPECT_TRUE(client.blocked);
  EXPECT_LE(client.session().stats(client.now).outbound_frames, 64U);
}

TEST(H2ClientAttack, RefusingEverythingIsAllowed) {
  TestClient client;
  client.handshake();
  for (int i = 0; i < 5000; ++i) {
    const StreamId id = client.get();
    ASSERT_NE(id, 0U) << i;
    client.send(rst(id, 7));
    ASSERT_EQ(client.streams[id].processed, Processed::kNo);
    client.frames.clear();
    client.streams.clear();
  }
  EXPECT_EQ(client.session().glitches(), 0U);
}

TEST(H2ClientAttack, CancelledStreamsOfSmallFramesAreNoFlood) {
  TestClient client;
  client.handshake();
  for (int i = 0; i < 300; ++i) {
    const StreamId id = client.get();
    client.send(headers(id, status("200"), 0) + data(id, std::string(50, 'x')));
    client.session().reset(id, ErrorCode::kCancel);
    client.drain();
    for (int k = 0; k < 150; ++k) client.send(data(id, std::string(80, 'x')));
    client.frames.clear();
  }
  EXPECT_EQ(client.session().glitches(), 0U) << "they were on their way, within the window";
  const StreamId last = client.get();
  client.session().reset(last, ErrorCode::kCancel);
  client.drain();
  EXPECT_LT(flood(client, data(last, ""), 200'000), 200'000) << "but there is an end to it";
}

}  // namespace
}  // namespace weir::inline v0::http::h2
