#include "http/websocket_frames.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::http {
namespace {

using namespace std::string_literals;

std::string big_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

struct Frame {
  std::uint8_t opcode = 2;
  std::uint64_t payload = 0;
  int length_bytes = 0;  // of the extended length; it may be longer than needed
  bool masked = false;

  [[nodiscard]] std::string header() const {
    const std::uint64_t seven = length_bytes == 8 ? 127 : length_bytes == 2 ? 126 : payload;
    std::string text;
    text += static_cast<char>(0x80U | opcode);
    text += static_cast<char>((masked ? 0x80U : 0U) | seven);
    if (length_bytes > 0) text += big_endian(payload, length_bytes);
    if (masked) text += "\x88\x01\xff\x7e";  // looks like headers, and must not be read as any
    return text;
  }
  [[nodiscard]] std::string text() const {
    return header() + std::string(static_cast<std::size_t>(payload), '\x88');
  }
};

/// Where the frames end, found byte by byte.
std::vector<std::size_t> ends_of(const std::string& bytes) {
  std::vector<std::size_t> ends;
  WebSocketFrames frames;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    frames.pass(std::string_view(bytes).substr(i, 1));
    if (frames.at_boundary()) ends.push_back(i + 1);
  }
  return ends;
}

TEST(WebSocketFrames, ASingleFrameEndsAtItsLastByte) {
  const std::vector<Frame> table = {
      {.payload = 0},
      {.payload = 1},
      {.payload = 125},
      {.payload = 0, .masked = true},
      {.payload = 125, .masked = true},
      {.payload = 0, .length_bytes = 2},  // longer than needed: still a length
      {.payload = 126, .length_bytes = 2},
      {.payload = 65535, .length_bytes = 2, .masked = true},
      {.payload = 0, .length_bytes = 8},
      {.payload = 65536, .length_bytes = 8},
      {.payload = 65536, .length_bytes = 8, .masked = true},
  };
  for (const Frame& frame : table) {
    const std::string bytes = frame.text();
    SCOPED_TRACE(std::to_string(frame.payload) + "/" + std::to_string(frame.length_bytes));
    EXPECT_EQ(ends_of(bytes), std::vector<std::size_t>{bytes.size()});
    WebSocketFrames at_once;
    EXPECT_TRUE(at_once.at_boundary());
    at_once.pass(bytes);
    EXPECT_TRUE(at_once.at_boundary());
    EXPECT_FALSE(at_once.closed());
    at_once.pass(bytes.substr(0, bytes.size() - 1));
    EXPECT_FALSE(at_once.at_boundary());
    EXPECT_EQ(at_once.rest_of_frame(bytes.substr(bytes.size() - 1) + "more"), 1U);
  }
}

TEST(WebSocketFrames, ACloseFrameCountsWhenItIsWhole) {
  const std::string close = Frame{.opcode = 8, .payload = 2, .masked = true}.text();
  WebSocketFrames frames;
  frames.pass(Frame{.opcode = 9, .payload = 8}.text());
  frames.pass(close.substr(0, close.size() - 1));
  EXPECT_FALSE(frames.closed());
  frames.pass(close.substr(close.size() - 1));
  EXPECT_TRUE(frames.closed());
  frames.pass(Frame{.payload = 3}.text());
  EXPECT_TRUE(frames.closed());
  WebSocketFrames empty;
  empty.pass("\x88\x00"s);
  EXPECT_TRUE(empty.closed());
}

TEST(WebSocketFrames, AnImpossibleLengthIsNeverFollowedByABoundary) {
  for (const std::uint64_t length : {std::uint64_t{1} << 63U, ~std::uint64_t{0}}) {
    WebSocketFrames frames;
    frames.pass(Frame{.payload = length, .length_bytes = 8}.header());
    EXPECT_FALSE(frames.at_boundary());
    frames.pass(std::string(4096, '\0'));
    EXPECT_FALSE(frames.at_boundary());
    EXPECT_EQ(frames.rest_of_frame("abc"), 3U);
    EXPECT_FALSE(frames.closed());
  }
}

