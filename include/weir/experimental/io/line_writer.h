#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/base/result.h"

namespace weir::inline v0::io {

/// Writes lines to a file on its own thread, so that a slow disk or a full pipe never blocks the
/// caller.
///
/// Promises: a line is written whole and in order, or dropped whole and counted. Lines accepted
/// before stop() are written, unless the reader of a pipe reads nothing for a second. Lines are
/// collected for about 20 ms. If the disk is full or the reader closed the pipe, lines are lost,
/// but the process continues.
/// Thread-safety: write(), reopen() and stats() from any thread.
/// Cost: a mutex pair and a copy per line; twice buffer_bytes of memory, all taken at start.
class LineWriter {
 public:
  struct Options {
    std::string path = "-";  // "-": standard output; "!": standard error
    std::size_t buffer_bytes = std::size_t{256} * 1024;
  };
  struct Stats {
    std::uint64_t written = 0;  // lines accepted and not lost later
    std::uint64_t dropped = 0;
  };

  /// Appends to the file; creates it with mode 0640 if it does not exist. A FIFO needs a reader.
  [[nodiscard]] static Result<std::unique_ptr<LineWriter>, std::errc> open(const Options& options);
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;
  ~LineWriter();

  /// Writes a line, given without its newline. False: the buffer is full and the line is dropped.
  bool write(std::string_view line) noexcept;
  /// Opens the path again, for every line that is not written yet, after a log file was moved away.
  /// If that fails, lines are written to the old file.
  Result<void, std::errc> reopen() noexcept;
  void stop() noexcept;
  [[nodiscard]] Stats stats() const noexcept;

 private:
  struct Impl;
  explicit LineWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::inline v0::io
