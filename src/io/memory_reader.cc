#include "weir/experimental/io/memory_reader.h"

#include <algorithm>
#include <optional>

#include "small_file.h"

namespace weir::inline v0::io {
namespace {

/// How one version of cgroups names its files.
struct CgroupFiles {
  std::string_view root;  // of the hierarchy
  std::string_view limit;
  std::string_view usage;
  std::string_view inactive;  // line of memory.stat
  MemoryOrigin origin;
};

constexpr CgroupFiles kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                   "inactive_file ", MemoryOrigin::kCgroup2};
constexpr CgroupFiles kHybrid = {"/sys/fs/cgroup/unified", "memory.max", "memory.current",
                                 "inactive_file ", MemoryOrigin::kCgroup2};
constexpr CgroupFiles kVersion1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                   "memory.usage_in_bytes", "total_inactive_file ",
                                   MemoryOrigin::kCgroup1};

std::optional<std::uint64_t> number_in(const std::string& path) {
  return whole_number(SmallFile(path).text());
}

std::optional<std::uint64_t> line_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (line.starts_with(key)) return whole_number(line.substr(key.size()));
  }
  return std::nullopt;
}

struct Host {
  std::uint64_t total = 0;
  std::uint64_t available = 0;
};

std::optional<Host> read_host(const MemorySource& source) {
  const SmallFile file(source.prefix + "/proc/meminfo");
  const auto total = line_of(file.text(), "MemTotal:");
  const auto available = line_of(file.text(), "MemAvailable:");
  if (!total || !available || *total == 0 || *total > UINT64_MAX / 1024) return std::nullopt;
  return Host{*total * 1024, std::min(*available, *total) * 1024};
}

/// The reading of one cgroup directory; nothing if it has no limit or is not there.
std::optional<MemoryReading> read_cgroup(const std::string& directory, const CgroupFiles& files,
                                         std::uint64_t host_total) {
  const auto limit = number_in(directory + std::string(files.limit));
  // "max" is no number; version 1 says "no limit" by a huge one.
  if (!limit || *limit == 0 || (host_total != 0 && *limit > host_total)) return std::nullopt;
  if (*limit >= (std::uint64_t{1} << 62U)) return std::nullopt;
  const auto usage = number_in(directory + std::string(files.usage));
  if (!usage) return std::nullopt;
  const SmallFile stat(directory + "memory.stat");
  const std::uint64_t inactive = line_of(stat.text(), files.inactive).value_or(0);
  const std::uint64_t used = *usage > inactive ? *usage - inactive : 0;
  return MemoryReading{
      .usage = std::min(static_cast<double>(used) / static_cast<double>(*limit), 1.0),
      .used_bytes = used,
      .limit_bytes = *limit,
      .smallest_limit_bytes = *limit,
      .origin = files.origin,
      .readable = true};
}

/// The path of this process in a hierarchy, as /proc/self/cgroup says; empty if it is not there.
std::string_view path_in(std::string_view cgroups, MemoryOrigin origin) {
  while (!cgroups.empty()) {
    std::string_view line = next_line(cgroups);
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (origin == MemoryOrigin::kCgroup2 && controllers.empty()) return path;
    if (origin == MemoryOrigin::kCgroup1 &&
        (',' + std::string(controllers) + ',').find(",memory,") != std::string::npos) {
      return path;
    }
  }
  return {};
}

/// The fuller of two, with the smaller limit of both.
void merge(std::optional<MemoryReading>& fullest, const std::optional<MemoryReading>& reading) {
  if (!reading) return;
  const std::uint64_t smallest =
      fullest ? std::min(fullest->smallest_limit_bytes, reading->smallest_limit_bytes)
              : reading->smallest_limit_bytes;
  if (!fullest || reading->usage > fullest->usage) fullest = reading;
  fullest->smallest_limit_bytes = smallest;
}

/// The fullest of a cgroup and its ancestors.
std::optional<MemoryReading> read_hierarchy(const MemorySource& source, const CgroupFiles& files,
                                            std::string_view path, std::uint64_t host_total) {
  std::optional<MemoryReading> fullest;
  const std::string root = source.prefix + std::string(files.root);
  while (true) {
    while (path.ends_with('/')) path.remove_suffix(1);
    merge(fullest, read_cgroup(root + std::string(path) + '/', files, host_total));
    if (path.empty()) return fullest;
    const std::size_t slash = path.rfind('/');
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
  }
}

}  // namespace

MemoryReading read_memory(const MemorySource& source) {
  const std::optional<Host> host = read_host(source);
  const std::uint64_t host_total = host ? host->total : 0;
  const SmallFile cgroups(source.prefix + "/proc/self/cgroup");
  std::optional<MemoryReading> fullest;
  for (const CgroupFiles& files : {kVersion2, kHybrid, kVersion1}) {
    const std::string_view path = path_in(cgroups.text(), files.origin);
    merge(fullest, read_hierarchy(source, files, path, host_total));
  }
  if (fullest) return *fullest;
  if (!host) return {};
  const std::uint64_t used = host->total - host->available;
  return {.usage = static_cast<double>(used) / static_cast<double>(host->total),
          .used_bytes = used,
          .limit_bytes = host->total,
          .smallest_limit_bytes = 0,
          .origin = MemoryOrigin::kHost,
          .readable = true};
}

}  // namespace weir::inline v0::io
