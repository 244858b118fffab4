#include "http/h1/head_meaning.h"

#include <array>

#include <gtest/gtest.h>

namespace weir::inline v0::http::h1 {
namespace {

TEST(HeadMeaning, ContentLengthIsBareDigitsBelow2To63) {
  EXPECT_EQ(*parse_content_length("0"), 0U);
  EXPECT_EQ(*parse_content_length("1234567890123456789"), 1234567890123456789U);
  EXPECT_EQ(*parse_content_length("9223372036854775807"), 9223372036854775807U);
  for (const char* bad :
       {"", "00", "01", "9223372036854775808", "9999999999999999999", "10000000000000000000",
        "18446744073709551616", "1 ", " 1", "1,1", "1e3", "0x10", "+1", "-1", "\xd9\xa1", "1_000"})
    EXPECT_FALSE(parse_content_length(bad).has_value()) << bad;
}

TEST(HeadMeaning, AuthoritySplitsIntoHostAndPort) {
  struct Row {
    const char* text;
    const char* host;
    const char* port;
  };
  for (const Row& row : {Row{"a", "a", ""}, Row{"a.b-c_d~e", "a.b-c_d~e", ""}, Row{"a:0", "a", "0"},
                         Row{"127.0.0.1:65535", "127.0.0.1", "65535"}, Row{"[::1]", "[::1]", ""},
                         Row{"[fe80::1]:80", "[fe80::1]", "80"},
                         Row{"[::ffff:1.2.3.4]:80", "[::ffff:1.2.3.4]", "80"}}) {
    const auto authority = parse_authority(row.text);
    ASSERT_TRUE(authority.has_value()) << row.text;
    EXPECT_EQ(authority->host, row.host);
    EXPECT_EQ(authority->port, row.port);
  }
  for (const char* bad :
       {"",     ":",   ":80",    "a:",     "a:b",   "a:123456", "a:99999", "a b",  "a,b",
        "a@b",  "a/b", "a?b",    "a\\b",   "a%41",  "[",        "[]",      "[:]x", "[1]",
        "[::1", "::1", "[::1]]", "[::1]:", "[::g]", "[a]b",     "\xc3\xa4"})
    EXPECT_FALSE(parse_authority(bad).has_value()) << bad;
}

TEST(HeadMeaning, ListsAreSplitAtCommas) {
  EXPECT_TRUE(list_has("trailers", "trailers"));
  EXPECT_TRUE(list_has("gzip,\tTRAILERS ,x", "trailers"));
  EXPECT_FALSE(list_has("trailers;q=0.5", "trailers"));
  EXPECT_FALSE(list_has("xtrailers, trailersx", "trailers"));
  EXPECT_FALSE(list_has("", "trailers"));
  EXPECT_FALSE(list_has({}, "trailers"));
}

TEST(HeadMeaning, ConnectionOptionsOfAllLinesCount) {
  std::array<HeaderView, 4> storage;
  HeaderList headers;
  headers.reset(storage);
  headers.append({"connection", "Keep-Alive,,x-a", FieldId::kConnection, true});
  headers.append({"X-A", "1"});
  headers.append({"connection", "upgrade", FieldId::kConnection, true});
  headers.append({"X-B", "1"});
  const auto options = connection_options(headers);
  ASSERT_TRUE(options.has_value());
  EXPECT_TRUE(options->keep_alive);
  EXPECT_TRUE(options->upgrade);
  EXPECT_FALSE(options->close);
  EXPECT_TRUE(headers[1].hop_by_hop);
  EXPECT_FALSE(headers[3].hop_by_hop);
}

TEST(HeadMeaning, PersistenceByVersionAndOptions) {
  EXPECT_TRUE(persists(Version::k11, {}));
  EXPECT_FALSE(persists(Version::k10, {}));
  EXPECT_TRUE(persists(Version::k10, {.keep_alive = true}));
  EXPECT_FALSE(persists(Version::k11, {.close = true, .keep_alive = true}));
}

}  // namespace
}  // namespace weir::inline v0::http::h1
