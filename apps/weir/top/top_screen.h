#pragma once

#include <functional>
#include <string>

#include "weir/base/result.h"
#include "weir/base/time.h"

#include "frame_writer.h"
#include "key_reader.h"
#include "live_stream.h"
#include "render.h"
#include "snapshot.h"
#include "terminal.h"
#include "ui_state.h"

namespace weir::app::top {

/// `weir top` on a terminal: reads keys and the stream, and draws what changed.
///
/// A stream that ends or is silent is opened again, ever later, at most every five seconds; what is
/// shown meanwhile is marked as old. Thread-safety: none.
class TopScreen {
 public:
  struct Manner {
    std::string address;  // for messages
    Looks looks;
    int interval_s = 1;  // between two drawings
    /// Asks the gateway to drain; with `dry_run`, what that would do. Its answer, or why not.
    std::function<Result<std::string, std::string>(const DrainWish& wish, bool dry_run)> drain;
  };
  /// `stream` has been opened for `ui`; `snapshot` is what it has said.
  TopScreen(LiveStream& stream, UiState ui, Snapshot snapshot, Manner manner);

  /// Until the user ends it. False: there is no terminal.
  [[nodiscard]] bool run();

 private:
  void wait();
  void read_keys();
  void on_keys(const std::vector<Key>& keys);
  void on_event(const SseEvent& event);
  void go_on_with_drain();
  void read_signals();
  void look_after_stream(TimePoint now);
  void on_lost(TimePoint now);
  void reopen(TimePoint now);
  void draw(TimePoint now);

  LiveStream& stream_;
  UiState ui_;
  Snapshot live_;   // as the gateway says it
  Snapshot shown_;  // stands still while paused, and between two drawings
  Manner manner_;
  Terminal terminal_;
  FrameWriter writer_;
  KeyReader keys_;
  std::string path_;
  std::string trouble_;  // of the last attempt; empty since a message has come
  TimePoint heard_{};
  TimePoint opened_{};
  TimePoint again_at_{};
  TimePoint drawn_at_{};
  int failures_ = 0;
  int ticks_left_ = 0;       // until shown_ is taken
  bool fresh_path_ = false;  // the first tick of another page is shown at once
  bool changed_ = true;
};

}  // namespace weir::app::top
