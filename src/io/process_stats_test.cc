#include "io/process_stats.h"

#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "weir/experimental/io/fd.h"

namespace weir::inline v0::io {
namespace {

TEST(ProcessStats, CountsEveryOpenDescriptor) {
  const std::uint64_t before = process_stats().open_fds;
  EXPECT_GE(before, 3U);
  std::vector<Fd> files;
  for (int i = 0; i < 10; ++i) files.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(process_stats().open_fds, before + 10);
  files.clear();
  EXPECT_EQ(process_stats().open_fds, before);
}

TEST(ProcessStats, KnowsTheBoundOfDescriptors) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(process_stats().max_fds, limit.rlim_cur);
}

TEST(ProcessStats, ProcessorTimeGrowsWithWork) {
  const double before = process_stats().cpu_seconds;
  EXPECT_GT(before, 0);
  while (process_stats().cpu_seconds < before + 0.01) continue;
  EXPECT_GT(process_stats().cpu_seconds, before);
}

}  // namespace
}  // namespace weir::inline v0::io
