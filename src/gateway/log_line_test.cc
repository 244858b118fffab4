#include "log_line.h"

#include <array>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weir/base/rng.h"

namespace weir::inline v0::gateway {
namespace {

std::string line_with_value(AccessLogFormat format, std::string_view value) {
  std::array<char, 2048> out;
  LogLine line(format, out);
  line.text("a", value);
  line.number("b", 7);
  return std::string(line.finish());
}

TEST(LogLine, BothFormsHaveTheSamePairs) {
  std::array<char, 2048> out;
  const auto all = [&](AccessLogFormat format) {
    LogLine line(format, out);
    line.text("path", "/a/b");
    line.text("host", "");
    line.number("status", 200);
    line.number_text("actor", 12345678901234567890U);
    line.millis("ms", std::chrono::microseconds(12345));
    line.millis("wait_ms", std::chrono::nanoseconds(-5));
    return std::string(line.finish());
  };
  EXPECT_EQ(all(AccessLogFormat::kJson),
            R"({"path":"/a/b","host":"","status":200,"actor":"12345678901234567890",)"
            R"("ms":12.345,"wait_ms":0.000})");
  EXPECT_EQ(all(AccessLogFormat::kText),
            R"(path=/a/b host="" status=200 actor=12345678901234567890 ms=12.345 wait_ms=0.000)");
}

TEST(LogLine, HostileValuesCannotLeaveTheirPlace) {
  struct Case {
    std::string value;
    std::string text;  // as it stands in the text form
  };
  const std::vector<Case> cases = {{"plain-1.2:3/@,+*~%", "plain-1.2:3/@,+*~%"},
                                   {"two words", R"("two words")"},
                                   {"a=b", R"("a=b")"},
                                   {"x status=200", R"("x status=200")"},
                                   {R"(a" b="c)", R"("a\" b=\"c")"},
                                   {R"(back\slash)", R"("back\\slash")"},
                                   {R"(end\)", R"("end\\")"},
                                   {"line\nb=8", R"("line\u000ab=8")"},
                                   {"cr\r\n", R"("cr\u000d\u000a")"},
                                   {std::string("nul\0x", 5), R"("nul\u0000x")"},
                                   {"\x1b[2J", R"("\u001b[2J")"},
                                   {"\x7f", R"("\u007f")"},
                                   {"\xc3\xa9", R"("\u00c3\u00a9")"},
                                   {"{\"a\":1}", R"("{\"a\":1}")"},
                                   {"'", R"("'")"}};
  for (const Case& one : cases) {
    EXPECT_EQ(line_with_value(AccessLogFormat::kText, one.value), "a=" + one.text + " b=7");
    const auto parsed = nlohmann::json::parse(line_with_value(AccessLogFormat::kJson, one.value));
    EXPECT_EQ(parsed.size(), 2U) << one.text;
    EXPECT_EQ(parsed["b"], 7) << one.text;
  }
}

TEST(LogLine, AnyBytesGiveOnePrintableLineWithTheSameNumberOfPairs) {
  Rng rng(11);
  for (int i = 0; i < 5000; ++i) {
    std::string value(rng.below(40), '\0');
    for (char& c : value) c = static_cast<char>(rng.below(256));
    for (const AccessLogFormat format : {AccessLogFormat::kJson, AccessLogFormat::kText}) {
      const std::string line = line_with_value(format, value);
      for (const char c : line) ASSERT_TRUE(c >= ' ' && c <= '~') << line;
    }
    EXPECT_EQ(nlohmann::json::parse(line_with_value(AccessLogFormat::kJson, value)).size(), 2U);
  }
}

TEST(LogLine, WhatDoesNotFitIsCut) {
  std::array<char, 8> out;
  LogLine line(AccessLogFormat::kText, out);
  line.text("key", "a long value");
  EXPECT_EQ(line.finish(), "key=\"a l");
}

}  // namespace
}  // namespace weir::inline v0::gateway
