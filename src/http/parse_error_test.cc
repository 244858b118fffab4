#include "weir/experimental/http/parse_error.h"

#include <set>

#include <gtest/gtest.h>

namespace weir::inline v0::http {
namespace {

TEST(ParseError, EveryReasonHasItsOwnNameAndAnErrorStatus) {
  std::set<std::string_view> names;
  for (unsigned i = 1; i < static_cast<unsigned>(ParseError::kCount); ++i) {
    const auto error = static_cast<ParseError>(i);
    EXPECT_TRUE(names.insert(to_string(error)).second) << to_string(error);
    const unsigned status = status_of(error);
    EXPECT_TRUE(status >= 400 && status < 600) << to_string(error);
  }
}

TEST(ParseError, StatusesThatAreNot400) {
  EXPECT_EQ(status_of(ParseError::kTargetTooLong), 414U);
  EXPECT_EQ(status_of(ParseError::kBadExpect), 417U);
  EXPECT_EQ(status_of(ParseError::kHeadTooLarge), 431U);
  EXPECT_EQ(status_of(ParseError::kTooManyFields), 431U);
  EXPECT_EQ(status_of(ParseError::kTrailersTooLarge), 431U);
  EXPECT_EQ(status_of(ParseError::kMethodTooLong), 501U);
  EXPECT_EQ(status_of(ParseError::kUnknownTransferCoding), 501U);
  EXPECT_EQ(status_of(ParseError::kUnsupportedVersion), 505U);
  EXPECT_EQ(status_of(ParseError::kLengthAndTransferEncoding), 400U);
}

}  // namespace
}  // namespace weir::inline v0::http
