#include <string>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "http/h2/client_session_testing.h"

/// Our client and our server on one connection, without sockets.

namespace weir::inline v0::http::h2 {
namespace {

using namespace wire;

/// Passes bytes between the two until neither has any left.
class Pair {
 public:
  explicit Pair(const PeerOptions& options = {}, const H2Limits& server_limits = {},
                const H2Limits& client_limits = {})
      : server(server_limits, options), client(client_limits) {
    server.on_output = [this](std::string_view bytes) { to_client_ += bytes; };
    run();
  }

  void run() {
    for (bool moved = true; moved;) {
      moved = false;
      client.drain();
      if (const std::string bytes = client.take_sent(); !bytes.empty()) {
        server.send(bytes);
        moved = true;
      }
      server.drain();
      if (const std::string bytes = std::exchange(to_client_, {}); !bytes.empty()) {
        client.send(bytes);
        moved = true;
      }
    }
  }
  /// Sends a body as far as windows allow, again and again.
  void upload(StreamId id, const std::string& body) {
    std::size_t sent = 0;
    for (int rounds = 0; sent < body.size() && rounds < 10'000; ++rounds) {
      sent += client.write(id, std::string_view(body).substr(sent), true);
      run();
    }
    EXPECT_EQ(sent, body.size());
  }

  TestPeer server;
  TestClient client;

