#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/rng.h"
#include "weir/base/siphash.h"
#include "weir/base/time.h"
#include "weir/experimental/gateway/gateway_config.h"

#include "io/record_file.h"
#include "overload_file.h"
#include "policy/recording.h"

namespace weir::inline v0::gateway {

/// The files of the decision recorder, in one folder:
///
///   running.weirrec              written over and over
///   overload-SECONDS.weirrec     what was recorded from 60 s before an overload to 60 s after its
///                                begin; SECONDS is Unix time
///   ended-SECONDS.weirrec        the running file of a process before this one
///
/// At most files_max of overloads are kept, and kEndedMax of earlier processes, so that a process
/// that is restarted over and over does not remove what was kept of an overload; the oldest is
/// removed. The tags of two files cannot be compared: each file has a key of its own, which is
/// forgotten.
/// When an overload begins, the minute before it is copied at once: a minute later, the running
/// file may have other decisions in its place. What comes after is added while it comes.
/// Promises: whatever the disk does, decisions are lost and counted, and the reason is said once;
/// it is tried again after a minute. A file of an overload is at most twice as large as the running
/// one. Thread-safety: one thread; stats() any.
/// Cost: blocks on the disk; 2 MiB while an overload is copied.
class RecorderFiles {
 public:
  static constexpr std::size_t kEndedMax = 2;
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20U;

  struct Setup {
    RecorderConfig config;
    std::function<policy::RecordingHeader(std::uint64_t capacity)> header;
    std::function<void(const std::string&)> say;
    std::function<std::int64_t()> unix_seconds;
    Rng rng;
  };
  struct Stats {
    std::uint64_t written = 0;
    std::uint64_t lost = 0;
    std::uint64_t frozen = 0;  // files of overloads
    bool failing = false;
  };
  explicit RecorderFiles(Setup setup) : setup_(std::move(setup)) {}

  /// What was recorded since the last call; `lost` was overwritten before it could be copied.
  void write(std::span<const policy::DecisionWords> decisions, std::uint64_t lost, Duration now);
  /// `now` counts as RecordedDecision::at does.
  void watch_overload(bool overloaded, Duration now);

  [[nodiscard]] Stats stats() const noexcept;

 private:
  [[nodiscard]] std::string path(const std::string& name) const;
  [[nodiscard]] bool ready(Duration now);
  [[nodiscard]] Result<void, std::errc> open();
  [[nodiscard]] Result<void, std::errc> put(std::span<const policy::DecisionWords> decisions);
  void failed(std::errc why, Duration now);
  void freeze(Duration begin);
  [[nodiscard]] Result<void, std::errc> copy_running();
  void freeze_failed(std::errc why);
  [[nodiscard]] std::string new_path(std::string_view kind) const;
  void remove_oldest(std::string_view kind, std::size_t most);
  [[nodiscard]] SipKey new_key() noexcept {
    return {.k0 = setup_.rng.next_u64(), .k1 = setup_.rng.next_u64()};
  }

  Setup setup_;
  std::optional<io::RecordFile> file_;
  std::uint64_t first_ = 0;  // offset of the first record
  std::uint64_t places_ = 0;
  std::uint64_t next_ = 0;  // place
  SipKey key_;
  Duration try_again_{};
  bool overloaded_ = false;
  std::optional<Duration> began_;         // an overload whose minute after is not over
  std::optional<OverloadFile> overload_;  // its file
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> frozen_{0};
  std::atomic<bool> failing_{false};
};

}  // namespace weir::inline v0::gateway
