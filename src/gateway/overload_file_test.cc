#include "overload_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace weir::gateway {
namespace {

using std::chrono::seconds;

struct OverloadFileTest : ::testing::Test {
  ~OverloadFileTest() override { std::filesystem::remove(path); }

  [[nodiscard]] Result<OverloadFile, std::errc> made(std::uint64_t records_max) const {
    policy::RecordingHeader header;
    header.reasons = {"admitted"};
    return OverloadFile::create({.path = path,
                                 .header = header,
                                 .key = {.k0 = 1, .k1 = 2},
                                 .begin = seconds(100),
                                 .records_max = records_max});
  }
  [[nodiscard]] policy::Recording read() const {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    auto recording = policy::read_recording(std::as_bytes(std::span(out.view())));
    EXPECT_TRUE(recording) << recording.error();
    return recording ? std::move(*recording) : policy::Recording{};
  }
  static policy::RecordedDecision at(Duration when) {
    policy::RecordedDecision decision;
    decision.at = when;
    decision.actor = 7;
    return decision;
  }
  const std::string path =
      (std::filesystem::temp_directory_path() / ("weir_overload_" + std::to_string(::getpid())))
          .string();
};

TEST_F(OverloadFileTest, HasWhatEndedWithinAMinuteOfTheBegin) {
  auto file = made(1000);
  ASSERT_TRUE(file);
  EXPECT_TRUE(read().decisions.empty()) << "it can be read before anything is in it";
  for (int second = 0; second < 300; ++second) ASSERT_TRUE(file->take(at(seconds(second))));
  ASSERT_TRUE(file->flush());
  EXPECT_EQ(read().decisions.size(), 121U);
  EXPECT_FALSE(read().cut);
  ASSERT_TRUE(file->finish());
  const policy::Recording kept = read();
  EXPECT_EQ(kept.decisions.front().at, Duration(seconds(40)));
  EXPECT_EQ(kept.decisions.back().at, Duration(seconds(160)));
  EXPECT_NE(kept.decisions.front().actor, 7U) << "another tag than in memory";
  EXPECT_EQ(kept.header.capacity, 121U);
}

TEST_F(OverloadFileTest, HoldsNoMoreThanItMay) {
  auto file = made(50);
  ASSERT_TRUE(file);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(file->take(at(seconds(100))));
  ASSERT_TRUE(file->finish());
  EXPECT_EQ(read().decisions.size(), 50U);
}

TEST_F(OverloadFileTest, ANameThatIsTakenIsAnError) {
  ASSERT_TRUE(made(1));
  EXPECT_EQ(made(1).error(), std::errc::file_exists);
}

}  // namespace
}  // namespace weir::gateway
