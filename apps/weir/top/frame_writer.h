#pragma once

#include <string>
#include <string_view>

#include "line.h"
#include "render.h"

namespace weir::app::top {

struct Looks {
  bool colour = true;  // false: NO_COLOR; bold and reverse stay
  bool utf8 = true;
};

inline constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J\x1b[H";
inline constexpr std::string_view kLeaveScreen = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Turns frames into what a terminal is sent: only lines that changed, each wholly, so that nothing
/// of an old line stays. Thread-safety: none.
class FrameWriter {
 public:
  explicit FrameWriter(Looks looks) : looks_(looks) {}

  /// Empty if nothing changed.
  [[nodiscard]] std::string changes(const Frame& frame, ScreenSize size);
  /// The next frame is sent wholly, over an empty screen.
  void forget() { shown_.clear(), size_ = {0, 0}; }

 private:
  Looks looks_;
  Block shown_;
  ScreenSize size_{0, 0};
};

/// `line` with escape sequences for its styles, ending in none.
[[nodiscard]] std::string styled(const Line& line, Looks looks);

/// `frame` as plain text without any escape sequence, or styled; blank lines at its end are left
/// out.
[[nodiscard]] std::string as_text(const Frame& frame, Looks looks, bool with_styles);

}  // namespace weir::app::top
