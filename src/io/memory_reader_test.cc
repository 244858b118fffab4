#include "weir/experimental/io/memory_reader.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace weir::inline v0::io {
namespace {

namespace fs = std::filesystem;

/// A fake root with /proc and /sys, removed at the end.
struct MemoryTree : testing::Test {
  MemoryTree() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    root = fs::path(testing::TempDir()) /
           ("weir-memory-" + std::to_string(::getpid()) + "-" + info->name());
    fs::create_directories(root);
  }
  void TearDown() override { fs::remove_all(root); }

  void put(const std::string& path, const std::string& text) {
    const fs::path file = root / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void host(const std::string& total_kb = "8388608", const std::string& available_kb = "6291456") {
    put("proc/meminfo", "MemTotal:        " + total_kb + " kB\nMemFree:  100 kB\nMemAvailable:   " +
                            available_kb + " kB\nBuffers: 1 kB\n");
  }
  /// One version 2 cgroup.
  void group(const std::string& path, const std::string& max, const std::string& current,
             const std::string& inactive) {
    put("sys/fs/cgroup" + path + "/memory.max", max + "\n");
    put("sys/fs/cgroup" + path + "/memory.current", current + "\n");
    put("sys/fs/cgroup" + path + "/memory.stat",
        "anon 5\nfile 7\ninactive_anon 3\ninactive_file " + inactive + "\nactive_file 4\n");
  }
  MemoryReading read() { return read_memory({root.string()}); }

  fs::path root;
};

TEST_F(MemoryTree, WorkingSetIsUsageMinusInactiveFile) {
  host();
  put("proc/self/cgroup", "0::/app\n");
  group("/app", "1000000", "700000", "200000");
  const MemoryReading reading = read();
  EXPECT_TRUE(reading.readable);
  EXPECT_EQ(reading.origin, MemoryOrigin::kCgroup2);
  EXPECT_EQ(reading.used_bytes, 500'000U);
  EXPECT_EQ(reading.limit_bytes, 1'000'000U);
  EXPECT_DOUBLE_EQ(reading.usage, 0.5);
}

TEST_F(MemoryTree, AncestorWithALimitCountsWhenTheLeafHasNone) {
  host();
  put("proc/self/cgroup", "0::/slice/app\n");
  group("/slice/app", "max", "600000", "0");
  group("/slice", "2000000", "1500000", "100000");
  const MemoryReading reading = read();
  EXPECT_EQ(reading.limit_bytes, 2'000'000U);
  EXPECT_EQ(reading.used_bytes, 1'400'000U);
}

TEST_F(MemoryTree, TightestAncestorWins) {
  host();
  put("proc/self/cgroup", "0::/slice/app\n");
  group("/slice/app", "1000000", "300000", "0");
  group("/slice", "2000000", "1800000", "0");  // nearer to its limit than the leaf
  EXPECT_DOUBLE_EQ(read().usage, 0.9);
  EXPECT_EQ(read().limit_bytes, 2'000'000U);
  EXPECT_EQ(read().smallest_limit_bytes, 1'000'000U);  // the memory that a program must fit into
  group("/slice/app", "1000000", "950000", "0");
  EXPECT_DOUBLE_EQ(read().usage, 0.95);
}

TEST_F(MemoryTree, NamespacedContainerSeesItsOwnRoot) {
  host();
  put("proc/self/cgroup", "0::/\n");
  group("", "500000", "250000", "0");
  EXPECT_DOUBLE_EQ(read().usage, 0.5);
}

TEST_F(MemoryTree, VersionOneIsRead) {
  host();
  put("proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/docker/abc\n1:name=systemd:/y\n");
  const std::string folder = "sys/fs/cgroup/memory/docker/abc/";
  put(folder + "memory.limit_in_bytes", "4000000\n");
  put(folder + "memory.usage_in_bytes", "3000000\n");
  put(folder + "memory.stat", "inactive_file 9\ntotal_inactive_file 1000000\n");
  const MemoryReading reading = read();
  EXPECT_EQ(reading.origin, MemoryOrigin::kCgroup1);
  EXPECT_DOUBLE_EQ(reading.usage, 0.5);
}

TEST_F(MemoryTree, VersionOneWithoutLimitFallsBackToTheHost) {
  host();
  put("proc/self/cgroup", "5:memory:/\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "3000000\n");
  EXPECT_EQ(read().origin, MemoryOrigin::kHost);
}

TEST_F(MemoryTree, WithoutAnyLimitTheHostCounts) {
  host("1000", "250");
  put("proc/self/cgroup", "0::/app\n");
  group("/app", "max", "123", "0");
  const MemoryReading reading = read();
  EXPECT_EQ(reading.origin, MemoryOrigin::kHost);
  EXPECT_EQ(reading.limit_bytes, 1'024'000U);
  EXPECT_DOUBLE_EQ(reading.usage, 0.75);
}

TEST_F(MemoryTree, LimitAboveTheMachineIsNone) {
  host("1000", "250");
  put("proc/self/cgroup", "0::/app\n");
  group("/app", "999999999999", "123", "0");
  EXPECT_EQ(read().origin, MemoryOrigin::kHost);
}

TEST_F(MemoryTree, MissingEverythingIsUnreadableAndZero) {
  const MemoryReading reading = read();
  EXPECT_FALSE(reading.readable);
  EXPECT_EQ(reading, MemoryReading{});
}

TEST_F(MemoryTree, EmptyAndGarbageFilesAreUnreadable) {
  for (const char* rubbish : {"", "\n", "banana", "-5", "0x10", "12banana", "\xff\xfe", "::::"}) {
    put("proc/meminfo", rubbish);
    put("proc/self/cgroup", rubbish);
    put("sys/fs/cgroup/memory.max", rubbish);
    put("sys/fs/cgroup/memory.current", rubbish);
    put("sys/fs/cgroup/memory.stat", rubbish);
    EXPECT_FALSE(read().readable) << rubbish;
  }
}

TEST_F(MemoryTree, GarbageInOneGroupLeavesTheOthers) {
  host();
  put("proc/self/cgroup", "rubbish\n0::/slice/app\n");
  group("/slice/app", "1000000", "what", "0");
  group("/slice", "2000000", "1000000", "nothing");
  const MemoryReading reading = read();
  EXPECT_EQ(reading.limit_bytes, 2'000'000U);
  EXPECT_DOUBLE_EQ(reading.usage, 0.5) << "an unreadable stat line subtracts nothing";
}

TEST_F(MemoryTree, InactiveAboveUsageIsZeroNotHuge) {
  host();
  put("proc/self/cgroup", "0::/app\n");
  group("/app", "1000000", "100", "200");
  EXPECT_DOUBLE_EQ(read().usage, 0.0);
  EXPECT_TRUE(read().readable);
}

TEST_F(MemoryTree, UsageAboveTheLimitIsOne) {
  host();
  put("proc/self/cgroup", "0::/app\n");
  group("/app", "1000", "5000", "0");
  EXPECT_DOUBLE_EQ(read().usage, 1.0);
}

TimePoint after(double seconds) {
  return time_from_ns(1'000'000'000 + static_cast<std::int64_t>(seconds * 1e9));
}

/// One cgroup of 1,000,000 bytes, polled with a threshold of 0.8.
struct MemoryPoll : MemoryTree {
  void usage(const std::string& current, const std::string& inactive) {
    host();
    put("proc/self/cgroup", "0::/app\n");
    group("/app", "1000000", current, inactive);
  }
  double poll(double seconds) { return reader.read(after(seconds), 0.8).usage; }
  MemoryReader reader{{root.string()}};
};

TEST_F(MemoryPoll, FarFromTheThresholdStatIsNotReadAgain) {
  usage("700000", "200000");
  EXPECT_DOUBLE_EQ(poll(0), 0.5);
  usage("710000", "0");
  EXPECT_DOUBLE_EQ(poll(0.5), 0.51) << "usage is new, inactive as it was";
  EXPECT_DOUBLE_EQ(poll(9.9), 0.51) << "usage is below the threshold: so is the working set";
  EXPECT_DOUBLE_EQ(poll(10), 0.71) << "old";
}

TEST_F(MemoryPoll, NearTheThresholdEveryReadingIsExact) {
  usage("900000", "150000");
  EXPECT_DOUBLE_EQ(poll(0), 0.75);
  usage("900000", "50000");
  EXPECT_DOUBLE_EQ(poll(0.5), 0.85);
  usage("900000", "100000");
  EXPECT_DOUBLE_EQ(poll(0.6), 0.8);
}

// Page cache fills a cgroup to its limit. When memory.stat is read again depends on the distance of
// the working set from the threshold.
TEST_F(MemoryPoll, AFullPageCacheIsLookedAtInTimeForAQuickGrowth) {
  usage("1000000", "500000");
  EXPECT_DOUBLE_EQ(poll(0), 0.5);
  usage("1000000", "250000");
  EXPECT_DOUBLE_EQ(poll(2.9), 0.5);
  EXPECT_DOUBLE_EQ(poll(3), 0.75) << "by a tenth per second it could be at 0.8";
  usage("1000000", "150000");
  EXPECT_DOUBLE_EQ(poll(3.5), 0.85);
}

TEST_F(MemoryPoll, ANewLimitCountsAtOnceAndANewCgroupSoon) {
  usage("400000", "0");
  EXPECT_DOUBLE_EQ(poll(0), 0.4);
  put("sys/fs/cgroup/app/memory.max", "800000\n");
  EXPECT_DOUBLE_EQ(poll(0.5), 0.5);
  group("/other", "500000", "300000", "0");
  put("proc/self/cgroup", "0::/other\n");
  EXPECT_DOUBLE_EQ(poll(1), 0.5);
  EXPECT_DOUBLE_EQ(poll(10), 0.6);
}

TEST_F(MemoryPoll, ALimitThatGoesIsNoticedAtOnce) {
  usage("400000", "0");
  EXPECT_DOUBLE_EQ(poll(0), 0.4);
  put("sys/fs/cgroup/app/memory.max", "max\n");
  EXPECT_DOUBLE_EQ(poll(0.5), 0.25) << "the host's";
  put("sys/fs/cgroup/app/memory.max", "1000000\n");
  EXPECT_DOUBLE_EQ(poll(11), 0.4);
}

TEST(MemoryReaderReal, ThisMachineIsReadable) {
  const MemoryReading reading = read_memory();
  EXPECT_TRUE(reading.readable);
  EXPECT_GT(reading.limit_bytes, 0U);
  EXPECT_GT(reading.usage, 0.0);
  EXPECT_LE(reading.usage, 1.0);
}

}  // namespace
}  // namespace weir::inline v0::io