 private:
  std::string to_client_;
};

TEST(H2Pair, ARequestAndItsResponse) {
  PeerOptions options;
  options.body = std::string(300'000, 'r');
  Pair pair(options);
  EXPECT_TRUE(pair.client.session().has_settings());
  EXPECT_EQ(pair.client.session().capacity(), 100U);
  const StreamId id = pair.client.get("/large");
  pair.run();
  EXPECT_EQ(pair.server.streams[id].path, "/large");
  EXPECT_EQ(pair.server.streams[id].authority, "a");
  EXPECT_EQ(pair.client.streams[id].status, 200U);
  EXPECT_EQ(pair.client.streams[id].body, options.body);
  EXPECT_EQ(pair.client.streams[id].end, StreamEnd::kDone);
  EXPECT_EQ(pair.server.streams[id].end, StreamEnd::kDone);
}

TEST(H2Pair, BodiesBothWays) {
  PeerOptions options;
  options.body = std::string(200'000, 'r');
  Pair pair(options);
  const StreamId id = pair.client.post();
  const StreamId other = pair.client.post();
  const std::string body(150'000, 'u');
  pair.upload(id, body);
  pair.upload(other, "short");
  EXPECT_EQ(pair.server.streams[id].body, body);
  EXPECT_EQ(pair.server.streams[other].body, "short");
  EXPECT_EQ(pair.client.streams[id].body, options.body);
  EXPECT_EQ(pair.client.streams[other].body, options.body);
  EXPECT_EQ(pair.server.all_glitches(), 0U);
  EXPECT_EQ(pair.client.session().glitches(), 0U);
}

TEST(H2Pair, TrailersBothWays) {
  Pair pair(quiet());
  const StreamId id = pair.client.post();
  EXPECT_EQ(pair.client.write(id, "abc", false), 3U);
  const std::array<Field, 1> up = {{{"x-up", "1"}}};
  EXPECT_EQ(pair.client.session().submit_trailers(id, up), SubmitStatus::kOk);
  pair.run();
  EXPECT_EQ(pair.server.streams[id].trailers, (Fields{{"x-up", "1"}}));
  EXPECT_EQ(pair.server.session().submit_head(id, {103, {}, false}), SubmitStatus::kOk);
  EXPECT_EQ(pair.server.session().submit_head(id, {200, {}, false}), SubmitStatus::kOk);
  const std::array<Field, 1> down = {{{"x-down", "1"}}};
  EXPECT_EQ(pair.server.session().submit_trailers(id, down), SubmitStatus::kOk);
  pair.run();
  EXPECT_EQ(pair.client.streams[id].informed, (std::vector<unsigned>{103}));
  EXPECT_EQ(pair.client.streams[id].trailers, (Fields{{"x-down", "1"}}));
  EXPECT_TRUE(pair.client.streams[id].complete);
  EXPECT_EQ(pair.client.streams[id].end, StreamEnd::kDone);
}

TEST(H2Pair, AnEarlyAnswerToALongUpload) {
  Pair pair(quiet());
  const StreamId id = pair.client.post();
  pair.client.write(id, std::string(1000, 'u'), false);
  pair.run();
  pair.server.respond(id, "enough", {}, 413);
  pair.run();
  EXPECT_EQ(pair.client.streams[id].status, 413U);
  EXPECT_EQ(pair.client.streams[id].body, "enough");
  EXPECT_TRUE(pair.client.streams[id].complete);
  // Until the server resets it with NO_ERROR, at half of its window.
  pair.client.write(id, std::string(15'000, 'u'), false);
  pair.run();
  EXPECT_TRUE(pair.client.streams[id].ended);
  EXPECT_EQ(pair.client.streams[id].end, StreamEnd::kDone);
  EXPECT_EQ(pair.client.streams[id].code, ErrorCode::kNoError);
  EXPECT_EQ(pair.client.streams[id].body, "enough");
}

TEST(H2Pair, ResetsFromBothSides) {
  Pair pair(quiet());
  const StreamId a = pair.client.get();
  const StreamId b = pair.client.get();
  pair.run();
  pair.client.session().reset(a, ErrorCode::kCancel);
  pair.server.session().reset(b, ErrorCode::kInternalError);
  pair.run();
  EXPECT_EQ(pair.server.streams[a].end, StreamEnd::kPeerReset);
  EXPECT_EQ(pair.server.streams[a].code, ErrorCode::kCancel);
  EXPECT_EQ(pair.client.streams[a].end, StreamEnd::kReset);
  EXPECT_EQ(pair.client.streams[b].end, StreamEnd::kPeerReset);
  EXPECT_EQ(pair.client.streams[b].code, ErrorCode::kInternalError);
  EXPECT_EQ(pair.client.streams[b].processed, Processed::kMaybe);
}

TEST(H2Pair, ADrainingServerLosesNoRequest) {
  Pair pair(quiet());
  const StreamId first = pair.client.get();
  pair.run();
  pair.server.session().announce_shutdown();
  pair.server.session().shut_down();
  const StreamId second = pair.client.get();  // the GOAWAY is still on its way
  pair.run();
  EXPECT_EQ(pair.client.streams[second].end, StreamEnd::kPeerReset);
  EXPECT_EQ(pair.client.streams[second].processed, Processed::kNo);
  EXPECT_EQ(pair.server.streams.count(second), 0U);
  EXPECT_EQ(pair.client.session().capacity(), 0U);
  pair.server.respond(first, "served");
  pair.run();
  EXPECT_EQ(pair.client.streams[first].body, "served");
  EXPECT_EQ(pair.client.ended(), SessionEnd::kFinished);
  EXPECT_EQ(pair.server.ended(), SessionEnd::kFinished);
}

TEST(H2Pair, TheServersLimitIsNeverExceeded) {
  H2Limits server;
  server.concurrent_streams_max = 7;
  PeerOptions options = quiet();
  Pair pair(options, server);
  StreamId answered = 1;
  for (int i = 0; i < 200; ++i) {
    while (pair.client.get() != 0) {
    }
    pair.run();
    EXPECT_EQ(pair.server.session().stats(pair.server.now).streams, 7U);
    for (int k = 0; k < 1 + i % 7; ++k, answered += 2) pair.server.respond(answered, "x");
    pair.run();
  }
  EXPECT_EQ(pair.server.all_glitches(), 0U) << "no stream was refused";
  EXPECT_TRUE(pair.client.alive());
}

TEST(H2Pair, PausedDownloadsDoNotStopOthers) {
  PeerOptions options = quiet();
  Pair pair(options);
  std::vector<StreamId> ids;
  for (int i = 0; i < 40; ++i) ids.push_back(pair.client.get());
  pair.run();
  // The owner of the first 39 takes nothing beyond the first window.
  for (std::size_t i = 0; i < ids.size(); ++i) pair.client.paused[ids[i]] = i != 39;
  for (const StreamId id : ids) pair.server.respond(id, std::string(100'000, 'x'));
  pair.run();
  for (int i = 0; i < 39; ++i)
    EXPECT_EQ(pair.client.streams[ids[static_cast<std::size_t>(i)]].body.size(), 16'384U);
  EXPECT_EQ(pair.client.streams[ids[39]].body.size(), 100'000U);
  for (int i = 0; i < 39; ++i) {
    const StreamId id = ids[static_cast<std::size_t>(i)];
    pair.client.paused[id] = false;
    pair.client.session().grant(id, 16'384);
  }
  pair.run();
  for (const StreamId id : ids) EXPECT_EQ(pair.client.streams[id].body.size(), 100'000U);
}

/// A long life: random requests, bodies, cancels; nothing is left behind.
TEST(H2Pair, NothingIsLeftBehind) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    PeerOptions options;
    options.body = std::string(3000, 'r');
    Pair pair(options);
    const StreamId warm = pair.client.post();  // fills the compression table
    pair.upload(warm, "u");
    EXPECT_TRUE(pair.client.streams[warm].ended);
    const std::size_t before = pair.client.session().stats(pair.client.now).memory_used;
    Rng rng(seed);
    for (int i = 0; i < 2000; ++i) {
      const bool body = rng.below(2) == 0;
      const StreamId id = body ? pair.client.post() : pair.client.get();
      if (id != 0 && body && rng.below(4) != 0)
        pair.client.write(id, std::string(rng.below(3000), 'u'), rng.below(8) != 0);
      if (id != 0 && rng.below(6) == 0) pair.client.session().reset(id, ErrorCode::kCancel);
      if (rng.below(3) == 0) pair.run();
      pair.client.now += std::chrono::milliseconds(10);
      pair.server.now = pair.client.now;
    }
    for (auto& [id, stream] : pair.client.streams)
      if (!stream.ended) pair.client.session().reset(id, ErrorCode::kCancel);
    pair.run();
    ASSERT_TRUE(pair.client.alive()) << name_of(pair.client.ended());
    for (const auto& [id, stream] : pair.client.streams) EXPECT_TRUE(stream.ended) << id;
    const SessionStats stats = pair.client.session().stats(pair.client.now);
    EXPECT_EQ(stats.streams, 0U);
    EXPECT_EQ(stats.memory_used, before);
    EXPECT_EQ(pair.client.session().capacity(), 100U);
    EXPECT_TRUE(pair.client.stayed_inside());
    pair.client.library_session().heap().check();
  }
}

}  // namespace
}  // namespace weir::inline v0::http::h2
