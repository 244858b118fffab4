#include "ui_state.h"

#include <algorithm>
#include <utility>

#include "text.h"

namespace weir::app::top {
namespace {

constexpr std::size_t kFilterMax = 64;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string encoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
    }
  }
  return out;
}

UiState to_page(UiState state, std::size_t page) {
  state.page = static_cast<Page>(page % kPageCount);
  state.scroll = 0;
  state.replicas_from = 0;
  state.help = false;
  return state;
}

UiState moved(UiState state, int by) {
  state.scroll = std::clamp(state.scroll + by, 0, std::max(0, state.scroll_max));
  return state;
}

UiState next_upstream(UiState state, const Snapshot& snapshot) {
  if (snapshot.upstreams.size() < 2) {
    state.note = "there is one upstream only";
    return state;
  }
  const std::string& shown = state.upstream.empty() ? snapshot.upstream : state.upstream;
  const auto at = std::find(snapshot.upstreams.begin(), snapshot.upstreams.end(), shown);
  const auto index = static_cast<std::size_t>(at - snapshot.upstreams.begin());
  state.upstream = snapshot.upstreams[index + 1 < snapshot.upstreams.size() ? index + 1 : 0];
  state.scroll = 0;
  state.replicas_from = 0;
  return state;
}

/// Empty: actions can be asked for.
std::string why_no_actions(const UiState& state, const Snapshot& snapshot) {
  if (state.read_only) return "--read-only: no actions";
  if (snapshot.actions == "token") {
    return state.has_token ? "" : "actions need the token: weir top --token-file FILE";
  }
  if (snapshot.actions == "socket") {
    return state.has_socket ? "" : "actions need the gateway's socket: weir top --admin unix:PATH";
  }
  return "this gateway takes no actions: set admin.actions in its configuration";
}

UiState ask_for_drain(UiState state, const Snapshot& snapshot) {
  const int at = state.scroll - static_cast<int>(snapshot.replicas.from);
  if (std::string why = why_no_actions(state, snapshot); !why.empty()) {
    state.note = std::move(why);
  } else if (state.page != Page::kReplicas) {
    state.note = "d drains the replica that is chosen on page 4";
  } else if (at >= 0 && at < static_cast<int>(snapshot.replicas.order.size())) {
    const auto found =
        snapshot.replicas.known.find(snapshot.replicas.order[static_cast<std::size_t>(at)]);
    if (found == snapshot.replicas.known.end()) return state;
    state.drain = {.step = DrainStep::kAsked,
                   .upstream = snapshot.upstream,
                   .endpoint = found->second.endpoint,
                   .outcome = {}};
  }
  return state;
}

UiState on_answer(UiState state, const Key& key) {
  if (key.kind == KeyKind::kPoint && key.point == 'y') {
    state.drain.step = DrainStep::kAgreed;
  } else {
    state.drain = {};
    state.note = "nothing was drained";
  }
  return state;
}

UiState on_typed(UiState state, const Key& key) {
  switch (key.kind) {
    case KeyKind::kEnter:
      state.typing = false;
      state.filter = state.typed;
      state.scroll = 0;
      state.replicas_from = 0;
      break;
    case KeyKind::kEscape:
      state.typing = false;
      break;
    case KeyKind::kBackspace:
      while (!state.typed.empty() &&
             (static_cast<unsigned char>(state.typed.back()) & 0xC0U) == 0x80)
        state.typed.pop_back();
      if (!state.typed.empty()) state.typed.pop_back();
      break;
    case KeyKind::kPoint: {
      std::string one;
      append_point(one, key.point);
      if (state.typed.size() + one.size() <= kFilterMax) state.typed += clean(one);
      break;
    }
    default:
      break;
  }
  return state;
}

