#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::inline v0::io {

/// Where a memory figure came from.
enum class MemoryOrigin : std::uint8_t { kNone, kCgroup2, kCgroup1, kHost };
inline constexpr std::array<std::string_view, 4> kMemoryOriginNames = {"none", "cgroup2", "cgroup1",
                                                                       "host"};
[[nodiscard]] constexpr std::string_view name_of(MemoryOrigin origin) noexcept {
  return kMemoryOriginNames[static_cast<std::size_t>(origin)];
}

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
/// Promises: never throws; any content of those files gives a reading or `readable` = false.
/// Thread-safety: any thread. Cost: a few files, some 10 µs; meant for a 500 ms poll, not for
/// requests.
[[nodiscard]] MemoryReading read_memory(const MemorySource& source = {});

}  // namespace weir::inline v0::io
