#include "top_screen.h"

#include <algorithm>
#include <array>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "weir/experimental/io/clock.h"

#include "text.h"

namespace weir::app::top {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kStaleAfter = seconds(3);
constexpr Duration kGivenUpAfter = seconds(8);  // of silence
constexpr Duration kAnswerWithin = seconds(5);  // of a new stream
constexpr Duration kFirstDelay = milliseconds(250);
constexpr Duration kLongestDelay = seconds(5);
constexpr Duration kEscapeAlone = milliseconds(40);

int millis_until(TimePoint then, TimePoint now) {
  const auto left = std::chrono::ceil<milliseconds>(then - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
}

}  // namespace

TopScreen::TopScreen(LiveStream& stream, UiState ui, Snapshot snapshot, Manner manner)
    : stream_(stream),
      ui_(std::move(ui)),
      live_(std::move(snapshot)),
      shown_(live_),
      manner_(std::move(manner)),
      writer_(manner_.looks),
      path_(live_path(ui_)) {
  heard_ = opened_ = io::monotonic_now();
}

bool TopScreen::run() {
  if (!terminal_.enter()) return false;
  draw(heard_);
  while (!ui_.quit) {
    wait();
    const TimePoint now = io::monotonic_now();
    look_after_stream(now);
    // Once a second without a reason: ages and the banner go on.
    if (changed_ || now - drawn_at_ >= seconds(1)) draw(now);
  }
  terminal_.leave();
  return true;
}

void TopScreen::wait() {
  const TimePoint now = io::monotonic_now();
  int timeout = millis_until(drawn_at_ + seconds(1), now);
  if (!stream_.is_open()) timeout = std::min(timeout, millis_until(again_at_, now));
  if (keys_.is_waiting()) timeout = std::min(timeout, millis_until(now + kEscapeAlone, now));
  std::array<pollfd, 3> fds = {
      pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
      pollfd{.fd = terminal_.signal_fd(), .events = POLLIN, .revents = 0},
      pollfd{
          .fd = stream_.is_open() ? stream_.fd() : -1, .events = stream_.events(), .revents = 0}};
  const int ready = ::poll(fds.data(), fds.size(), timeout);
  if (ready == 0 && keys_.is_waiting()) on_keys(keys_.flush());
  if (ready <= 0) return;
  if (fds[0].revents != 0) read_keys();
  if (fds[1].revents != 0) read_signals();
  if (fds[2].revents != 0) {
    stream_.on_ready([this](const SseEvent& event) { on_event(event); });
  }
}

void TopScreen::read_keys() {
  std::array<char, 256> bytes;
  const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (got <= 0) {
    ui_.quit = true;  // poll() said that there is something: the terminal is gone
    return;
  }
  on_keys(keys_.feed({bytes.data(), static_cast<std::size_t>(got)}));
}

void TopScreen::on_keys(const std::vector<Key>& keys) {
  for (const Key& key : keys) {
    const bool was_paused = ui_.paused;
    ui_ = on_key(std::move(ui_), key, live_);
    if (was_paused && !ui_.paused) shown_ = live_;
    if (std::exchange(ui_.suspend, false)) {
      terminal_.suspend();
      writer_.forget();
    }
    if (std::exchange(ui_.redraw, false)) writer_.forget();
    changed_ = true;
  }
  go_on_with_drain();
  if (live_path(ui_) != path_) reopen(io::monotonic_now());
}

/// The gateway is asked at once: nothing else is drawn until it has answered.
void TopScreen::go_on_with_drain() {
  DrainWish& wish = ui_.drain;
  if (wish.step == DrainStep::kAsked) {
    const auto outcome = manner_.drain(wish, true);
    if (outcome) {
      wish.outcome = clean(*outcome);
      wish.step = DrainStep::kOffered;
      return;
    }
    ui_.note = "not possible: " + clean(outcome.error());
  } else if (wish.step == DrainStep::kAgreed) {
    const auto outcome = manner_.drain(wish, false);
    ui_.note = outcome ? wish.endpoint + " drains: " + clean(*outcome)
                       : "not drained: " + clean(outcome.error());
  } else {
    return;
  }
  wish = {};
}

void TopScreen::read_signals() {
  for (;;) {
    switch (terminal_.next_signal()) {
      case Terminal::Signal::kNone:
        return;
      case Terminal::Signal::kResized:
        changed_ = true;
        break;
      case Terminal::Signal::kEnd:
        ui_.quit = true;
        break;
    }
  }
}

void TopScreen::on_event(const SseEvent& event) {
  if (!apply_message(live_, event.name, event.data)) return;
  heard_ = io::monotonic_now();
  trouble_.clear();
  failures_ = 0;
  if (event.name != "tick") return;
  const bool due = --ticks_left_ <= 0 && !ui_.paused;
  if (!due && !std::exchange(fresh_path_, false)) return;
  fresh_path_ = false;
  ticks_left_ = manner_.interval_s;
  shown_ = live_;
  changed_ = true;
}

void TopScreen::look_after_stream(TimePoint now) {
  if (stream_.is_open()) {
    const bool answered = heard_ >= opened_;
    if (answered && now - heard_ > kGivenUpAfter) stream_.end("it is silent");
    if (!answered && now - opened_ > kAnswerWithin) stream_.end("no answer within 5 s");
    if (stream_.is_open()) return;
    again_at_ = TimePoint{};
  }
  if (trouble_.empty() || again_at_ == TimePoint{}) on_lost(now);
  if (now >= again_at_) reopen(now);
}

/// Says when the next attempt is made.
void TopScreen::on_lost(TimePoint now) {
  trouble_ = stream_.trouble();
  changed_ = true;
  if (stream_.status() == 400 && !ui_.upstream.empty()) {
    ui_.note = "there is no upstream " + ui_.upstream + " any more: this is the worst one";
    ui_.upstream.clear();
    again_at_ = now;
    return;
  }
  const int doublings = std::min(failures_++, 5);
  const Duration delay = std::min(kLongestDelay, kFirstDelay * (1 << doublings));
  again_at_ = now + std::max<Duration>(delay, seconds(std::min(60, stream_.retry_after_s())));
}

void TopScreen::reopen(TimePoint now) {
  path_ = live_path(ui_);
  fresh_path_ = true;
  opened_ = now;
  again_at_ = TimePoint{};
  changed_ = true;
  stream_.open(path_);
}

void TopScreen::draw(TimePoint now) {
  const ScreenSize size = screen_size();
  const bool stale = !trouble_.empty() || now - heard_ > kStaleAfter;
  const Link link{.address = manner_.address,
                  .stale = stale,
                  .silent_s = to_seconds(now - heard_),
                  .trouble = trouble_,
                  .again_in_s = stream_.is_open() ? 0 : to_seconds(again_at_ - now)};
  const Frame frame = render(shown_, ui_, link, size);
  ui_.scroll_max = frame.scroll_max;
  ui_.page_rows = frame.page_rows;
  ui_.scroll = std::clamp(ui_.scroll, 0, frame.scroll_max);
  changed_ = false;
  drawn_at_ = now;
  const std::string bytes = writer_.changes(frame, size);
  // Synchronised update: a terminal that knows it shows the frame at once.
  if (!bytes.empty() && !terminal_.write("\x1b[?2026h" + bytes + "\x1b[?2026l")) ui_.quit = true;
}

}  // namespace weir::app::top
