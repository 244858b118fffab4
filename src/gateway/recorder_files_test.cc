#include "recorder_files.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::gateway {
namespace {

using policy::RecordedDecision;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMega = 1024 * 1024;

struct RecorderFilesTest : ::testing::Test {
  RecorderFilesTest() {
    std::string name = "/tmp/weir-recorder-XXXXXX";
    folder = ::mkdtemp(name.data());
    config = {.folder = folder, .file_bytes = 2 * kMega, .files_max = 3};
  }
  ~RecorderFilesTest() override { std::filesystem::remove_all(folder); }

  RecorderFiles made() {
    return RecorderFiles({.config = config,
                          .header =
                              [](std::uint64_t capacity) {
                                policy::RecordingHeader header;
                                header.capacity = capacity;
                                header.reasons = {"admitted", "overload"};
                                header.scopes = {{0, "app"}};
                                return header;
                              },
                          .say = [this](const std::string& line) { said.push_back(line); },
                          .unix_seconds = [this] { return ++unix_seconds; },
                          .rng = Rng(1)});
  }
  [[nodiscard]] policy::Recording read(const std::string& name) const {
    std::ostringstream out;
    out << std::ifstream(folder + "/" + name).rdbuf();
    auto recording = policy::read_recording(std::as_bytes(std::span(out.view())));
    EXPECT_TRUE(recording) << name << ": " << recording.error();
    return recording ? std::move(*recording) : policy::Recording{};
  }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      all.insert(entry.path().filename().string());
    }
    return all;
  }
  static policy::DecisionWords at(Duration when) {
    RecordedDecision decision;
    decision.at = when;
    decision.actor = 7;
    decision.reason = 1;
    return policy::pack(decision);
  }

  std::string folder;
  gateway::RecorderConfig config;
  std::vector<std::string> said;
  std::int64_t unix_seconds = 1000;
};

