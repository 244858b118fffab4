#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "line.h"
#include "snapshot.h"
#include "ui_state.h"

/// The pages, one source each. Pure.
namespace weir::app::top {

struct PageInput {
  const Snapshot& snapshot;
  const UiState& ui;
  int cols = 80;
  int rows = 19;  // that the page has; it may have more lines, then it is scrolled
};

[[nodiscard]] Block now_page(const PageInput& input);
[[nodiscard]] Block refusals_page(const PageInput& input);
[[nodiscard]] Block limit_page(const PageInput& input);
[[nodiscard]] Block memory_page(const PageInput& input);
[[nodiscard]] Block events_page(const PageInput& input);
[[nodiscard]] Block help_page(const PageInput& input);

/// Its list is paged by the gateway, so it scrolls itself.
struct ReplicasBody {
  Block lines;
  int scroll_max = 0;
  int page_rows = 1;
};
[[nodiscard]] ReplicasBody replicas_page(const PageInput& input);

// Parts that several pages have.

[[nodiscard]] Style style_of_state(std::string_view state);
/// The last events, newest first, at most `rows` lines of `cols` cells.
[[nodiscard]] Block event_lines(const PageInput& input, int rows, int cols);
/// "title" over the page, in faint letters with a rule.
[[nodiscard]] Line heading(std::string_view title, int cols);

/// One line of a set of charts: its name, its drawing, and the newest value.
struct Track {
  std::string_view name;
  double Second::*value = nullptr;
  double top = 0;  // of the chart; 0: the largest value
  Style style = Style::kPlain;
  std::string (*text)(double) = nullptr;
};
[[nodiscard]] Block track_lines(const PageInput& input, const Track& track, int cols, int height);
/// The largest of one value in the history.
[[nodiscard]] double largest(const Snapshot& snapshot, double Second::*value);
/// "app: 76 s, one cell is 1 s"
[[nodiscard]] std::string chart_title(const PageInput& input, int cols);
/// The upstream that pages speak of: that of the history.
[[nodiscard]] const UpstreamNow* shown_upstream(const Snapshot& snapshot);

}  // namespace weir::app::top
