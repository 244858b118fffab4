#include "frame_writer.h"

#include <gtest/gtest.h>

namespace weir::app::top {
namespace {

Frame frame_of(const std::vector<std::string>& texts) {
  Frame frame;
  for (const std::string& text : texts) frame.lines.emplace_back(text);
  return frame;
}

TEST(FrameWriter, SendsOnlyLinesThatChanged) {
  FrameWriter writer({});
  const ScreenSize size{10, 3};
  EXPECT_EQ(writer.changes(frame_of({"one", "two", ""}), size),
            "\x1b[0m\x1b[2J\x1b[1;1Hone\x1b[K\x1b[2;1Htwo\x1b[K");
  EXPECT_EQ(writer.changes(frame_of({"one", "two", ""}), size), "");
  EXPECT_EQ(writer.changes(frame_of({"one", "2", ""}), size), "\x1b[2;1H2\x1b[K");
  EXPECT_EQ(writer.changes(frame_of({"one", "", ""}), size), "\x1b[2;1H\x1b[K");
}

TEST(FrameWriter, BeginsAnewInAnotherSizeOrWhenTold) {
  FrameWriter writer({});
  EXPECT_NE(writer.changes(frame_of({"one"}), {10, 1}), "");
  EXPECT_EQ(writer.changes(frame_of({"one"}), {11, 1}), "\x1b[0m\x1b[2J\x1b[1;1Hone\x1b[K");
  writer.forget();
  EXPECT_EQ(writer.changes(frame_of({"one"}), {11, 1}), "\x1b[0m\x1b[2J\x1b[1;1Hone\x1b[K");
}

TEST(FrameWriter, DoesNotEraseTheEndOfAFullLine) {
  FrameWriter writer({});
  EXPECT_EQ(writer.changes(frame_of({"12345"}), {5, 1}), "\x1b[0m\x1b[2J\x1b[1;1H12345");
}

TEST(FrameWriter, HasNoColourWhereNoneIsWanted) {
  Line line;
  line.add("bad", Style::kBad).add(" good", Style::kGood);
  EXPECT_EQ(styled(line, {}), "\x1b[1;31mbad\x1b[0m\x1b[32m good\x1b[0m");
  EXPECT_EQ(styled(line, {.colour = false, .utf8 = true}), "\x1b[1mbad\x1b[0m good");
}

TEST(FrameWriter, WritesPlainTextWithoutEscapeSequences) {
  Frame frame = frame_of({"a  ", "…", "", ""});
  EXPECT_EQ(as_text(frame, {.colour = true, .utf8 = false}, false), "a\n~\n");
}

}  // namespace
}  // namespace weir::app::top