TEST(WebSocketFrames, TheLongestPossibleFrameIsSkippedWithoutOverflow) {
  WebSocketFrames frames;
  frames.pass(Frame{.payload = (std::uint64_t{1} << 63U) - 1, .length_bytes = 8}.header());
  EXPECT_EQ(frames.rest_of_frame("abc"), 3U);
  frames.pass(std::string(1000, '\0'));
  EXPECT_FALSE(frames.at_boundary());
}

// Random frames, cut at random places: the boundaries are those that were written.
TEST(WebSocketFrames, BoundariesDoNotDependOnHowBytesAreSplit) {
  Rng rng(20260211);
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    std::vector<std::size_t> ends;
    for (std::uint64_t left = 1 + rng.below(12); left > 0; --left) {
      Frame frame{.opcode = static_cast<std::uint8_t>(rng.below(16)), .masked = rng.chance(0.5)};
      const std::uint64_t kind = rng.below(3);
      frame.length_bytes = kind == 0 ? 0 : kind == 1 ? 2 : 8;
      frame.payload = rng.below(kind == 0 ? 126 : 700);
      bytes += frame.text();
      ends.push_back(bytes.size());
    }
    ASSERT_EQ(ends_of(bytes), ends);
    WebSocketFrames frames;
    std::size_t at = 0;
    std::size_t next = 0;
    while (at < bytes.size()) {
      const std::size_t size = 1 + rng.below(bytes.size() - at);
      const std::string_view piece = std::string_view(bytes).substr(at, size);
      const bool inside = !frames.at_boundary();
      if (inside) {
        EXPECT_EQ(frames.rest_of_frame(piece), std::min(size, ends[next] - at));
      }
      frames.pass(piece);
      at += size;
      while (next < ends.size() && ends[next] <= at) ++next;
      EXPECT_EQ(frames.at_boundary(), next > 0 && ends[next - 1] == at);
    }
  }
}

// Any bytes at all: it takes them, and the split does not matter.
TEST(WebSocketFrames, HostileBytesAreTakenWhateverTheyAre) {
  Rng rng(77);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (std::uint64_t left = rng.below(64); left > 0; --left) {
      constexpr std::string_view kLikely = "\x7f\xff\x7e\xfe\x88\x80\x01\xff";
      bytes +=
          rng.chance(0.5) ? kLikely[rng.below(kLikely.size())] : static_cast<char>(rng.below(256));
    }
    WebSocketFrames whole;
    whole.pass(bytes);
    WebSocketFrames split;
    for (const char c : bytes) split.pass({&c, 1});
    EXPECT_EQ(whole.at_boundary(), split.at_boundary());
    EXPECT_EQ(whole.closed(), split.closed());
    EXPECT_EQ(whole.rest_of_frame(bytes), split.rest_of_frame(bytes));
  }
}

TEST(WebSocketFrames, GoingAwayIsOneCloseFrameWithStatus1001) {
  WebSocketFrames frames;
  frames.pass(kGoingAway);
  EXPECT_TRUE(frames.at_boundary() && frames.closed());
  EXPECT_EQ(kGoingAway.substr(2), "\x03\xe9going away");

  for (const std::uint32_t key : {0U, 0x01020304U, 0xffffffffU}) {
    const auto masked = masked_going_away(key);
    const std::string_view text(masked.data(), masked.size());
    WebSocketFrames other;
    other.pass(text);
    EXPECT_TRUE(other.at_boundary() && other.closed());
    EXPECT_EQ(static_cast<std::uint8_t>(text[1]), 0x80U | 12U);
    std::string payload;
    for (std::size_t i = 6; i < text.size(); ++i) {
      payload += static_cast<char>(text[i] ^ text[2 + (i - 6) % 4]);
    }
    EXPECT_EQ(payload, kGoingAway.substr(2));
  }
}

}  // namespace
}  // namespace weir::http
