#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "http/h2/session_testing.h"

/// Events, counters and answers of the session do not depend on how its input was split.

namespace weir::inline v0::http::h2 {
namespace {

using namespace wire;

/// Traffic of a peer that is mostly valid.
class Traffic {
 public:
  explicit Traffic(std::uint64_t seed) : rng_(seed) {}

  std::string next() {
    switch (rng_.below(20)) {
      case 0:
      case 1:
      case 2:
        return headers(fresh(), get());
      case 3:
      case 4:
        return upload();
      case 5:
      case 6:
        return data(open(), std::string(rng_.below(300), 'd'));
      case 7:
        return data(open(), std::string("\x02zz\0\0", 5), kPadded);
      case 8:
        return ended(data(open(), "end", kEnd));
      case 9:
        return ended(headers(open(), {{"x-trailer", "1"}}));
      case 10:
        return rst(used());
      case 11:
        return ping();
      case 12:
        return window_update(rng_.below(2) == 0 ? 0 : used(), 10);
      case 13:
        return priority(used(), static_cast<std::uint32_t>(rng_.below(5)));
      case 14:
        return settings({{4, static_cast<std::uint32_t>(rng_.below(100'000))}});
      case 15:
        return fragments();
      case 16:
        return frame(0x20, 0, used(), "extension");
      case 17:
        return headers_raw(fresh(), block(get()) + indexed_literal("x-i", "v") + index(62),
                           kEnd | kEndHeaders);
      case 18:
        return headers(fresh(), with(get(), {{"x-large", std::string(16'300, 'x')}}));
      default:
        return foul();
    }
  }

 private:
  std::string foul() {
    switch (rng_.below(8)) {
      case 0:
        return headers(fresh(), with(get(), {{"Upper", "1"}}));
      case 1:
        return window_update(used(), 0);
      case 2:
        return window_update(used(), 0x7fffffff);
      case 3:
        return priority(1, 1);
      case 4:
        return headers(fresh(), with(post(), {{"content-length", "3"}}), 0) +
               data(next_ - 2, "abcd", kEnd);
      case 5:
        return data(used(), "late");
      case 6:
        return headers(used(), {{"late", "1"}});
      default:
        return settings_ack();
    }
  }
  std::string fragments() {
    const StreamId id = fresh();
    return headers_raw(id, block(get()), kEnd) + continuation(id, block({{"x-c", "1"}}), 0) +
           continuation(id, literal("x-d", "2"));
  }
  std::string upload() {
    open_.push_back(fresh());
    return headers(open_.back(), post(), 0);
  }
  std::string ended(std::string frame) {
    open_.pop_back();
    return frame;
  }
  StreamId fresh() {
    next_ += 2;
    return next_ - 2;
  }
  StreamId used() { return static_cast<StreamId>(1 + 2 * rng_.below((next_ + 1) / 2)); }
  StreamId open() {
    if (open_.empty()) open_.push_back(1);  // may have been answered already
    return open_.back();
  }

  Rng rng_;
  StreamId next_ = 3;
  std::vector<StreamId> open_;
};

/// Everything observable of a session.
struct Seen {
  std::map<StreamId, SeenStream> streams;
  std::map<StreamId, TestPeer::Response> responses;
  std::string frames;
  SessionEnd end = SessionEnd::kNone;
  std::vector<std::uint64_t> glitches;
};

template <class Cut>
Seen play(const std::string& bytes, Cut cut) {
  PeerOptions options;
  options.drain = false;  // output is read when blocked and at the end: always at the same frames
  options.acknowledge = false;
  options.body = "a body";
  TestPeer peer({}, options);
  std::size_t at = 0;
  while (at < bytes.size() && peer.alive()) {
    const std::size_t n = std::min<std::size_t>(cut(), bytes.size() - at);
    const std::vector<char> piece(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                  bytes.begin() + static_cast<std::ptrdiff_t>(at + n));
    peer.send({piece.data(), n});
    at += n;
    while (peer.blocked) {
      peer.drain();
      peer.send({piece.data() + (n - peer.left_over), peer.left_over});
    }
  }
  peer.drain();
  Seen seen{peer.streams, peer.responses, {}, peer.ended(), {}};
  for (const OutFrame& f : peer.frames)
    seen.frames += std::to_string(f.header.type) + "/" + std::to_string(f.header.stream) + "/" +
                   std::to_string(f.header.flags) + "/" + std::to_string(f.header.length) + " ";
  for (std::size_t i = 0; i < kH2GlitchCount; ++i)
    seen.glitches.push_back(peer.glitches(static_cast<H2Glitch>(i)));
  return seen;
}

void same(const Seen& a, const Seen& b) {
  EXPECT_EQ(a.frames, b.frames);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.glitches, b.glitches);
  EXPECT_TRUE(a.streams == b.streams);
  EXPECT_TRUE(a.responses == b.responses);
}

TEST(H2Split, EveryCutMeansTheSame) {
  std::size_t answered = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed * 3);
    Traffic traffic(seed);
    std::string bytes = preface() + settings() + headers(1, post(), 0);
    for (std::uint64_t i = 0, n = 1 + rng.below(60); i < n; ++i) bytes += traffic.next();
    // Sometimes a byte is corrupted.
    if (rng.below(3) == 0)
      bytes[24 + rng.below(bytes.size() - 24)] ^= static_cast<char>(1U << rng.below(8));
    const Seen whole = play(bytes, [] { return std::size_t{1} << 30U; });
    const Seen by_byte = play(bytes, [] { return std::size_t{1}; });
    same(whole, by_byte);
    ASSERT_FALSE(HasFailure()) << "byte by byte, seed " << seed;
    answered += whole.responses.size();
    Rng cuts(seed * 7);
    const Seen random = play(bytes, [&] { return 1 + cuts.below(70); });
    same(whole, random);
    ASSERT_FALSE(HasFailure()) << "at random, seed " << seed;
  }
  EXPECT_GT(answered, 500U) << "not all of it may end at the first frame";
}

}  // namespace
}  // namespace weir::inline v0::http::h2
