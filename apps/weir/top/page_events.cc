#include "pages.h"
#include "text.h"

namespace weir::app::top {

Block events_page(const PageInput& input) {
  Block out = {heading("how long ago, newest first", input.cols)};
  append(out, event_lines(input, static_cast<int>(kEventsMax), input.cols));
  return out;
}

Block help_page(const PageInput& input) {
  struct Entry {
    std::string_view keys;
    std::string_view what;
  };
  constexpr Entry kEntries[] = {
      {"1 to 6, tab", "the pages: now, refusals, limit, replicas, memory, events"},
      {"arrows, PgUp, PgDn", "move; also j and k, Home and End"},
      {"u", "the charts of the next upstream"},
      {"s", "sort by: worst, name, p99, in flight (Now and Replicas)"},
      {"/", "show only names with these letters; Enter takes them, Esc shows all again"},
      {"b", "show only what is bad"},
      {"z", "charts of the whole quarter of an hour, or of the last seconds"},
      {"p, space", "stand still; the gateway's messages are taken meanwhile"},
      {"d", "drain the chosen replica for a time, after a question (Replicas)"},
      {"Ctrl-L, Ctrl-Z", "draw everything again; suspend"},
      {"q, Ctrl-C", "end"},
  };
  Block out = {heading("keys", input.cols)};
  for (const Entry& entry : kEntries) {
    Line line;
    line.add(padded(entry.keys, 20), Style::kStrong).add(entry.what);
    out.push_back(line.fitted(input.cols));
  }
  const std::string_view more[] = {
      "",
      "The first line is the verdict of the gateway on the upstream that is worst off, and",
      "since when; the second says what to do. offered = asked for a place, admitted = got",
      "one, refused = answered at once with a reason; limit = how many may be in flight.",
      "baseline = the latency without a queue; demand = in flight + waiting + what the",
      "refused ones would have had in flight.",
  };
  for (const std::string_view line : more) out.push_back(Line(line).fitted(input.cols));
  return out;
}

}  // namespace weir::app::top
