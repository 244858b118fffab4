#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "key_reader.h"
#include "snapshot.h"

/// What the user has chosen, and how keys change it. Pure; thread-safety: plain data.
namespace weir::app::top {

enum class Page : std::uint8_t { kNow, kRefusals, kLimit, kReplicas, kMemory, kEvents };
inline constexpr std::size_t kPageCount = 6;
struct PageFacts {
  std::string_view title;
  std::string_view name;  // of --page
  std::string_view view;  // of the stream
};
inline constexpr std::array<PageFacts, kPageCount> kPages = {{{"Now", "now", "now"},
                                                              {"Refusals", "refusals", "refusals"},
                                                              {"Limit", "limit", "limit"},
                                                              {"Replicas", "replicas", "replicas"},
                                                              {"Memory", "memory", "memory"},
                                                              {"Events", "events", "now"}}};
[[nodiscard]] constexpr const PageFacts& facts_of(Page page) noexcept {
  return kPages[static_cast<std::size_t>(page)];
}

inline constexpr std::array<std::string_view, 4> kSorts = {"worst", "name", "p99", "in_flight"};
inline constexpr int kReplicaRows = 100;  // that are asked for at once

/// A drain is asked for, offered with what it would do, and agreed to: nothing less does it.
enum class DrainStep : std::uint8_t { kNone, kAsked, kOffered, kAgreed };
struct DrainWish {
  DrainStep step = DrainStep::kNone;
  std::string upstream;
  std::string endpoint;
  std::string outcome;  // what it would do, in the gateway's words

  bool operator==(const DrainWish&) const = default;
};

struct UiState {
  Page page = Page::kNow;
  std::string upstream;  // empty: the one with the worst verdict
  std::size_t sort = 0;  // of kSorts
  std::string filter;
  bool only_bad = false;
  bool whole = false;  // charts show the whole quarter of an hour
  bool paused = false;
  bool help = false;
  bool typing = false;  // the filter
  std::string typed;
  int scroll = 0;           // lines of the page, or the chosen replica
  int replicas_from = 0;    // where the list that is asked for begins
  bool read_only = false;   // no actions are offered
  bool has_token = false;   // for a gateway whose actions need one
  bool has_socket = false;  // actions are asked for over a Unix socket
  DrainWish drain;
  bool quit = false;
  bool suspend = false;
  bool redraw = false;
  std::string note;  // one sentence about the last key, until the next one

  // What the last frame said, for keys that move.
  int scroll_max = 0;
  int page_rows = 1;

  bool operator==(const UiState&) const = default;
};

[[nodiscard]] UiState on_key(UiState state, const Key& key, const Snapshot& snapshot);

/// Whether the gateway takes actions, from here, and the user wants to be offered any.
[[nodiscard]] bool offers_actions(const UiState& state, const Snapshot& snapshot);

/// `state` with the list of replicas asked for around the chosen one.
[[nodiscard]] UiState with_window(UiState state);

/// The path of the stream that shows `state`: another path, another request.
[[nodiscard]] std::string live_path(const UiState& state);

/// Whether `name` is shown under the filter of `state`: letters of either case.
[[nodiscard]] bool passes_filter(const UiState& state, std::string_view name);

}  // namespace weir::app::top
