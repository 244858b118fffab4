#include "key_reader.h"

#include <gtest/gtest.h>

namespace weir::app::top {
namespace {

Key point(char32_t c) {
  return {KeyKind::kPoint, c};
}
Key key(KeyKind kind) {
  return {kind};
}

TEST(KeyReader, KnowsKeysAndSequences) {
  KeyReader reader;
  const std::vector<Key> want = {point('q'),
                                 key(KeyKind::kUp),
                                 key(KeyKind::kDown),
                                 key(KeyKind::kPageUp),
                                 key(KeyKind::kOther),
                                 key(KeyKind::kBackTab),
                                 key(KeyKind::kHome),
                                 key(KeyKind::kEnter),
                                 key(KeyKind::kTab),
                                 key(KeyKind::kBackspace),
                                 key(KeyKind::kInterrupt),
                                 point(U'é')};
  EXPECT_EQ(reader.feed("q\x1b[A\x1bOB\x1b[5~\x1b[1;5C\x1b[Z\x1b[H\r\t\x7f\x03é"), want);
  EXPECT_FALSE(reader.is_waiting());
}

TEST(KeyReader, ReadsTheSameHoweverTheBytesAreCut) {
  const std::string_view all = "a\x1b[Aé\x1b[6~b\x1bOC";
  KeyReader whole;
  const std::vector<Key> want = whole.feed(all);
  for (std::size_t i = 0; i <= all.size(); ++i) {
    KeyReader reader;
    std::vector<Key> keys = reader.feed(all.substr(0, i));
    for (const Key& one : reader.feed(all.substr(i))) keys.push_back(one);
    EXPECT_EQ(keys, want) << "cut at " << i;
  }
}

TEST(KeyReader, TakesAnEscapeAloneForTheKeyAfterAMoment) {
  KeyReader reader;
  EXPECT_TRUE(reader.feed("\x1b").empty());
  EXPECT_TRUE(reader.is_waiting());
  EXPECT_EQ(reader.flush(), std::vector<Key>{key(KeyKind::kEscape)});
  EXPECT_FALSE(reader.is_waiting());
  EXPECT_EQ(reader.feed("\x1b"
                        "x"),
            (std::vector<Key>{key(KeyKind::kEscape), point('x')}));
}

TEST(KeyReader, KeepsLittleOfASequenceWithoutEnd) {
  KeyReader reader;
  std::string much = "\x1b[";
  much.append(1000, '1');
  EXPECT_FALSE(reader.feed(much).empty());
  EXPECT_FALSE(reader.is_waiting());
}

}  // namespace
}  // namespace weir::app::top
