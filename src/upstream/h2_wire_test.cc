#include "h2_wire.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "h2_origin_testing.h"
#include "upstream/dispatcher_testing.h"

// Calls over HTTP/2 to an origin that speaks it with our own server codec, over real sockets.

namespace weir::inline v0::upstream {
namespace {

constexpr std::size_t kWholeInLease = 24 * 1024;

class H2WireTest : public DispatcherTest {
 protected:
  void connect(UpstreamConfig config = {}) {
    config.protocol = Protocol::kHttp2;
    make({socket.name()}, config);
  }
  void accept() {
    socket.accept(loop);
    origin.begin(loop.now());
  }
  template <class Done>
  void step_until(Done done) {
    for (int i = 0; i < 2000 && !done(); ++i) origin.step(loop);
    ASSERT_TRUE(done());
  }
  void post(Call& call, RequestFraming framing = RequestFraming::kChunked) {
    constexpr std::string_view kText = "POST /up HTTP/1.1\r\nhost: x\r\n";
    put_head(*dispatcher, call, kText, head_parts(kText, http::Method::kPost, framing));
    ASSERT_TRUE(call.start({}));
  }
  [[nodiscard]] H2Origin::Request& request(http::h2::StreamId id) { return origin.requests[id]; }

  FakeOrigin socket;
  H2Origin origin{socket};
};

TEST_F(H2WireTest, ARequestAndItsResponsePass) {
  connect();
  Asked asked;
  ASSERT_TRUE(get(asked.call, {.deadline = loop.now() + std::chrono::seconds(60),
                               .caller_attempt = 2,
                               .forwards_deadline = true}));
  accept();
  step_until([&] { return !origin.requests.empty(); });
  EXPECT_EQ(request(1).method, "GET");
  EXPECT_EQ(request(1).path, "/");
  EXPECT_EQ(request(1).scheme, "http");
  EXPECT_EQ(request(1).authority, "x");
  EXPECT_EQ(request(1).fields["x-weir-attempt"], "2");
  EXPECT_NE(request(1).fields["x-weir-deadline-ms"], "");
  EXPECT_EQ(request(1).fields.count("host"), 0U);
  EXPECT_TRUE(request(1).ended);
  origin.answer(1, 200, false, {{"content-length", "5"}});
  origin.data(loop, 1, "hello", true);
  step_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.status, 200U);
  EXPECT_EQ(asked.seen.body, "hello");
}

TEST_F(H2WireTest, ManyRequestsShareOneConnection) {
  connect();
  std::vector<std::unique_ptr<Asked>> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(std::make_unique<Asked>());
    ASSERT_TRUE(get(all.back()->call));
  }
  accept();
  step_until([&] { return origin.requests.size() == 8; });
  for (auto& [id, seen] : origin.requests) origin.answer(id, 204, true);
  step_until([&] {
    return std::all_of(all.begin(), all.end(), [](const auto& a) { return a->seen.complete; });
  });
  EXPECT_EQ(upstream->connections(), 1U);
}

TEST_F(H2WireTest, ABodyIsSentAsFastAsWindowsAllowAndTrailersFollow) {
  connect();
  Asked asked;
  post(asked.call);
  accept();
  origin.grants = false;
  std::string sent;
  bool more = asked.call.send_body({}, false);
  step_until([&] { return origin.requests.size() == 1; });
  for (int i = 0; i < 4; ++i) {
    if (!more) step_until([&] { return asked.seen.writable > 0; });
    asked.seen.writable = 0;
    const std::string piece(8000, static_cast<char>('a' + i));
    sent += piece;
    if (sent.size() > 16384) {
      origin.grants = true;
      origin.session().grant(1, 65536);
    }
    more = asked.call.send_body(piece, false);
  }
  if (!more) step_until([&] { return asked.seen.writable > 0; });
  const std::array trailers = {http::HeaderView{"x-sum", "1", http::FieldId::kOther, false}};
  static_cast<void>(asked.call.send_trailers(trailers));
  step_until([&] { return request(1).ended; });
  EXPECT_EQ(request(1).body, sent);
  EXPECT_EQ(request(1).trailers, 1U);
  origin.answer(1, 204, true);
  step_until([&] { return asked.seen.complete; });
}

