#include "path_reading.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "percent_code.h"

namespace weir::gateway {
namespace {

std::string read(std::string_view path, const PathReading& reading) {
  std::vector<char> out(path.size());
  return std::string(read_path(path, reading, out));
}

constexpr PathReading kAsWritten;
constexpr PathReading kSegments{.resolved = true};
constexpr PathReading kNginx{.resolved = true, .decoded = true};
constexpr PathReading kJava{.resolved = true, .parameters_dropped = true, .decoded = true};
constexpr PathReading kBrowser{.resolved = true, .backslash_is_slash = true};

TEST(PathReading, EachServerHasItsOwn) {
  struct Row {
    const char* path;
    const char* as_written;
    const char* segments;
    const char* nginx;
    const char* java;
    const char* browser;
  };
  const std::vector<Row> rows = {
      {"/a/b", "/a/b", "/a/b", "/a/b", "/a/b", "/a/b"},
      {"/%61%2fb", "/a%2Fb", "/a%2Fb", "/a/b", "/a/b", "/a%2Fb"},
      {"/a/../b", "/a/../b", "/b", "/b", "/b", "/b"},
      {"/a/..%2fb", "/a/..%2Fb", "/a/..%2Fb", "/b", "/b", "/a/..%2Fb"},
      {"/a/%2e%2E/b", "/a/../b", "/b", "/b", "/b", "/b"},
      {"//a/./b/", "//a/./b/", "/a/b/", "/a/b/", "/a/b/", "/a/b/"},
      {"/a/..;x/b", "/a/..;x/b", "/a/..;x/b", "/a/..;x/b", "/b", "/a/..;x/b"},
      {"/a/..;%2fx/b", "/a/..;%2Fx/b", "/a/..;%2Fx/b", "/a/..;/x/b", "/b", "/a/..;%2Fx/b"},
      {"/a/..%3b/b", "/a/..%3B/b", "/a/..%3B/b", "/a/..;/b", "/a/..;/b", "/a/..%3B/b"},
      {"/a;x=1/b;y", "/a;x=1/b;y", "/a;x=1/b;y", "/a;x=1/b;y", "/a/b", "/a;x=1/b;y"},
      {"/a\\..\\b", "/a\\..\\b", "/a\\..\\b", "/a\\..\\b", "/a\\..\\b", "/b"},
      {"/a%5c..%5Cb", "/a%5C..%5Cb", "/a%5C..%5Cb", "/a\\..\\b", "/a\\..\\b", "/a%5C..%5Cb"},
      {"/..", "/..", "/", "/", "/", "/"},
      {"/a/..", "/a/..", "/", "/", "/", "/"},
      {"/a/b/..", "/a/b/..", "/a/", "/a/", "/a/", "/a/"},
      {"/../../a", "/../../a", "/a", "/a", "/a", "/a"},
      {"/%", "/%", "/%", "/%", "/%", "/%"},
      {"/%2", "/%2", "/%2", "/%2", "/%2", "/%2"},
      {"/%252e", "/%252e", "/%252e", "/%2e", "/%2e", "/%252e"},
      {"*", "*", "*", "*", "*", "*"},
      {"", "", "", "", "", ""},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(read(row.path, kAsWritten), row.as_written);
    EXPECT_EQ(read(row.path, kSegments), row.segments) << row.path;
    EXPECT_EQ(read(row.path, kNginx), row.nginx) << row.path;
    EXPECT_EQ(read(row.path, kJava), row.java) << row.path;
    EXPECT_EQ(read(row.path, kBrowser), row.browser) << row.path;
  }
}

TEST(PathReading, ResolvingTwiceChangesNothingAndLeavesNoDotSegment) {
  constexpr std::string_view kPieces[] = {"/", ".", "..", "a", "%2f", "%2e", ";", "\\", "%", "b"};
  Rng rng(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string path = "/";
    for (auto left = rng.below(12); left > 0; --left)
      path += kPieces[rng.below(std::size(kPieces))];
    for (const PathReading& reading : kPathReadings) {
      const std::string once = read(path, reading);
      EXPECT_LE(once.size(), path.size());
      if (!reading.resolved) continue;
      EXPECT_EQ(once.front(), '/') << path;
      EXPECT_EQ(once.find("//"), std::string::npos) << path;
      EXPECT_EQ((once + "/").find("/../"), std::string::npos) << path;
      EXPECT_EQ((once + "/").find("/./"), std::string::npos) << path;
      EXPECT_EQ(read(once, kSegments), once) << path;
    }
  }
}

TEST(PathReading, APlainPathReadsTheSameInEveryWay) {
  constexpr std::string_view kPieces[] = {"/", ".", "..", "a", "%2f", "%61", ";", "\\", "-", "b.c"};
  Rng rng(8);
  int plain = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string path = "/";
    for (auto left = rng.below(6); left > 0; --left) path += kPieces[rng.below(std::size(kPieces))];
    if (!is_plain_path(path)) continue;
    ++plain;
    for (const PathReading& reading : kPathReadings) EXPECT_EQ(read(path, reading), path);
  }
  EXPECT_GT(plain, 1000);
}

/// All codes decoded, segment by segment: what a reading has left between its slashes.
std::vector<std::string> segments_in(const std::string& path) {
  std::vector<std::string> segments;
  for (std::string_view rest = path; !rest.empty();) {
    const std::optional<char> code = percent_code(rest);
    if (rest.front() == '/') {
      segments.emplace_back();
    } else {
      segments.back() += code.value_or(rest.front());
    }
    rest.remove_prefix(code ? 3 : 1);
  }
  return segments;
}

TEST(PathReading, OnlyAPathWhoseSegmentsAreTheSameInAllReadingsHasOne) {
  constexpr std::string_view kPieces[] = {"/",   ".",   "..",  "a", "%2f", "%2e", ";",
                                          "%3b", "%20", "%5C", "%", "\\",  ".b",  "/"};
  Rng rng(9);
  int one = 0;
  int harsher = 0;
  for (int round = 0; round < 40'000; ++round) {
    std::string path = "/";
    for (auto left = rng.below(6); left > 0; --left) path += kPieces[rng.below(std::size(kPieces))];
    const auto as_written = segments_in(read(path, kAsWritten));
    const bool alike = std::all_of(kPathReadings.begin() + 1, kPathReadings.end(), [&](auto& way) {
      return segments_in(read(path, way)) == as_written;
    });
    const bool has_one = has_one_reading(path);
    if (has_one) {
      ++one;
      EXPECT_TRUE(alike) << path;
    } else if (alike) {
      ++harsher;  // only for those servers that decode before they look for parameters
      EXPECT_NE(path.find("%3b"), std::string::npos) << path;
    }
  }
  EXPECT_GT(one, 5000);
  EXPECT_LT(harsher, one / 4);
}

}  // namespace
}  // namespace weir::gateway
