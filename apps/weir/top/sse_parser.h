#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace weir::app::top {

/// One event of a text/event-stream.
struct SseEvent {
  std::string name = "message";
  std::string id;    // the last one that was sent, also by an earlier event
  std::string data;  // several lines are joined by '\n'
};

/// Splits a text/event-stream into events, however its bytes are cut. Keeps at most kMessageMax
/// bytes; longer is no stream of ours. Thread-safety: none.
class SseParser {
 public:
  static constexpr std::size_t kMessageMax = std::size_t{4} * 1024 * 1024;

  /// False: a message is too long; nothing more can be read from this stream.
  [[nodiscard]] bool feed(std::string_view bytes, const std::function<void(SseEvent)>& on_event);

 private:
  void take_line(std::string_view line, const std::function<void(SseEvent)>& on_event);

  std::string line_;       // begun, not ended
  bool after_cr_ = false;  // "\r\n" is one end of a line
  bool at_start_ = true;   // a byte order mark may stand there
  bool has_data_ = false;
  SseEvent event_;
};

}  // namespace weir::app::top