TEST_F(RecorderFilesTest, TheRunningFileHasTheNewestDecisionsAndAFixedSize) {
  RecorderFiles files = made();
  std::vector<policy::DecisionWords> some;
  for (int i = 0; i < 70'000; ++i) some.push_back(at(milliseconds(i)));
  files.write(std::span(some).first(10), 0, seconds(1));
  EXPECT_EQ(read("running.weirrec").decisions.size(), 10U);
  files.write(std::span(some).subspan(10), 5, seconds(2));
  EXPECT_EQ(std::filesystem::file_size(folder + "/running.weirrec"), 2 * kMega);
  const policy::Recording all = read("running.weirrec");
  EXPECT_GT(all.decisions.size(), 52'000U);
  EXPECT_EQ(all.decisions.back().at, Duration(milliseconds(69'999)));
  EXPECT_EQ(all.torn, 0U);
  EXPECT_EQ(files.stats().written, 70'000U);
  EXPECT_EQ(files.stats().lost, 5U);
}

TEST_F(RecorderFilesTest, AnOverloadIsKeptFromAMinuteBeforeToAMinuteAfter) {
  RecorderFiles files = made();
  for (int second = 0; second < 400; ++second) {
    const Duration now = seconds(second);
    const std::vector<policy::DecisionWords> one = {at(now)};
    files.write(one, 0, now);
    files.watch_overload(second >= 100 && second < 300, now);
  }
  EXPECT_EQ(files.stats().frozen, 1U) << "one overload, however long";
  EXPECT_EQ(names(), (std::set<std::string>{"running.weirrec", "overload-1001.weirrec"}));
  const policy::Recording kept = read("overload-1001.weirrec");
  ASSERT_EQ(kept.decisions.size(), 121U);
  EXPECT_EQ(kept.decisions.front().at, Duration(seconds(40)));
  EXPECT_EQ(kept.decisions.back().at, Duration(seconds(160)));
  EXPECT_FALSE(kept.cut);
  EXPECT_NE(kept.decisions[0].actor, read("running.weirrec").decisions[0].actor)
      << "each file has a key of its own";
  EXPECT_EQ(kept.decisions[0].actor, kept.decisions[1].actor);
}

TEST_F(RecorderFilesTest, TheMinuteBeforeIsKeptAlthoughTheRunningFileHoldsLess) {
  // The running file has places for 52,000 decisions, 75 s of them.
  constexpr std::size_t kEachSecond = 700;
  RecorderFiles files = made();
  for (int second = 0; second < 200; ++second) {
    const Duration now = seconds(second);
    files.write(std::vector<policy::DecisionWords>(kEachSecond, at(now)), 0, now);
    files.watch_overload(second >= 100, now);
  }
  EXPECT_GT(read("running.weirrec").decisions.front().at, Duration(seconds(120)));
  const policy::Recording kept = read("overload-1001.weirrec");
  EXPECT_EQ(kept.decisions.size(), 121 * kEachSecond) << "each once";
  EXPECT_EQ(kept.decisions.front().at, Duration(seconds(40)));
  EXPECT_EQ(kept.decisions.back().at, Duration(seconds(160)));
  EXPECT_EQ(kept.header.capacity, kept.decisions.size());
  EXPECT_EQ(kept.decisions.front().actor, kept.decisions.back().actor)
      << "an actor has one tag before the begin and after it";
}

TEST_F(RecorderFilesTest, AProcessThatEndsInTheMinuteAfterLeavesWhatCameUntilThen) {
  {
    RecorderFiles files = made();
    for (int second = 0; second <= 130; ++second) {
      const Duration now = seconds(second);
      files.write(std::vector<policy::DecisionWords>{at(now)}, 0, now);
      files.watch_overload(second >= 100, now);
      if (second != 100) continue;
      EXPECT_EQ(read("overload-1001.weirrec").decisions.size(), 61U) << "at once";
    }
  }
  const policy::Recording kept = read("overload-1001.weirrec");
  ASSERT_EQ(kept.decisions.size(), 91U);
  EXPECT_EQ(kept.decisions.front().at, Duration(seconds(40)));
  EXPECT_EQ(kept.decisions.back().at, Duration(seconds(130)));
  EXPECT_EQ(kept.torn, 0U);
  EXPECT_FALSE(kept.cut);
}

TEST_F(RecorderFilesTest, AFileOfAnOverloadIsAtMostTwiceAsLargeAsTheRunningOne) {
  RecorderFiles files = made();
  for (int second = 0; second < 200; ++second) {
    const Duration now = seconds(second);
    files.write(std::vector<policy::DecisionWords>(3000, at(now)), 0, now);
    files.watch_overload(second >= 100, now);
  }
  EXPECT_LE(std::filesystem::file_size(folder + "/overload-1001.weirrec"), 4 * kMega);
  const policy::Recording kept = read("overload-1001.weirrec");
  EXPECT_LT(kept.decisions.front().at, Duration(seconds(84)));
  EXPECT_GT(kept.decisions.back().at, Duration(seconds(116)));
}

TEST_F(RecorderFilesTest, AnOverloadThatCannotBeKeptDoesNotStopTheRunningFile) {
  RecorderFiles files = made();
  const std::vector<policy::DecisionWords> one = {at(seconds(1))};
  files.write(one, 0, seconds(1));
  std::filesystem::remove_all(folder);
  for (int second = 2; second < 50; ++second) {
    files.write(one, 0, seconds(second));
    files.watch_overload(second % 2 == 0, seconds(second));
  }
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("cannot keep this overload"), std::string::npos) << said[0];
  EXPECT_FALSE(files.stats().failing);
  EXPECT_EQ(files.stats().written, 49U);
  EXPECT_EQ(files.stats().frozen, 0U);
}

TEST_F(RecorderFilesTest, TheOldestFilesAreRemovedAndNoOthers) {
  std::ofstream(folder + "/notes-1.weirrec") << "of somebody else";
  RecorderFiles files = made();
  for (int overload = 0; overload < 5; ++overload) {
    const Duration begin = seconds(1000 * overload);
    files.write(std::vector<policy::DecisionWords>{at(begin)}, 0, begin);
    files.watch_overload(true, begin);
    files.watch_overload(false, begin + seconds(61));
  }
  EXPECT_EQ(names(),
            (std::set<std::string>{"notes-1.weirrec", "running.weirrec", "overload-1003.weirrec",
                                   "overload-1004.weirrec", "overload-1005.weirrec"}));
}

TEST_F(RecorderFilesTest, TheFileOfTheProcessBeforeIsKept) {
  {
    RecorderFiles before = made();
    before.write(std::vector<policy::DecisionWords>{at(seconds(1))}, 0, seconds(1));
  }
  RecorderFiles files = made();
  files.write({}, 0, seconds(1));
  EXPECT_EQ(read("ended-1001.weirrec").decisions.size(), 1U);
  EXPECT_EQ(read("running.weirrec").decisions.size(), 0U);
}

TEST_F(RecorderFilesTest, AProcessThatIsRestartedOverAndOverDoesNotRemoveTheOverloads) {
  for (int start = 0; start < 5; ++start) {
    RecorderFiles files = made();
    files.write(std::vector<policy::DecisionWords>{at(seconds(1))}, 0, seconds(1));
    files.watch_overload(start == 0, seconds(1));
  }
  EXPECT_EQ(names(), (std::set<std::string>{"running.weirrec", "overload-1001.weirrec",
                                            "ended-1004.weirrec", "ended-1005.weirrec"}));
}

TEST_F(RecorderFilesTest, OfTheFilesOfOneSecondTheFirstIsRemovedFirst) {
  for (int start = 0; start < 12; ++start) {
    RecorderFiles files = made();
    unix_seconds = 1000;  // the next file is of 1001 again
    files.write({}, 0, seconds(1));
  }
  EXPECT_EQ(names(), (std::set<std::string>{"running.weirrec", "ended-1001.10.weirrec",
                                            "ended-1001.11.weirrec"}));
}

TEST_F(RecorderFilesTest, ADiskThatFailsIsSaidOnceAndTriedAgainAfterAMinute) {
  config.folder = folder + "/later/decisions";
  RecorderFiles files = made();
  const std::vector<policy::DecisionWords> one = {at(seconds(1))};
  for (int i = 0; i < 10; ++i) files.write(one, 0, seconds(i));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("no such file or directory"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("recorder.folder"), std::string::npos);
  EXPECT_TRUE(files.stats().failing);
  EXPECT_EQ(files.stats().lost, 10U);
  files.watch_overload(true, seconds(10));
  files.watch_overload(true, seconds(100));
  std::filesystem::create_directory(folder + "/later");
  files.write(one, 0, seconds(59));
  EXPECT_TRUE(files.stats().failing) << "not yet";
  files.write(one, 0, seconds(61));
  EXPECT_FALSE(files.stats().failing);
  EXPECT_EQ(said.size(), 2U);
  EXPECT_EQ(files.stats().written, 1U);
}

TEST_F(RecorderFilesTest, TheLastFolderOfThePathIsMadeForItsOwnerOnly) {
  config.folder = folder + "/decisions";
  RecorderFiles files = made();
  files.write({}, 0, seconds(1));
  struct stat facts {};
  ASSERT_EQ(::stat(config.folder.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0700U);
  EXPECT_FALSE(files.stats().failing);
}

TEST_F(RecorderFilesTest, AFullDiskIsAnErrorBeforeAnythingIsWritten) {
  config.file_bytes = std::uint64_t{1} << 60U;
  RecorderFiles files = made();
  files.write(std::vector<policy::DecisionWords>{at(seconds(1))}, 0, seconds(1));
  EXPECT_TRUE(files.stats().failing);
  EXPECT_EQ(said.size(), 1U);
  EXPECT_TRUE(names().empty()) << "no half file is left";
}

}  // namespace
}  // namespace weir::gateway
