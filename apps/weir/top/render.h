#pragma once

#include <string>

#include "line.h"
#include "snapshot.h"
#include "ui_state.h"

namespace weir::app::top {

struct ScreenSize {
  int cols = 80;
  int rows = 24;

  bool operator==(const ScreenSize&) const = default;
};

/// How the stream is doing.
struct Link {
  std::string address;
  bool stale = false;     // what is shown is old: `trouble` says why
  double silent_s = 0;    // since the last message
  std::string trouble;    // "connection refused", …
  double again_in_s = 0;  // until the next attempt; 0: it is being made
  bool once = false;      // a single frame: no keys are offered
};

struct Frame {
  Block lines;         // exactly `rows`, each at most `cols` cells
  int scroll_max = 0;  // of UiState
  int page_rows = 1;
};

/// The screen. Pure: the same arguments give the same frame. Cost: a few ten microseconds.
[[nodiscard]] Frame render(const Snapshot& snapshot, const UiState& ui, const Link& link,
                           ScreenSize size);

}  // namespace weir::app::top