TEST_F(H2WireTest, AnEmptyLastPieceEndsABody) {
  connect();
  Asked asked;
  post(asked.call);
  accept();
  step_until([&] { return origin.requests.size() == 1; });
  EXPECT_FALSE(request(1).ended);
  static_cast<void>(asked.call.send_body({}, true));
  step_until([&] { return request(1).ended; });
  EXPECT_EQ(request(1).body, "");
  origin.answer(1, 204, true);
  step_until([&] { return asked.seen.complete; });
}

TEST_F(H2WireTest, ASlowOwnerStopsItsOwnStreamOnly) {
  connect();
  Asked slow;
  Asked quick;
  slow.seen.take_at_most = 100;
  ASSERT_TRUE(get(slow.call));
  ASSERT_TRUE(get(quick.call));
  accept();
  step_until([&] { return origin.requests.size() == 2; });
  origin.answer(1, 200, false);
  origin.answer(3, 200, false);
  const std::string large(64 * 1024, 'x');
  const std::size_t sent = origin.data(loop, 1, large, false);
  EXPECT_LT(sent, large.size()) << "the window is the room that is leased";
  origin.data(loop, 3, "quick", true);
  step_until([&] { return quick.seen.complete; });
  ASSERT_EQ(slow.seen.body.size(), 100U);
  slow.seen.take_at_most = ~std::size_t{0};
  std::size_t total = sent;
  for (int i = 0; i < 500 && total < large.size(); ++i) {
    slow.call.resume();
    origin.step(loop);
    total += origin.data(loop, 1, std::string_view(large).substr(total), false);
  }
  ASSERT_EQ(total, large.size());
  // Once the window is open again: even an empty DATA frame needs that here.
  step_until([&] { return origin.session().sendable(1) > 0; });
  origin.data(loop, 1, "", true);
  step_until([&] { return slow.seen.complete; });
  EXPECT_EQ(slow.seen.body, large);
}

TEST_F(H2WireTest, AHeadThatIsNotAcceptedIsDeliveredAgain) {
  connect();
  Asked asked;
  asked.seen.take_heads = false;
  ASSERT_TRUE(get(asked.call));
  accept();
  step_until([&] { return origin.requests.size() == 1; });
  origin.answer(1, 200, false, {{"x-a", "b"}});
  origin.data(loop, 1, "body", true);
  step_until([&] { return asked.seen.heads == 1; });
  asked.seen.take_heads = true;
  asked.call.resume();
  EXPECT_TRUE(asked.seen.complete);
  EXPECT_EQ(asked.seen.heads, 2);
  EXPECT_EQ(asked.seen.body, "body");
}

TEST_F(H2WireTest, ACancelledCallResetsItsStreamAndTheOthersGoOn) {
  connect();
  Asked gone;
  Asked stays;
  ASSERT_TRUE(get(gone.call));
  ASSERT_TRUE(get(stays.call));
  accept();
  step_until([&] { return origin.requests.size() == 2; });
  gone.call.cancel();
  step_until([&] { return request(1).reset; });
  EXPECT_EQ(request(1).code, http::h2::ErrorCode::kCancel);
  origin.answer(3, 204, true);
  step_until([&] { return stays.seen.complete; });
  EXPECT_EQ(upstream->connections(), 1U);
}

TEST_F(H2WireTest, ARefusedStreamIsSentAgainOnce) {
  connect();
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  accept();
  step_until([&] { return origin.requests.size() == 1; });
  origin.session().reset(1, http::h2::ErrorCode::kRefusedStream);
  step_until([&] { return origin.requests.size() == 2; });
  origin.answer(3, 204, true);
  step_until([&] { return asked.seen.complete; });
}

