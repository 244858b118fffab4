// Windows of uploads: they grow with leases, never beyond them, and shrink when leases are short.
#include "h2/h2_window.h"

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/h2/h2_testing.h"
#include "server/server_testing.h"

namespace weir::inline v0::inline server {
namespace {

namespace wire = http::h2::wire;
using http::h2::FrameType;
using testkit::count_body;
using testkit::every_loop;
using testkit::H2Client;
using testkit::RunningServer;
using testkit::ScriptedHandler;
using testkit::small_config;

constexpr std::uint64_t kLease = 64 * 1024;

TEST(StreamWindow, WithholdsExactlyTheWindowOfTheLeasesThatLeave) {
  StreamWindow window;
  window.begin(TimePoint{});
  EXPECT_EQ(window.take(100), 100U);
  window.shrink(2, 1000);
  EXPECT_TRUE(window.shrinking());
  EXPECT_EQ(window.take(1500), 0U);
  EXPECT_EQ(window.take_leaving(), 0U) << "not all of it is withheld";
  EXPECT_EQ(window.take(700), 200U);
  EXPECT_FALSE(window.shrinking());
  EXPECT_EQ(window.take_leaving(), 2U);
  EXPECT_EQ(window.take_leaving(), 0U);
  EXPECT_TRUE(window.used_up(2300));
  EXPECT_FALSE(window.used_up(2301));
}

TEST(StreamWindow, AHandlerThatHasTakenAllForHalfOfTheTimeKeepsUp) {
  constexpr Duration kStep = std::chrono::milliseconds(10);
  const TimePoint start{};
  StreamWindow window;
  window.begin(start);
  window.note_stored(start + kStep);
  window.note_stored(start + 2 * kStep);  // more of the same
  window.note_empty(start + 3 * kStep);
  EXPECT_FALSE(window.use(1, start + 3 * kStep).handler_kept_up);
  EXPECT_TRUE(window.use(1, start + 4 * kStep).handler_kept_up);
  window.note_stored(start + 5 * kStep);
  window.note_empty(start + 6 * kStep);
  EXPECT_FALSE(window.use(1, start + 5 * kStep).handler_kept_up) << "both times count";
  window.begin_round(start + 6 * kStep);
  EXPECT_TRUE(window.use(1, start + 7 * kStep).handler_kept_up);
}

/// A client that sends whatever the windows of one stream and of the connection allow.
class Uploader {
 public:
  explicit Uploader(std::uint16_t port) : client_(port) {
    read_all();  // SETTINGS are acknowledged, and the connection's window is known
    id_ = client_.post("/");
  }
  /// Sends this many bytes; the most that it was ever allowed to have in flight is in peak().
  void send(std::uint64_t bytes) {
    while (bytes > 0) {
      const std::int64_t room = std::min({stream_, connection_, std::int64_t{16'000}});
      if (room <= 0) {
        if (!wait_for_window()) return;
        continue;
      }
      const std::uint64_t n = std::min<std::uint64_t>(bytes, static_cast<std::uint64_t>(room));
      client_.send(wire::data(id_, std::string(n, 'x')));
      stream_ -= static_cast<std::int64_t>(n);
      connection_ -= static_cast<std::int64_t>(n);
      sent_ += n;
      bytes -= n;
    }
  }
  /// Reads what has come: all that the server had to say so far.
  void read_all() {
    client_.send(wire::ping());
    while (const auto frame = client_.next()) {
      if (frame->is(FrameType::kPing)) return;
      note(*frame);
    }
  }
  std::string finish() {
    client_.send(wire::data(id_, "", wire::kEnd));
    return client_.finish(id_).body;
  }
  [[nodiscard]] std::int64_t window() const { return stream_; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

 private:
  bool wait_for_window() {
    const auto frame = client_.next();
    EXPECT_TRUE(frame.has_value());
    if (!frame) return false;
    note(*frame);
    return true;
  }
  void note(const testkit::Frame& frame) {
    EXPECT_FALSE(frame.is(FrameType::kRstStream));
    if (!frame.is(FrameType::kWindowUpdate)) return;
    (frame.header.stream == 0 ? connection_ : stream_) += frame.word();
    peak_ = std::max(peak_, stream_);
  }

  H2Client client_;
  std::uint32_t id_ = 0;
  std::int64_t stream_ = http::H2Limits{}.stream_window_bytes;
  std::int64_t connection_ = 65'535;
  std::int64_t peak_ = 0;
  std::uint64_t sent_ = 0;
};

ServerConfig with_leases(std::uint32_t count) {
  ServerConfig config = small_config();
  config.loops = 1;
  config.body_lease_pool_size = count;
  config.reserved_streams = 0;
  return config;
}

// The lease count is read after the client has seen every window: it cannot be smaller than what
// was announced then, because the client has used none of it since.
TEST(H2Window, GrowsWithLeasesAndNeverBeyondThem) {
  RunningServer server(with_leases(256), every_loop(count_body));
  Uploader upload(server.port());
  for (int i = 0; i < 100; ++i) {
    upload.send(64'000);
    upload.read_all();
    ASSERT_LE(upload.window(), static_cast<std::int64_t>(server.stats().body_leases.used * kLease));
  }
  EXPECT_GT(upload.peak(), static_cast<std::int64_t>(4 * kLease)) << "a quick client gets more";
  EXPECT_LE(server.stats().body_leases.peak, policy::kWindowLeasesMax);
  EXPECT_EQ(upload.finish(), std::to_string(upload.sent()));
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.body_leases.used == 0; }));
}

TEST(H2Window, DoesNotGrowInASmallPool) {
  RunningServer server(with_leases(4), every_loop(count_body));
  Uploader upload(server.port());
  upload.send(1'000'000);
  EXPECT_EQ(server.stats().body_leases.peak, 1U);
  EXPECT_LE(upload.peak(), static_cast<std::int64_t>(kLease));
  EXPECT_EQ(upload.finish(), "1000000");
}

// Others begin: the one with many leases gives all but one back as it goes on.
TEST(H2Window, ShrinksWhenLeasesAreShort) {
  RunningServer server(with_leases(32), every_loop(count_body));
  Uploader large(server.port());
  large.send(3'000'000);
  large.read_all();
  const std::uint64_t grown = server.stats().body_leases.used;
  ASSERT_GE(grown, 4U);
  std::vector<std::unique_ptr<Uploader>> others;
  while (server.stats().body_leases.used < 18) {
    others.push_back(std::make_unique<Uploader>(server.port()));
    others.back()->send(1);
    others.back()->read_all();
  }
  large.send(3'000'000);
  large.read_all();
  EXPECT_EQ(server.stats().body_leases.used, others.size() + 1);
  EXPECT_LE(large.window(), static_cast<std::int64_t>(kLease));
  EXPECT_EQ(large.finish(), "6000000");
  for (const auto& other : others) EXPECT_EQ(other->finish(), "1");
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.body_leases.used == 0; }));
}

// With many leases and a handler that stops: exactly as much as was announced is stored.
TEST(H2Window, WhatWasAnnouncedFitsWhenTheHandlerStops) {
  std::promise<ServerStream*> stopped;
  std::uint64_t received = 0;
  RunningServer server(with_leases(256), every_loop([&](ScriptedHandler& handler) {
                         handler.body = [&](ServerStream& stream, const http::BodyChunk& chunk) {
                           const bool before = received < 2'000'000;
                           received += chunk.len;
                           if (!before || received < 2'000'000) return;
                           stream.pause();
                           stopped.set_value(&stream);
                         };
                         handler.complete = [&](ServerStream& stream) {
                           EXPECT_EQ(testkit::reply(stream, 200, std::to_string(received)),
                                     SendResult::kSent);
                         };
                       }));
  Uploader upload(server.port());
  upload.send(2'000'000);
  ServerStream* const stream = stopped.get_future().get();
  upload.read_all();
  for (int i = 0; i < 40 && upload.window() > 0; ++i) {
    upload.send(static_cast<std::uint64_t>(upload.window()));
    upload.read_all();
  }
  EXPECT_EQ(upload.window(), 0);
  EXPECT_LE(upload.sent() - 2'000'000, server.stats().body_leases.used * kLease);
  EXPECT_GT(upload.sent() - 2'000'000, kLease);
  stream->loop().post([stream] { stream->resume(); });
  EXPECT_EQ(upload.finish(), std::to_string(upload.sent()));
}

}  // namespace
}  // namespace weir::inline v0::inline server
