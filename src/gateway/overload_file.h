#pragma once

#include <cstdint>
#include <string>
#include <system_error>

#include "weir/base/result.h"
#include "weir/base/siphash.h"
#include "weir/base/time.h"

#include "io/record_file.h"
#include "policy/recording.h"

namespace weir::inline v0::gateway {

/// A file of the decisions around the begin of one overload, written while they come.
///
/// Promises: it can be read at any time, also after the process was killed: the header is there
/// first, then whole records. It holds at most records_max. Thread-safety: one thread.
/// Cost: 40 bytes per decision; blocks on the disk about once per MiB and at each flush().
class OverloadFile {
 public:
  static constexpr Duration kAround = std::chrono::seconds(60);

  struct Setup {
    std::string path;
    policy::RecordingHeader header;
    SipKey key;      // of the tags in this file
    Duration begin;  // of the overload, as RecordedDecision::at counts
    std::uint64_t records_max = 0;
  };
  [[nodiscard]] static Result<OverloadFile, std::errc> create(Setup setup);

  /// Takes it if it ended within kAround of the begin and there is room.
  [[nodiscard]] Result<void, std::errc> take(const policy::RecordedDecision& decision);
  /// Writes what was taken.
  [[nodiscard]] Result<void, std::errc> flush();
  /// Writes how many records there are into the header.
  [[nodiscard]] Result<void, std::errc> finish();

 private:
  OverloadFile(Setup setup, io::RecordFile file, std::uint64_t offset)
      : setup_(std::move(setup)), file_(std::move(file)), offset_(offset) {}

  Setup setup_;
  io::RecordFile file_;
  std::uint64_t offset_;  // where the next record is written
  std::uint64_t records_ = 0;
  std::string bytes_;  // taken and not written
};

}  // namespace weir::inline v0::gateway
