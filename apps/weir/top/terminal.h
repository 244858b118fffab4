#pragma once

#include <string>
#include <string_view>

#include "weir/experimental/io/fd.h"

#include "render.h"

namespace weir::app::top {

/// The terminal as a screen: keys come one by one, the alternate screen is shown, the cursor is
/// not.
///
/// Promises: the terminal is as before when this ends, also by SIGINT, SIGTERM, SIGHUP and by an
/// abort. One object per process. Thread-safety: none.
class Terminal {
 public:
  Terminal() = default;
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// False: standard input or output is no terminal.
  [[nodiscard]] bool enter();
  void leave();
  /// Gives the terminal back to the shell until it continues this process.
  void suspend();

  /// In one write, as far as the terminal takes it. False: it is gone.
  [[nodiscard]] bool write(std::string_view bytes) const;

  enum class Signal { kNone, kResized, kEnd };
  /// Readable when a signal has come.
  [[nodiscard]] int signal_fd() const noexcept { return signals_.get(); }
  [[nodiscard]] Signal next_signal() const;

 private:
  io::Fd signals_;
  bool entered_ = false;
};

/// The size of the terminal behind standard output, else COLUMNS and LINES, else 80 × 24.
[[nodiscard]] ScreenSize screen_size();

/// Whether the locale of the environment says UTF-8.
[[nodiscard]] bool is_utf8_locale();

}  // namespace weir::app::top
