// What proxies of gRPC get wrong with messages, windows, ends and cancels; frames on real sockets.
// docs/design/gateway.md lists all of these mistakes with their tests.
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "frame_origin_testing.h"

namespace weir::gateway {
namespace {

using std::chrono::milliseconds;
using testkit::FrameConnection;
using testkit::FrameOrigin;
using testkit::grpc_head;
using testkit::grpc_message;
using testkit::grpc_status;
using testkit::grpc_trailers;
using testkit::GrpcPath;
using testkit::H2Client;
using testkit::Reply;
using testkit::RunningGateway;
using testkit::value_of;
namespace wire = testkit::wire;

constexpr std::uint32_t kNoError = 0;
constexpr std::uint32_t kCancel = 8;

TEST(GrpcPitfall, ALargeAnswerReachesASlowReaderAlthoughTheServiceStopsItsUpload) {
  constexpr std::size_t kLength = 4 * 1024 * 1024;
  constexpr std::size_t kUnread = 12 * 1024;  // what the gateway can hold
  GrpcPath path({.settings = {}, .open_windows = false, .receive_buffer = 16 * 1024});
  const std::uint32_t id = path.begin();
  path.client.send(wire::data(id, grpc_message("one of many")));
  FrameConnection& service = path.service();
  service.accept_call();
  const std::string answer = testkit::pattern(kLength);
  std::thread sends([&] {
    service.send(wire::headers(1, grpc_head(), 0));
    EXPECT_TRUE(service.send_data(1, answer));
    service.send(wire::headers(1, grpc_trailers()) + wire::rst(1, kNoError));
    EXPECT_TRUE(service.in_step()) << "the gateway has all of it";
  });
  Reply& reply = path.client.reply(id);
  std::size_t opened = 65535;
  while (opened < kLength - kUnread) {
    const std::size_t more = std::min<std::size_t>(16384, kLength - kUnread - opened);
    while (reply.body.size() + 32 * 1024 < opened && path.client.next()) {
    }
    const auto step = static_cast<std::uint32_t>(more);
    path.client.send(wire::window_update(0, step) + wire::window_update(id, step));
    opened += more;
  }
  while (reply.body.size() < opened && path.client.next()) {
  }
  sends.join();
  EXPECT_FALSE(reply.ended);
  EXPECT_FALSE(reply.reset) << "only the upload is over";
  path.client.send(wire::window_update(0, 1 << 20) + wire::window_update(id, 1 << 20));
  path.client.finish(id);
  EXPECT_EQ(reply.body.size(), kLength);
  EXPECT_TRUE(reply.body == answer);
  EXPECT_EQ(value_of(reply.trailers, "grpc-status"), "0");
  EXPECT_TRUE(path.gateway.settled());
}

TEST(GrpcPitfall, TrailersBehindAFullReceiveBufferArrive) {
  GrpcPath path({.settings = {{4, 0}}, .open_windows = false});  // no window for messages
  const std::uint32_t id = path.say();
  FrameConnection& service = path.service();
  service.whole_call();
  const std::string answer = grpc_message(std::string(6000, 'm'));
  service.answer(1, answer, grpc_trailers("0", {{"grpc-message", "all%20of%20it"}}));
  ASSERT_TRUE(service.in_step());
  ASSERT_TRUE(path.client.in_step());
  Reply& reply = path.client.reply(id);
  EXPECT_EQ(reply.body, "");
  EXPECT_FALSE(reply.ended) << "trailers do not overtake the message";
  path.client.send(wire::window_update(id, 100'000));
  path.client.finish(id);
  EXPECT_EQ(reply.body, answer);
  EXPECT_EQ(value_of(reply.trailers, "grpc-status"), "0");
  EXPECT_EQ(value_of(reply.trailers, "grpc-message"), "all%20of%20it");
}

TEST(GrpcPitfall, TrailersAbove12KbArrive) {
  GrpcPath path;
  const std::uint32_t id = path.say();
  FrameConnection& service = path.service();
  service.whole_call();
  wire::Fields details;
  for (int i = 0; i < 13; ++i) {
    details.emplace_back("detail-" + std::to_string(i),
                         std::string(1000, static_cast<char>('a' + i)));
  }
  service.answer(1, grpc_message("m"), grpc_trailers("9", details));
  const Reply& reply = path.client.finish(id);
  EXPECT_EQ(value_of(reply.trailers, "grpc-status"), "9") << "and not INTERNAL of our own";
  for (const auto& [name, value] : details) EXPECT_EQ(value_of(reply.trailers, name), value);
}

TEST(GrpcPitfall, AnAnswerThatBreaksOffEndsWithTrailersAndUnavailable) {
  for (const int code : {-1, 0, 2, 7, 8, 11}) {  // -1: TCP is reset
    SCOPED_TRACE(code);
    GrpcPath path;
    const std::uint32_t id = path.say();
    FrameConnection& service = path.service();
    service.whole_call();
    service.send(wire::headers(1, grpc_head(), 0));
    service.send_data(1, grpc_message("the first of two"));
    Reply& reply = path.client.reply(id);
    while (reply.body.empty() && path.client.next()) {
    }
    code < 0 ? service.cut() : void(service.send(wire::rst(1, static_cast<std::uint32_t>(code))));
    const std::size_t frames = reply.data_frames;
    path.client.finish(id);
    EXPECT_EQ(value_of(reply.trailers, "grpc-status"), "14");
    EXPECT_NE(value_of(reply.trailers, "grpc-message"), "");
    EXPECT_EQ(reply.data_frames, frames) << "no empty DATA that ends the stream";
    EXPECT_FALSE(reply.reset);
    EXPECT_TRUE(path.gateway.settled());
  }
}

/// How long a cancel of the client takes to the service.
Duration cancel_time(bool half_closed, bool data_queued) {
  GrpcPath path;
  const std::uint32_t id = path.begin();
  FrameConnection& service = path.service({{4, 1000}});  // its windows hold this much
  FrameConnection::Call& call = service.accept_call();
  service.open_windows = false;
  const std::string message = grpc_message(std::string(data_queued ? 15'000 : 100, 'q'));
  path.client.send(wire::data(id, message, half_closed ? wire::kEnd : 0));
  EXPECT_TRUE(path.client.in_step());
  if (half_closed && !data_queued) {
    EXPECT_TRUE(service.until([&] { return call.ended; }));
  }
  const TimePoint start = io::monotonic_now();
  path.client.send(wire::rst(id, kCancel));
  EXPECT_TRUE(service.until([&] { return call.reset.has_value(); }));
  const Duration took = io::monotonic_now() - start;
  EXPECT_EQ(call.reset, kCancel);
  EXPECT_TRUE(path.gateway.settled());
  return took;
}

TEST(GrpcPitfall, ACancelReachesTheServiceAtOnceAlsoWithDataQueuedAndHalfClosed) {
  for (const bool half_closed : {false, true}) {
    for (const bool data_queued : {false, true}) {
      SCOPED_TRACE(half_closed);
      SCOPED_TRACE(data_queued);
      Duration best = Duration::max();
      for (int i = 0; i < 3; ++i) best = std::min(best, cancel_time(half_closed, data_queued));
      EXPECT_LT(best, milliseconds(150)) << "other requests go on for 300 ms";
    }
  }
}

enum class EndsWith { kHead, kTrailers, kData, kEmptyData };

TEST(GrpcPitfall, AnAnswerMayEndBeforeAndAfterTheRequestInEveryWay) {
  GrpcPath path;
  std::uint32_t stream = 1;
  for (const bool request_ended : {false, true}) {
    for (const EndsWith how :
         {EndsWith::kHead, EndsWith::kTrailers, EndsWith::kData, EndsWith::kEmptyData}) {
      SCOPED_TRACE(request_ended);
      SCOPED_TRACE(static_cast<int>(how));
      const std::uint32_t id = request_ended ? path.say() : path.begin();
      FrameConnection& service = path.service();
      request_ended ? service.whole_call() : service.accept_call();
      const std::string message = grpc_message("m");
      const bool alone = how == EndsWith::kHead;
      service.send(
          wire::headers(stream, alone ? grpc_status("0") : grpc_head(), alone ? wire::kEnd : 0));
      if (how == EndsWith::kTrailers)
        service.send(wire::data(stream, message) + wire::headers(stream, grpc_trailers()));
      if (how == EndsWith::kData) service.send(wire::data(stream, message, wire::kEnd));
      if (how == EndsWith::kEmptyData) {
        service.send(wire::data(stream, message) + wire::data(stream, "", wire::kEnd));
      }
      const Reply& reply = path.client.finish(id);
      EXPECT_TRUE(reply.ended);
      EXPECT_EQ(reply.status, 200);
      EXPECT_EQ(reply.body, alone ? "" : message);
      EXPECT_EQ(reply.field("grpc-status"), alone ? "0" : "");
      // An end without a status would be none for the client: the gateway says what happened.
      EXPECT_EQ(value_of(reply.trailers, "grpc-status"), alone                        ? ""
                                                         : how == EndsWith::kTrailers ? "0"
                                                                                      : "2");
      stream += 2;
    }
  }
  EXPECT_TRUE(path.gateway.settled());
  EXPECT_EQ(path.gateway.stats()["upstreams"]["app"]["in_flight"], 0);
}

TEST(GrpcPitfall, AStreamMayGoOnUpwardsAfterTheAnswerHasBegun) {
  GrpcPath path;
  const std::uint32_t id = path.begin();
  FrameConnection& service = path.service();
  FrameConnection::Call& call = service.accept_call();
  service.send(wire::headers(1, grpc_head(), 0));
  std::string all;
  for (int i = 0; i < 20; ++i) {
    const std::string said = grpc_message("ping " + std::to_string(i));
    path.client.send(wire::data(id, said));
    all += said;
    ASSERT_TRUE(service.until([&] { return call.body.size() == all.size(); }));
    service.send(wire::data(1, said));
    while (path.client.reply(id).body.size() < all.size() && path.client.next()) {
    }
  }
  path.client.send(wire::data(id, "", wire::kEnd));
  ASSERT_TRUE(service.until([&] { return call.ended; }));
  service.send(wire::headers(1, grpc_trailers()));
  EXPECT_EQ(value_of(path.client.finish(id).trailers, "grpc-status"), "0");
  EXPECT_EQ(path.client.reply(id).body, all);
  EXPECT_EQ(call.body, all);
}

/// Answers each call with its own message, until the connection ends.
void echo_all(FrameConnection& service) {
  std::map<std::uint32_t, bool> done;
  while (service.next()) {
    for (auto& [id, call] : service.calls) {
      if (!call.ended || std::exchange(done[id], true)) continue;
      service.answer(id, std::string(call.body), grpc_trailers());
    }
  }
}

/// Sends messages on one connection as its windows allow.
class Uploader {
 public:
  explicit Uploader(H2Client& client) : client_(client) {
    const auto settings = client.until(http::h2::FrameType::kSettings);
    EXPECT_TRUE(settings);
    for (std::size_t at = 0; settings && at + 6 <= settings->payload.size(); at += 6) {
      if (settings->payload[at + 1] == kInitialWindow) initial_ = settings->word(at + 2);
    }
  }
  /// Returns the answer.
  Reply& exchange(std::uint32_t id, const std::string& message) {
    std::int64_t stream_window = initial_;
    for (std::size_t at = 0; at < message.size();) {
      const std::int64_t room = std::min({stream_window, window_, std::int64_t{16384}});
      if (room <= 0) {
        const auto frame = client_.next();
        if (!frame) break;
        if (!frame->is(http::h2::FrameType::kWindowUpdate)) continue;
        if (frame->header.stream == 0) window_ += frame->word();
        if (frame->header.stream == id) stream_window += frame->word();
        continue;
      }
      const std::size_t n = std::min(message.size() - at, static_cast<std::size_t>(room));
      const bool last = at + n == message.size();
      client_.send(wire::data(id, message.substr(at, n), last ? wire::kEnd : 0));
      at += n;
      stream_window -= static_cast<std::int64_t>(n);
      window_ -= static_cast<std::int64_t>(n);
    }
    Reply& reply = client_.reply(id);
    while (!reply.ended && !reply.reset) {
      const auto frame = client_.next();
      if (!frame) break;
      const bool of_all =
          frame->is(http::h2::FrameType::kWindowUpdate) && frame->header.stream == 0;
      if (of_all) window_ += frame->word();
    }
    return reply;
  }

 private:
  static constexpr char kInitialWindow = 4;  // a SETTINGS parameter
  H2Client& client_;
  std::int64_t initial_ = 65535;
  std::int64_t window_ = 65535;
};

// Servers in C++ and Go send the head of a stream with its first message.
TEST(GrpcPitfall, AStreamMayBeSilentBeforeItsHead) {
  GrpcPath path({}, [](config::Config& config) {
    config.upstreams[0].first_byte_timeout = milliseconds(50);
    config.upstreams[0].inactivity_timeout = milliseconds(50);
    config.routes.insert(config.routes.begin(), config.routes.front());
    config.routes.front().grpc = "pkg.Service/Method";
    config.routes.front().stream = true;
  });
  const std::uint32_t id = path.begin();
  FrameConnection& service = path.service();
  service.accept_call();
  path.client.send(wire::data(id, grpc_message("one of many")));
  const TimePoint until = io::monotonic_now() + milliseconds(300);
  ASSERT_TRUE(testkit::eventually([&] { return io::monotonic_now() >= until; }));
  EXPECT_EQ(path.gateway->status().in_flight, 0U);
  EXPECT_EQ(path.gateway.stats()["admission"]["streaming"], 1);
  service.answer(1, grpc_message("m"), grpc_trailers());
  const Reply& reply = path.client.finish(id);
  EXPECT_EQ(reply.body, grpc_message("m"));
  EXPECT_EQ(value_of(reply.trailers, "grpc-status"), "0");
  EXPECT_TRUE(path.gateway.settled());
}

TEST(GrpcPitfall, AUnaryMessageAbove64KbPassesTwoGateways) {
  FrameOrigin origin;
  RunningGateway inner(testkit::http2_to({origin.address()}));
  RunningGateway outer(testkit::http2_to({"127.0.0.1:" + std::to_string(inner.port())}));
  H2Client client(outer.port());
  Uploader uploader(client);
  std::thread service([&] { echo_all(*origin.accept()); });
  for (const std::size_t length : {65'535U, 65'536U, 70'000U, 300'000U}) {
    const std::string message = grpc_message(testkit::pattern(length));
    const std::uint32_t id = client.post(
        "/pkg.Service/Method", {{"content-type", "application/grpc"}, {"te", "trailers"}});
    const Reply& reply = uploader.exchange(id, message);
    EXPECT_TRUE(reply.body == message) << length << ": " << reply.body.size();
    EXPECT_EQ(value_of(reply.trailers, "grpc-status"), "0");
  }
  client.socket().close();
  outer->stop();
  inner->stop();
  service.join();
}

TEST(GrpcPitfall, MessagesOf16MbPassBothWays) {
  GrpcPath path;
  std::thread service([&] { echo_all(path.service()); });
  const std::string message = grpc_message(testkit::pattern(16 * 1024 * 1024));
  const Reply& reply = Uploader(path.client).exchange(path.begin(), message);
  EXPECT_EQ(reply.body.size(), message.size());
  EXPECT_TRUE(reply.body == message);
  EXPECT_EQ(value_of(reply.trailers, "grpc-status"), "0");
  path.client.socket().close();
  path.gateway->stop();
  service.join();
}

TEST(GrpcPitfall, AStreamThatIsNotReadLeavesTheConnectionsToOthers) {
  GrpcPath path({.settings = {}, .open_windows = false});
  const std::uint32_t stalled = path.say();
  FrameConnection& service = path.service();
  service.whole_call();
  service.send(wire::headers(1, grpc_head(), 0));
  EXPECT_LT(service.send_what_fits(1, std::string(2 << 20, 's')), std::size_t{2 << 20});
  // The window of that stream is used up. The one of the client's connection is opened again.
  path.client.send(wire::window_update(0, 1 << 20));
  const std::string message = grpc_message(std::string(2000, 'o'));
  for (std::uint32_t stream = 3; stream <= 99; stream += 2) {
    const std::uint32_t id = path.say();
    service.whole_call();
    service.answer(stream, message, grpc_trailers());
    EXPECT_EQ(path.client.finish(id).body, message);
  }
  EXPECT_FALSE(path.client.reply(stalled).ended);
  path.client.send(wire::rst(stalled, kCancel));
  EXPECT_TRUE(service.until([&] { return service.calls[1].reset.has_value(); }));
  EXPECT_TRUE(path.gateway.settled());
}

}  // namespace
}  // namespace weir::gateway
