#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/enum_names.h"
#include "weir/base/time.h"
#include "weir/experimental/io/fd.h"

namespace weir::inline v0::io {

/// Where a memory figure came from.
enum class MemoryOrigin : std::uint8_t { kNone, kCgroup2, kCgroup1, kHost };
WEIR_ENUM_NAMES(MemoryOrigin, "none", "cgroup2", "cgroup1", "host")

/// Where to read. The prefix is put before /proc and /sys, so that tests can use a fake tree.
struct MemorySource {
  std::string prefix;  // "" on a real system
};

/// How much of the available memory is in use, counted as the kernel's OOM killer counts it.
struct MemoryReading {
  double usage = 0;  // used / limit, in [0, 1]; 0 when unreadable
  std::uint64_t used_bytes = 0;
  std::uint64_t limit_bytes = 0;
  std::uint64_t smallest_limit_bytes = 0;  // of its cgroup and the ancestors; 0 if none has a limit
  MemoryOrigin origin = MemoryOrigin::kNone;
  bool readable = false;  // false: nothing could be read; the caller reports it once

  bool operator==(const MemoryReading&) const = default;
};

/// The usage of the fullest cgroup with a limit, among this process's cgroup and its ancestors (v2,
/// then v1): the working set, that is usage minus inactive file pages, divided by the limit.
/// Without any limit, the host's (MemTotal - MemAvailable) / MemTotal.
///
/// Made for polling. The files stay open. memory.stat, which is slow and only tells how much of the
/// usage is inactive file pages, is read only when that can matter: when the usage is at
/// `watch_from` or above, and the working set could have grown to it since memory.stat was last
/// read, by a tenth of the limit per second. Every ten seconds the cgroups are searched again,
/// because limits change and processes move.
///
/// Promises: never throws; any content of those files gives a reading or `readable` = false.
/// Thread-safety: one thread at a time. Cost: about 1 µs per file, three or four files per cgroup
/// with a limit; below 10 µs on average (docs/reference/figures.md).
class MemoryReader {
 public:
  explicit MemoryReader(MemorySource source = {}) : source_(std::move(source)) {}

  /// `watch_from`: from this usage on, the reading must be exact; 0: always.
  [[nodiscard]] MemoryReading read(TimePoint now, double watch_from);

 private:
  struct Cgroup {
    Fd limit{};
    Fd usage{};
    Fd stat{};
    std::string_view inactive_key;  // line of memory.stat
    MemoryOrigin origin = MemoryOrigin::kNone;
    std::uint64_t inactive_bytes = 0;
    std::optional<TimePoint> stat_read_at{};
  };

  void open(TimePoint now);
  [[nodiscard]] std::optional<MemoryReading> read_cgroup(Cgroup& cgroup, TimePoint now,
                                                         double watch_from) const;

  MemorySource source_;
  std::optional<TimePoint> opened_at_;
  std::uint64_t host_total_ = 0;  // 0: unknown
  Fd host_;
  std::vector<Cgroup> cgroups_;  // with a limit
};

/// What this process has in memory; 0: it cannot be read.
[[nodiscard]] std::uint64_t own_resident_bytes(const MemorySource& source = {});

/// One exact reading; keeps no file open.
[[nodiscard]] MemoryReading read_memory(const MemorySource& source = {});

}  // namespace weir::inline v0::io
