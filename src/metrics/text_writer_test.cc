#include "weir/experimental/metrics/text_writer.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::metrics {
namespace {

constexpr MetricInfo kCounter{"a_total", MetricType::kCounter, "", "", "Counts a."};
constexpr MetricInfo kGauge{"b", MetricType::kGauge, "", "", "Shows b."};
constexpr MetricInfo kLabelled{"c_total", MetricType::kCounter, "", "peer result", "Counts c."};
constexpr MetricInfo kHistogram{"d_ms", MetricType::kHistogram, "ms", "priority", "Waits."};

struct Page {
  explicit Page(std::size_t size) : buffer(size), writer(buffer) {}
  std::vector<char> buffer;
  TextWriter writer;
};

TEST(TextWriter, WritesHelpAndTypeOncePerFamily) {
  Page page(1024);
  ASSERT_TRUE(page.writer.family(kLabelled));
  ASSERT_TRUE(page.writer.sample({"x", "admitted"}, 1U));
  ASSERT_TRUE(page.writer.sample({"y", "rejected"}, 2U));
  EXPECT_EQ(page.writer.text(),
            "# HELP c_total Counts c.\n"
            "# TYPE c_total counter\n"
            "c_total{peer=\"x\",result=\"admitted\"} 1\n"
            "c_total{peer=\"y\",result=\"rejected\"} 2\n");
}

TEST(TextWriter, EscapesLabelValues) {
  Page page(1024);
  page.writer.family(kLabelled);
  page.writer.sample({"a\\b\"c\nd", ""}, 1U);
  EXPECT_NE(page.writer.text().find(R"(peer="a\\b\"c\nd",result="")"), std::string_view::npos);
}

TEST(TextWriter, EscapesHelpButNotItsQuotes) {
  Page page(1024);
  page.writer.family({"x", MetricType::kGauge, "", "", "a\\b\nc \"d\""});
  EXPECT_EQ(page.writer.text(), "# HELP x a\\\\b\\nc \"d\"\n# TYPE x gauge\n");
}

TEST(TextWriter, FormatsNumbersSoThatTheyReadBackExactly) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<double, std::string>> table = {{0.0, "0"},
                                                             {1.0, "1"},
                                                             {0.1, "0.1"},
                                                             {-2.5, "-2.5"},
                                                             {infinity, "+Inf"},
                                                             {-infinity, "-Inf"},
                                                             {std::nan(""), "NaN"},
                                                             {1e300, "1e+300"},
                                                             {1.0 / 3.0, "0.3333333333333333"}};
  for (const auto& [value, expected] : table) {
    Page page(256);
    page.writer.family(kGauge);
    page.writer.sample({}, value);
    EXPECT_TRUE(page.writer.text().ends_with("\nb " + expected + "\n")) << page.writer.text();
  }
}

TEST(TextWriter, WritesCountersUpTo64BitsExactly) {
  Page page(256);
  page.writer.family(kCounter);
  page.writer.sample({}, std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(page.writer.text().ends_with("\na_total 18446744073709551615\n"));
}

TEST(TextWriter, HistogramBucketsAreCumulativeAndEndWithInfSumCount) {
  Page page(1024);
  const std::array<double, 2> bounds = {1, 2.5};
  const std::array<std::uint64_t, 3> counts = {3, 0, 4};
  page.writer.family(kHistogram);
  ASSERT_TRUE(page.writer.sample({"low"}, HistogramView{bounds, counts, 41.5}));
  EXPECT_EQ(page.writer.text(),
            "# HELP d_ms Waits.\n"
            "# TYPE d_ms histogram\n"
            "d_ms_bucket{priority=\"low\",le=\"1\"} 3\n"
            "d_ms_bucket{priority=\"low\",le=\"2.5\"} 3\n"
            "d_ms_bucket{priority=\"low\",le=\"+Inf\"} 7\n"
            "d_ms_sum{priority=\"low\"} 41.5\n"
            "d_ms_count{priority=\"low\"} 7\n");
}

// For every buffer size, the page is a prefix of the full page that consists of whole lines, and a
// histogram is included completely or not at all.
TEST(TextWriter, LeavesOutWholeSamplesWhenTheBufferIsFull) {
  const std::array<double, 2> bounds = {1, 2.5};
  const std::array<std::uint64_t, 3> counts = {3, 0, 4};
  const auto write = [&](TextWriter& writer) {
    bool all = writer.family(kLabelled);
    all = writer.sample({"some peer", "admitted"}, 123456U) && all;
    all = writer.family(kHistogram) && all;
    all = writer.sample({"low"}, HistogramView{bounds, counts, 41.5}) && all;
    all = writer.family(kGauge) && all;
    return writer.sample({}, 1U) && all;
  };
  Page whole(4096);
  ASSERT_TRUE(write(whole.writer));
  const std::string full(whole.writer.text());
  for (std::size_t size = 0; size <= full.size(); ++size) {
    Page page(size);
    const bool fitted = write(page.writer);
    const std::string_view text = page.writer.text();
    ASSERT_EQ(fitted, size == full.size());
    ASSERT_EQ(page.writer.full(), !fitted);
    ASSERT_LE(text.size(), size);
    ASSERT_TRUE(full.starts_with(text));
    ASSERT_TRUE(text.empty() || text.back() == '\n');
    const bool has_bucket = text.find("d_ms_bucket") != std::string_view::npos;
    ASSERT_EQ(has_bucket, text.find("d_ms_count") != std::string_view::npos);
  }
}

TEST(TextWriter, RefusesEverythingOnceSomethingWasLeftOut) {
  Page page(60);
  ASSERT_TRUE(page.writer.family(kLabelled));
  ASSERT_FALSE(page.writer.sample({std::string(100, 'x'), "admitted"}, 1U));
  EXPECT_FALSE(page.writer.sample({"", ""}, 1U));
  EXPECT_TRUE(page.writer.full());
}

TEST(TextWriterDeathTest, WrongNumberOfLabelsIsABug) {
  Page page(1024);
  page.writer.family(kLabelled);
  EXPECT_DEATH(page.writer.sample({"one"}, 1U), "labels.size");
}

TEST(MetricInfo, SplitsLabelNames) {
  EXPECT_EQ(label_count(""), 0U);
  EXPECT_EQ(label_count("a"), 1U);
  EXPECT_EQ(label_count("a bc d"), 3U);
  EXPECT_EQ(label_name("a bc d", 0), "a");
  EXPECT_EQ(label_name("a bc d", 1), "bc");
  EXPECT_EQ(label_name("a bc d", 2), "d");
  EXPECT_EQ(label_name("a bc d", 3), "");
}

}  // namespace
}  // namespace weir::metrics
