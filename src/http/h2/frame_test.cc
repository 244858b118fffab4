#include "http/h2/frame.h"

#include <gtest/gtest.h>

namespace weir::inline v0::http::h2 {
namespace {

TEST(FrameHeader, ReadsWhatItWrote) {
  const FrameHeader header{.length = 0x123456, .type = 9, .flags = 0x2d, .stream = 0x7f010203};
  std::array<std::uint8_t, kFrameHeaderBytes> bytes{};
  write_frame_header(bytes.data(), header);
  EXPECT_EQ(bytes, (std::array<std::uint8_t, 9>{0x12, 0x34, 0x56, 9, 0x2d, 0x7f, 1, 2, 3}));
  EXPECT_EQ(read_frame_header(bytes.data()), header);
}

TEST(FrameHeader, IgnoresTheReservedBit) {
  const std::array<std::uint8_t, 9> bytes{0, 0, 4, 8, 0, 0x80, 0, 0, 1};
  EXPECT_EQ(read_frame_header(bytes.data()).stream, 1U);
}

TEST(FrameHeader, GoawayIsWholeAndReadable) {
  const auto bytes = goaway_frame(7, ErrorCode::kEnhanceYourCalm);
  EXPECT_EQ(read_frame_header(bytes.data()),
            (FrameHeader{.length = 8, .type = 7, .flags = 0, .stream = 0}));
  EXPECT_EQ(read_u32(bytes.data() + 9), 7U);
  EXPECT_EQ(read_u32(bytes.data() + 13), 11U);
}

TEST(ErrorCode, EveryCodeOfTheRfcHasItsOwnName) {
  for (std::uint32_t a = 0; a < 14; ++a) {
    EXPECT_NE(name_of(ErrorCode{a}), "unknown");
    for (std::uint32_t b = 0; b < a; ++b) EXPECT_NE(name_of(ErrorCode{a}), name_of(ErrorCode{b}));
  }
  EXPECT_EQ(name_of(ErrorCode{14}), "unknown");
}

}  // namespace
}  // namespace weir::inline v0::http::h2
