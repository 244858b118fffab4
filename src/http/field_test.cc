#include "weir/experimental/http/field.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "scan.h"

namespace weir::inline v0::http {
namespace {

std::string upper(std::string_view text) {
  std::string copy(text);
  for (char& c : copy)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return copy;
}

TEST(Field, EveryKnownNameIsRecognisedInAnyCase) {
  std::set<std::string_view> names;
  for (unsigned i = 1; i < static_cast<unsigned>(FieldId::kCount); ++i) {
    const auto id = static_cast<FieldId>(i);
    const std::string_view name = field_name(id);
    EXPECT_TRUE(is_valid_field_name(name)) << i;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(field_id(name), id) << name;
    EXPECT_EQ(field_id(upper(name)), id) << name;
  }
  EXPECT_EQ(field_name(FieldId::kOther), "");
}

TEST(Field, AChangeOfAnyByteIsAnotherField) {
  for (unsigned i = 1; i < static_cast<unsigned>(FieldId::kCount); ++i) {
    const std::string name(field_name(static_cast<FieldId>(i)));
    EXPECT_EQ(field_id(name + "x"), FieldId::kOther);
    for (std::size_t at = 0; at < name.size(); ++at) {
      for (unsigned c = 0; c < 256; ++c) {
        std::string changed = name;
        changed[at] = static_cast<char>(c);
        if (equals_ignore_case(changed, name) || !is_valid_field_name(changed)) continue;
        const FieldId id = field_id(changed);
        EXPECT_TRUE(id == FieldId::kOther || equals_ignore_case(field_name(id), changed))
            << changed;
      }
    }
  }
  EXPECT_EQ(field_id(""), FieldId::kOther);
}

TEST(Field, HopByHopAndTrailerRules) {
  for (const char* name : {"Connection", "keep-alive", "TE", "transfer-encoding", "upgrade",
                           "proxy-connection", "http2-settings", "proxy-authorization"})
    EXPECT_TRUE(is_hop_by_hop(field_id(name))) << name;
  for (const char* name : {"host", "content-length", "cookie", "trailer", "x-unknown"})
    EXPECT_FALSE(is_hop_by_hop(field_id(name))) << name;
  for (const char* name : {"content-length", "transfer-encoding", "host", "authorization", "cookie",
                           "set-cookie", "content-type", "x-weir-actor", "x-forwarded-for", "te"})
    EXPECT_TRUE(is_forbidden_in_trailers(field_id(name))) << name;
  for (const char* name : {"grpc-status", "grpc-message", "x-checksum", "server", "x-request-id"})
    EXPECT_FALSE(is_forbidden_in_trailers(field_id(name))) << name;
}

TEST(Field, NameBytesAreTheTokensOfRfc9110) {
  const std::string_view marks = "!#$%&'*+-.^_`|~";
  for (unsigned c = 0; c < 256; ++c) {
    const auto byte = static_cast<char>(c);
    const bool alnum = c < 128 && std::isalnum(static_cast<int>(c)) != 0;
    const bool token = alnum || (c != 0 && marks.find(byte) != std::string_view::npos);
    EXPECT_EQ(is_valid_field_name(std::string(1, byte)), token) << c;
    EXPECT_EQ(is_valid_field_name(std::string(20, 'a') + byte), token) << c;
    EXPECT_EQ(is_valid_field_name(byte + std::string(20, 'a')), token) << c;
  }
  EXPECT_FALSE(is_valid_field_name(""));
}

TEST(Field, ValueBytesExcludeControls) {
  for (unsigned c = 0; c < 256; ++c) {
    const bool allowed = c == '\t' || (c >= 0x20 && c != 0x7f);
    const std::string value(1, static_cast<char>(c));
    EXPECT_EQ(is_valid_field_value(value), allowed) << c;
    EXPECT_EQ(is_valid_field_value(std::string(31, 'v') + value), allowed) << c;
    EXPECT_EQ(is_valid_field_value(value + std::string(31, 'v')), allowed) << c;
  }
  EXPECT_TRUE(is_valid_field_value(""));
}

TEST(Field, OneBadByteIsFoundAtEachPlaceOfEachLength) {
  for (std::size_t size = 1; size <= 70; ++size) {
    EXPECT_TRUE(is_valid_field_name(std::string(size, 'a'))) << size;
    EXPECT_TRUE(is_valid_field_value(std::string(size, ' '))) << size;
    for (std::size_t at = 0; at < size; ++at) {
      std::string text(size, 'a');
      text[at] = '~';
      EXPECT_TRUE(is_valid_field_name(text)) << size << " " << at;
      text[at] = ':';
      EXPECT_FALSE(is_valid_field_name(text)) << size << " " << at;
      EXPECT_TRUE(is_valid_field_value(text)) << size << " " << at;
      text[at] = '\r';
      EXPECT_FALSE(is_valid_field_value(text)) << size << " " << at;
    }
  }
}

TEST(Field, IgnoringCaseConcernsLettersOnly) {
  EXPECT_TRUE(equals_ignore_case("ChUnKeD", "chunked"));
  EXPECT_FALSE(equals_ignore_case("chunke", "chunked"));
  EXPECT_FALSE(equals_ignore_case("^", "~"));
  EXPECT_FALSE(equals_ignore_case("@", "`"));
  EXPECT_FALSE(equals_ignore_case("\r", "-"));
  EXPECT_FALSE(equals_ignore_case("\xc3\x84", "\xc3\xa4"));
}

// The wide scans find the same byte as the table, for every position of the stop byte and the end.
TEST(Scan, WideAndByTableAgree) {
  Rng rng(42);
  for (int round = 0; round < 20000; ++round) {
    std::string text(rng.below(70), 'a');
    for (char& c : text) c = static_cast<char>(rng.below(8) == 0 ? rng.below(256) : 'a');
    const std::string exact(text);
    const char* begin = exact.data();
    const char* end = begin + exact.size();
    ASSERT_EQ(scan::skip_value(begin, end), scan::skip_by_table(begin, end, scan::kValue));
    ASSERT_EQ(scan::skip_target(begin, end), scan::skip_by_table(begin, end, scan::kTarget));
    ASSERT_EQ(scan::skip_token(begin, end), scan::skip_by_table(begin, end, scan::kToken));
  }
}

TEST(Scan, WideAndByTableAgreeOnEveryByteAtEveryPlace) {
  for (unsigned c = 0; c < 256; ++c) {
    for (std::size_t at = 0; at < 33; ++at) {
      std::string text(33, 'x');
      text[at] = static_cast<char>(c);
      const char* begin = text.data();
      const char* end = begin + text.size();
      ASSERT_EQ(scan::skip_value(begin, end), scan::skip_by_table(begin, end, scan::kValue)) << c;
      ASSERT_EQ(scan::skip_target(begin, end), scan::skip_by_table(begin, end, scan::kTarget)) << c;
      ASSERT_EQ(scan::skip_token(begin, end), scan::skip_by_table(begin, end, scan::kToken)) << c;
    }
  }
}

}  // namespace
}  // namespace weir::inline v0::http
