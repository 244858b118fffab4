#include "h1/field_scan.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace weir::inline v0::http::h1 {
namespace {

HeadBytes all(std::string_view text) {
  return {text.data(), text.data() + text.size()};
}

TEST(FieldScan, RecordsFieldsAndStopsBehindTheEmptyLine) {
  const std::string text = "xxA: b\r\nVia:\t c d \t\r\n\r\nrest";
  std::array<HeaderView, 4> storage;
  HeaderList list;
  list.reset(storage);
  HeadCursor cursor = field_section_at(2);
  const HeadResult result = scan_fields(all(text), cursor, 4, &list);
  ASSERT_EQ(result.status, ParseStatus::kComplete);
  EXPECT_EQ(result.consumed, text.size() - 4);
  EXPECT_EQ(cursor.pos, text.size() - 4);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].name, "A");
  EXPECT_EQ(list[0].value, "b");
  EXPECT_EQ(list[1].value, "c d");
  EXPECT_EQ(list[1].id, FieldId::kVia);
}

TEST(FieldScan, ResumesInEveryState) {
  const std::string text = "Name-Of-Some-Length: value of some length\r\nB:\r\n\r\n";
  HeadCursor cursor = field_section_at(0);
  for (std::size_t size = 0; size < text.size(); ++size) {
    const HeadResult result = scan_fields(all(text.substr(0, size)), cursor, 2, nullptr);
    ASSERT_EQ(result.status, ParseStatus::kNeedMore) << size;
    EXPECT_EQ(cursor.pos, size) << "nothing is judged twice";
  }
  EXPECT_EQ(scan_fields(all(text), cursor, 2, nullptr).status, ParseStatus::kComplete);
}

TEST(FieldScan, AnEmptySectionIsOneEmptyLine) {
  HeadCursor cursor = field_section_at(0);
  const HeadResult result = scan_fields(all("\r\n"), cursor, 0, nullptr);
  EXPECT_EQ(result.status, ParseStatus::kComplete);
  EXPECT_EQ(result.consumed, 2U);
}

TEST(FieldScan, CountsBeforeItReads) {
  HeadCursor cursor = field_section_at(0);
  EXPECT_EQ(scan_fields(all("A"), cursor, 0, nullptr).error, ParseError::kTooManyFields);
}

}  // namespace
}  // namespace weir::inline v0::http::h1