UiState on_letter(UiState state, char32_t letter, const Snapshot& snapshot) {
  if (letter >= '1' && letter < static_cast<char32_t>('1' + kPageCount)) {
    return to_page(std::move(state), letter - '1');
  }
  switch (letter) {
    case 'q':
      state.quit = true;
      return state;
    case '?':
    case 'h':
      state.help = !state.help;
      state.scroll = 0;
      return state;
    case 's':
      state.sort = (state.sort + 1) % kSorts.size();
      state.scroll = 0;
      state.replicas_from = 0;
      return state;
    case '/':
      state.typing = true;
      state.typed = state.filter;
      return state;
    case 'b':
      state.only_bad = !state.only_bad;
      state.scroll = 0;
      state.replicas_from = 0;
      return state;
    case 'u':
      return next_upstream(std::move(state), snapshot);
    case 'p':
    case ' ':
      state.paused = !state.paused;
      return state;
    case 'z':
      state.whole = !state.whole;
      return state;
    case 'd':
      return ask_for_drain(std::move(state), snapshot);
    case 'j':
      return moved(std::move(state), 1);
    case 'k':
      return moved(std::move(state), -1);
    default:
      return state;
  }
}

UiState on_named_key(UiState state, const Key& key) {
  const auto page = static_cast<std::size_t>(state.page);
  switch (key.kind) {
    case KeyKind::kTab:
    case KeyKind::kRight:
      return to_page(std::move(state), page + 1);
    case KeyKind::kBackTab:
    case KeyKind::kLeft:
      return to_page(std::move(state), page + kPageCount - 1);
    case KeyKind::kUp:
      return moved(std::move(state), -1);
    case KeyKind::kDown:
      return moved(std::move(state), 1);
    case KeyKind::kPageUp:
      return moved(std::move(state), -std::max(1, state.page_rows - 1));
    case KeyKind::kPageDown:
      return moved(std::move(state), std::max(1, state.page_rows - 1));
    case KeyKind::kHome:
      return moved(std::move(state), -state.scroll);
    case KeyKind::kEnd:
      return moved(std::move(state), state.scroll_max);
    case KeyKind::kEscape:
      state.help = false;
      if (!state.filter.empty()) state.scroll = state.replicas_from = 0;
      state.filter.clear();
      return state;
    case KeyKind::kSuspend:
      state.suspend = true;
      return state;
    case KeyKind::kRedraw:
      state.redraw = true;
      return state;
    default:
      return state;
  }
}

}  // namespace

UiState on_key(UiState state, const Key& key, const Snapshot& snapshot) {
  state.note.clear();
  if (key.kind == KeyKind::kInterrupt) {
    state.quit = true;
  } else if (state.drain.step == DrainStep::kOffered) {
    state = on_answer(std::move(state), key);
  } else if (state.typing) {
    state = on_typed(std::move(state), key);
  } else if (key.kind == KeyKind::kPoint) {
    state = on_letter(std::move(state), key.point, snapshot);
  } else {
    state = on_named_key(std::move(state), key);
  }
  return with_window(std::move(state));
}

bool offers_actions(const UiState& state, const Snapshot& snapshot) {
  return why_no_actions(state, snapshot).empty();
}

UiState with_window(UiState state) {
  if (state.page != Page::kReplicas || state.help) return state;
  // The chosen one stands in the middle of the screen: half a screen on both sides must be there.
  const int half = std::clamp(state.page_rows, 1, kReplicaRows - 4) / 2 + 1;
  const bool above = state.scroll - half < state.replicas_from && state.replicas_from > 0;
  const bool below = state.scroll + half >= state.replicas_from + kReplicaRows &&
                     state.replicas_from + kReplicaRows <= state.scroll_max;
  if (above || below) state.replicas_from = std::max(0, state.scroll - kReplicaRows / 2);
  return state;
}

std::string live_path(const UiState& state) {
  std::string path = "/live?view=" + std::string(facts_of(state.page).view);
  if (!state.upstream.empty()) path += "&upstream=" + encoded(state.upstream);
  if (state.page != Page::kReplicas) return path;
  path += "&sort=" + std::string(kSorts[state.sort]);
  if (!state.filter.empty()) path += "&filter=" + encoded(state.filter);
  if (state.only_bad) path += "&bad=1";
  path += "&from=" + std::to_string(state.replicas_from);
  return path + "&rows=" + std::to_string(kReplicaRows);
}

bool passes_filter(const UiState& state, std::string_view name) {
  const std::string_view part = state.filter;
  return std::search(name.begin(), name.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != name.end() ||
         part.empty();
}

}  // namespace weir::app::top