TEST_F(H2WireTest, GoawayLosesNoUnstartedRequest) {
  connect();
  Asked first;
  ASSERT_TRUE(get(first.call));
  accept();
  step_until([&] { return origin.requests.size() == 1; });
  origin.session().shut_down();
  step_until([&] { return !origin.session().has_output(); });
  for (int i = 0; i < 20; ++i) origin.step(loop);
  Asked second;  // the connection takes no more: another one is opened
  ASSERT_TRUE(get(second.call));
  origin.answer(1, 204, true);
  step_until([&] { return first.seen.complete; });
  socket.accept_another(loop);
  origin.begin(loop.now());
  origin.requests.clear();
  step_until([&] { return origin.requests.size() == 1; });
  origin.answer(1, 204, true);
  step_until([&] { return second.seen.complete; });
}

TEST_F(H2WireTest, ALostConnectionFailsItsCallsOrSendsThemAgain) {
  connect();
  Asked read;
  Asked write;
  ASSERT_TRUE(get(read.call));
  post(write.call, RequestFraming::kLength);
  accept();
  static_cast<void>(write.call.send_body("x", true));
  step_until([&] { return origin.requests.size() == 2; });
  socket.close();
  run_until([&] { return write.seen.failure != UpstreamFailure::kNone; });
  EXPECT_EQ(write.seen.failure, UpstreamFailure::kClosedEarly);
  socket.accept(loop);
  origin.begin(loop.now());
  origin.requests.clear();
  step_until([&] { return origin.requests.size() == 1; });
  origin.answer(1, 204, true);
  step_until([&] { return read.seen.complete; });
}

TEST_F(H2WireTest, AnAnswerThatHasBegunIsNeverHeld) {
  UpstreamConfig config;
  config.hold_max = std::chrono::seconds(20);
  connect(config);
  Asked asked;
  asked.seen.take_at_most = 100;
  ASSERT_TRUE(get(asked.call));
  accept();
  step_until([&] { return origin.requests.size() == 1; });
  origin.answer(1, 200, false);
  // All of it is here, and its owner has not taken it: the codec has forgotten the stream.
  const std::string body(kWholeInLease, 'x');
  std::size_t sent = origin.data(loop, 1, body, true);
  step_until([&] {
    if (sent < body.size()) sent += origin.data(loop, 1, std::string_view(body).substr(sent), true);
    return sent == body.size();
  });
  for (int i = 0; i < 50; ++i) origin.step(loop);
  ASSERT_FALSE(asked.seen.received) << "the call has taken it: no stream holds a part of it";
  upstream->set_endpoints({}, loop.now());
  socket.close();
  run_until([&] { return asked.seen.ended() || asked.seen.held > 0; });
  EXPECT_EQ(asked.seen.held, 0);
  EXPECT_EQ(asked.seen.failure, UpstreamFailure::kTruncated);
}

TEST_F(H2WireTest, ARogueServerEndsItsConnectionOnly) {
  connect();
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  accept();
  step_until([&] { return origin.requests.size() == 1; });
  // PUSH_PROMISE, which we have switched off.
  socket.write(std::string_view("\x00\x00\x04\x05\x04\x00\x00\x00\x01\x00\x00\x00\x02", 13));
  run_until([&] {
    return upstream->connections() == 0 || asked.seen.failure != UpstreamFailure::kNone ||
           socket.has_caller();
  });
  asked.call.cancel();
}

TEST_F(H2WireTest, InterimHeadsArePassedOn) {
  connect();
  Asked asked;
  ASSERT_TRUE(get(asked.call));
  accept();
  step_until([&] { return origin.requests.size() == 1; });
  origin.answer(1, 103, false, {{"link", "</a>"}});
  origin.answer(1, 200, true);
  step_until([&] { return asked.seen.complete; });
  EXPECT_EQ(asked.seen.interim, std::vector<unsigned>{103});
}

}  // namespace
}  // namespace weir::inline v0::upstream
