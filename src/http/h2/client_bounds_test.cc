#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "http/h2/client_session_testing.h"

/// The client session's memory is its block, and its events do not depend on how input is split.

namespace weir::inline v0::http::h2 {
namespace {

using namespace wire;

/// What a server sends, mostly valid, to a client with 30 open streams.
class ServerTraffic {
 public:
  explicit ServerTraffic(std::uint64_t seed) : rng_(seed) {}

  std::string next() {
    const StreamId id = used();
    switch (rng_.below(20)) {
      case 0:
      case 1:
      case 2:
        return headers(id, status("200"), 0);
      case 3:
        return headers(id, status("200"), kEnd);
      case 4:
      case 5:
      case 6:
        return headers(id, status("200"), 0) + data(id, std::string(rng_.below(300), 'd'));
      case 7:
        return data(id, std::string("\x02zz\0\0", 5), kPadded);
      case 8:
        return headers(id, status("103", {{"link", "x"}}), 0);
      case 9:
        return headers(id, status("200"), 0) + headers(id, {{"x-trailer", "1"}});
      case 10:
        return rst(id, static_cast<std::uint32_t>(rng_.below(14)));
      case 11:
        return ping();
      case 12:
        return window_update(rng_.below(2) == 0 ? 0 : id, 10);
      case 13:
        return settings({{3, static_cast<std::uint32_t>(rng_.below(200))}});
      case 14:
        return settings({{4, static_cast<std::uint32_t>(rng_.below(100'000))}});
      case 15:
        return headers_raw(id, literal(":status", "200"), 0) +
               continuation(id, block({{"x-c", "1"}}), 0) + continuation(id, literal("x-d", "2"));
      case 16:
        return headers_raw(id, literal(":status", "200") + indexed_literal("x-i", "v") + index(62),
                           kEndHeaders);
      case 17:
        return frame(0x20, 0, id, "extension");
      default:
        return foul(id);
    }
  }

 private:
  std::string foul(StreamId id) {
    switch (rng_.below(9)) {
      case 0:
        return headers(id, status("200", {{"Upper", "1"}}));
      case 1:
        return window_update(id, 0);
      case 2:
        return window_update(id, 0x7fffffff);
      case 3:
        return headers(id, status("200", {{"content-length", "3"}}), 0) + data(id, "abcd", kEnd);
      case 4:
        return data(id, "early");
      case 5:
        return headers(id, {{"no", "status"}});
      case 6:
        return headers(id, status("200", {{"x-large", std::string(16'345, 'x')}}));
      case 7:
        return goaway(static_cast<std::uint32_t>(2 * rng_.below(30) + 1), 11);
      default:
        return settings_ack();
    }
  }
  StreamId used() { return static_cast<StreamId>(1 + 2 * rng_.below(30)); }

  Rng rng_;
};

/// Everything observable of a session.
struct SeenClient {
  std::map<StreamId, SeenResponse> streams;
  std::string frames;
  SessionEnd end = SessionEnd::kNone;
  std::vector<std::uint64_t> glitches;
  std::uint64_t capacity_changes = 0;
  std::uint32_t capacity = 0;
};

template <class Cut>
SeenClient play_client(const std::string& bytes, Cut cut) {
  OwnerOptions options;
  options.drain = false;  // output is read when blocked and at the end: always at the same frames
  TestClient client({}, options);
  client.handshake();
  for (int i = 0; i < 30; ++i) {
    static_cast<void>(i % 3 == 0 ? client.post() : client.get());
    client.drain();
  }
  std::size_t at = 0;
  while (at < bytes.size() && client.alive()) {
    const std::size_t n = std::min<std::size_t>(cut(), bytes.size() - at);
    const std::vector<char> piece(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                  bytes.begin() + static_cast<std::ptrdiff_t>(at + n));
    client.send({piece.data(), n});
    at += n;
    while (client.blocked) {
      client.drain();
      client.send({piece.data() + (n - client.left_over), client.left_over});
    }
  }
  client.drain();
  EXPECT_TRUE(client.stayed_inside());
  SeenClient seen{
      client.streams, {}, client.ended(), {}, client.capacity_changes, client.session().capacity()};
  for (const OutFrame& f : client.frames)
    seen.frames += std::to_string(f.header.type) + "/" + std::to_string(f.header.stream) + "/" +
                   std::to_string(f.header.flags) + "/" + std::to_string(f.header.length) + " ";
  for (std::size_t i = 0; i < kH2GlitchCount; ++i)
    seen.glitches.push_back(client.glitches(static_cast<H2Glitch>(i)));
  return seen;
}

void same_client(const SeenClient& a, const SeenClient& b) {
  EXPECT_EQ(a.frames, b.frames);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.glitches, b.glitches);
  EXPECT_EQ(a.capacity_changes, b.capacity_changes);
  EXPECT_EQ(a.capacity, b.capacity);
  EXPECT_TRUE(a.streams == b.streams);
}

TEST(H2ClientSplit, EveryCutMeansTheSame) {
  std::size_t answered = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed * 3);
    ServerTraffic traffic(seed);
    std::string bytes;
    for (std::uint64_t i = 0, n = 1 + rng.below(60); i < n; ++i) bytes += traffic.next();
    if (rng.below(3) == 0) bytes[rng.below(bytes.size())] ^= static_cast<char>(1U << rng.below(8));
    const SeenClient whole = play_client(bytes, [] { return std::size_t{1} << 30U; });
    same_client(whole, play_client(bytes, [] { return std::size_t{1}; }));
    ASSERT_FALSE(HasFailure()) << "byte by byte, seed " << seed;
    Rng cuts(seed * 7);
    same_client(whole, play_client(bytes, [&] { return 1 + cuts.below(70); }));
    ASSERT_FALSE(HasFailure()) << "at random, seed " << seed;
    for (const auto& [id, stream] : whole.streams) answered += stream.status == 200 ? 1 : 0;
  }
  EXPECT_GT(answered, 500U) << "not all of it may end at the first frame";
}

/// Fills every holder at once: streams, queued heads, a head being decoded, tables,
/// acknowledgements.
TEST(H2ClientMemory, NeverLeavesItsBlock) {
  for (const std::uint32_t bytes : {64U * 1024, 112U * 1024, 256U * 1024}) {
    H2Limits limits;
    limits.session_bytes_max = bytes;
    OwnerOptions options;
    options.drain = false;
    options.release = false;
    TestClient client(limits, options);
    client.handshake();
    std::vector<std::string> values;
    for (int i = 0; i < 20; ++i) values.push_back(std::string(300, static_cast<char>('a' + i)));
    std::vector<Field> fields;
    for (const std::string& value : values) fields.push_back({"x-field", value});
    std::uint64_t opened = 0;
    for (int i = 0; i < 100; ++i) {
      opened += client.open({"POST", "http", "a", "/", fields, false}) != 0 ? 1U : 0U;
      if (client.last_open == SubmitStatus::kBlocked) client.drain();
    }
    EXPECT_GE(opened, 40U);
    client.drain();
    // Dynamic table full, then a block that grows in pieces.
    std::string table = literal(":status", "200");
    for (int i = 0; i < 20; ++i) table += indexed_literal("x-" + std::to_string(i), values[0]);
    client.send(headers_raw(1, table, kEndHeaders));
    client.send(headers_raw(3, literal(":status", "200"), 0));
    for (int i = 0; i < 3; ++i)
      client.send(continuation(3, literal("x-" + std::to_string(i), std::string(5000, 'x')), 0));
    const SessionStats stats = client.session().stats(client.now);
    EXPECT_LE(stats.memory_peak, bytes);
    EXPECT_LE(stats.streams, limits.concurrent_streams_max);
    EXPECT_TRUE(client.stayed_inside()) << bytes;
    client.library_session().heap().check();
  }
}

/// Each allocation of a usual exchange fails in turn: the session ends cleanly, or does not care.
TEST(H2ClientMemory, EveryFailedAllocationIsSurvived) {
  int ended = 0;
  for (std::uint64_t allowed = 0; allowed < 150; ++allowed) {
    OwnerOptions options;
    options.drain = false;
    TestClient client({}, options);
    client.drain();
    client.library_session().heap().refuse_after(allowed);
    const std::vector<Field> fields(10, {"x-field", "some value that is not in the table"});
    const StreamId id = client.open({"POST", "http", "a", "/path", fields, false});
    client.send(settings({{3, 50}}) + settings_ack());
    if (client.alive()) client.drain();
    if (client.alive()) static_cast<void>(client.session().ping(client.now));
    if (client.alive() && id != 0) client.write(id, "body", true);
    if (client.alive()) client.get();
    client.send(headers(1, status("200", Fields(30, {"a", "b"})), 0) + data(1, "x") + ping() +
                headers(1, {{"t", "v"}}));
    if (!client.alive()) {
      ++ended;
      EXPECT_EQ(client.ended(), SessionEnd::kMemory) << allowed;
      std::array<std::byte, 4096> out{};
      while (client.session().produce(out, client.now) > 0) {
      }
      EXPECT_TRUE(client.session().finished()) << allowed;
    }
    EXPECT_TRUE(client.stayed_inside());
  }
  EXPECT_GT(ended, 10);
  EXPECT_LT(ended, 150);
}

TEST(H2ClientMemory, ABlockThatIsTooSmallGivesNoSession) {
  H2Limits limits;
  const ClientSessionKit kit(limits);
  struct Nobody final : ClientEvents {
    void on_response(StreamId /*id*/, void* /*u*/, const ResponseHead& /*head*/) override {}
    void on_body(StreamId /*id*/, void* /*u*/, const BodyChunk& /*chunk*/) override {}
    void on_trailers(StreamId /*id*/, void* /*u*/, const HeaderList& /*list*/) override {}
    void on_stream_end(StreamId /*id*/, void* /*u*/, StreamEnd /*end*/, ErrorCode /*code*/,
                       Processed /*processed*/) override {}
    void on_windows_opened() override {}
    void on_capacity_changed() override {}
    void on_pong(TimePoint /*sent*/) override {}
  } events;
  alignas(16) static std::array<std::byte, 20'000> memory;
  for (std::size_t bytes = 0; bytes <= memory.size(); bytes += 400)
    EXPECT_EQ(kit.make(std::span(memory).first(bytes), events, time_from_ns(1)), nullptr) << bytes;
}

}  // namespace
}  // namespace weir::inline v0::http::h2
