#include "io/process_stats.h"

#include <filesystem>
#include <system_error>

#include <sys/resource.h>
#include <sys/stat.h>

namespace weir::inline v0::io {
namespace {

constexpr const char* kFolder = "/proc/self/fd";

double seconds_of(const timeval& time) noexcept {
  constexpr double kMicro = 1e-6;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * kMicro;
}

std::uint64_t open_descriptors() {
  struct stat facts {};
  if (::stat(kFolder, &facts) == 0 && facts.st_size > 0) {
    return static_cast<std::uint64_t>(facts.st_size);
  }
  std::error_code error;
  std::uint64_t count = 0;
  for (std::filesystem::directory_iterator it(kFolder, error), end; !error && it != end;
       it.increment(error)) {
    ++count;
  }
  return count > 0 ? count - 1 : 0;  // without the one that reads the folder
}

}  // namespace

ProcessStats process_stats() {
  ProcessStats stats;
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) {
    stats.cpu_seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) stats.max_fds = limit.rlim_cur;
  stats.open_fds = open_descriptors();
  return stats;
}

}  // namespace weir::inline v0::io
