#include "weir/experimental/io/memory_reader.h"

#include <algorithm>
#include <optional>

#include <unistd.h>

#include "small_file.h"

namespace weir::inline v0::io {
namespace {

/// The file names of one cgroup version.
struct CgroupFiles {
  std::string_view root;  // of the hierarchy
  std::string_view limit;
  std::string_view usage;
  std::string_view inactive;  // line of memory.stat
  MemoryOrigin origin;
};

/// Faster growth of the working set may be missed by a reading; in limits per second.
constexpr double kGrowthPerSecond = 0.1;
constexpr Duration kOpenAgainAfter = std::chrono::seconds(10);

constexpr CgroupFiles kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                   "inactive_file ", MemoryOrigin::kCgroup2};
constexpr CgroupFiles kHybrid = {"/sys/fs/cgroup/unified", "memory.max", "memory.current",
                                 "inactive_file ", MemoryOrigin::kCgroup2};
constexpr CgroupFiles kVersion1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                   "memory.usage_in_bytes", "total_inactive_file ",
                                   MemoryOrigin::kCgroup1};

std::optional<std::uint64_t> number_in(const Fd& file) {
  return whole_number(SmallFile(file).text());
}

/// "max" is not a number; version 1 writes a huge number for "no limit".
std::optional<std::uint64_t> limit_in(const Fd& file, std::uint64_t host_total) {
  const auto limit = number_in(file);
  if (!limit || *limit == 0 || (host_total != 0 && *limit > host_total)) return std::nullopt;
  if (*limit >= (std::uint64_t{1} << 62U)) return std::nullopt;
  return limit;
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

std::optional<Host> read_host(const Fd& meminfo) {
  const SmallFile file(meminfo);
  const auto total = line_of(file.text(), "MemTotal:");
  const auto available = line_of(file.text(), "MemAvailable:");
  if (!total || !available || *total == 0 || *total > UINT64_MAX / 1024) return std::nullopt;
  return Host{*total * 1024, std::min(*available, *total) * 1024};
}

/// The path of this process in a hierarchy, from /proc/self/cgroup; empty if it is not listed.
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

/// Keeps the reading with the higher usage, and the smaller limit of both.
void merge(std::optional<MemoryReading>& fullest, const std::optional<MemoryReading>& reading) {
  if (!reading) return;
  const std::uint64_t smallest =
      fullest ? std::min(fullest->smallest_limit_bytes, reading->smallest_limit_bytes)
              : reading->smallest_limit_bytes;
  if (!fullest || reading->usage > fullest->usage) fullest = reading;
  fullest->smallest_limit_bytes = smallest;
}

/// The directories of a cgroup and its ancestors, each with a final slash.
std::vector<std::string> directories(const std::string& root, std::string_view path) {
  std::vector<std::string> out;
  while (true) {
    while (path.ends_with('/')) path.remove_suffix(1);
    out.push_back(root + std::string(path) + '/');
    if (path.empty()) return out;
    const std::size_t slash = path.rfind('/');
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
  }
}

}  // namespace

void MemoryReader::open(TimePoint now) {
  opened_at_ = now;
  cgroups_.clear();
  host_ = open_file(source_.prefix + "/proc/meminfo");
  const std::optional<Host> host = read_host(host_);
  host_total_ = host ? host->total : 0;
  const SmallFile self(source_.prefix + "/proc/self/cgroup");
  for (const CgroupFiles& files : {kVersion2, kHybrid, kVersion1}) {
    const std::string root = source_.prefix + std::string(files.root);
    for (const std::string& directory : directories(root, path_in(self.text(), files.origin))) {
      Cgroup cgroup{.limit = open_file(directory + std::string(files.limit)),
                    .inactive_key = files.inactive,
                    .origin = files.origin};
      if (!limit_in(cgroup.limit, host_total_)) continue;
      cgroup.usage = open_file(directory + std::string(files.usage));
      cgroup.stat = open_file(directory + "memory.stat");
      if (number_in(cgroup.usage)) cgroups_.push_back(std::move(cgroup));
    }
  }
}

std::optional<MemoryReading> MemoryReader::read_cgroup(Cgroup& cgroup, TimePoint now,
                                                       double watch_from) const {
  const auto limit = limit_in(cgroup.limit, host_total_);
  const auto usage = number_in(cgroup.usage);
  if (!limit || !usage) return std::nullopt;
  const auto used = [&] {
    return *usage > cgroup.inactive_bytes ? *usage - cgroup.inactive_bytes : 0;
  };
  const auto share = [&](std::uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(*limit);
  };
  const auto may_have_reached = [&] {
    const double grown = kGrowthPerSecond * to_seconds(now - *cgroup.stat_read_at);
    return share(*usage) >= watch_from && share(used()) + grown >= watch_from;
  };
  if (!cgroup.stat_read_at || may_have_reached()) {
    const SmallFile stat(cgroup.stat);
    cgroup.inactive_bytes = line_of(stat.text(), cgroup.inactive_key).value_or(0);
    cgroup.stat_read_at = now;
  }
  return MemoryReading{.usage = std::min(share(used()), 1.0),
                       .used_bytes = used(),
                       .limit_bytes = *limit,
                       .smallest_limit_bytes = *limit,
                       .origin = cgroup.origin,
                       .readable = true};
}

MemoryReading MemoryReader::read(TimePoint now, double watch_from) {
  const bool fresh = !opened_at_ || now - *opened_at_ >= kOpenAgainAfter;
  if (fresh) open(now);
  std::optional<MemoryReading> fullest;
  for (Cgroup& cgroup : cgroups_) {
    const std::optional<MemoryReading> reading = read_cgroup(cgroup, now, watch_from);
    if (!reading && !fresh) {  // its limit or the cgroup was removed: search again
      opened_at_.reset();
      return read(now, watch_from);
    }
    merge(fullest, reading);
  }
  if (fullest) return *fullest;
  const std::optional<Host> host = read_host(host_);
  if (!host) return {};
  const std::uint64_t used = host->total - host->available;
  return {.usage = static_cast<double>(used) / static_cast<double>(host->total),
          .used_bytes = used,
          .limit_bytes = host->total,
          .smallest_limit_bytes = 0,
          .origin = MemoryOrigin::kHost,
          .readable = true};
}

MemoryReading read_memory(const MemorySource& source) {
  return MemoryReader(source).read(TimePoint{}, 0);
}

std::uint64_t own_resident_bytes(const MemorySource& source) {
  const SmallFile file(source.prefix + "/proc/self/statm");
  std::string_view text = file.text();  // "size resident shared …", in pages
  text.remove_prefix(std::min(text.find(' '), text.size()));
  const std::uint64_t pages = whole_number(text).value_or(0);
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace weir::inline v0::io
