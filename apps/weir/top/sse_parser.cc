#include "sse_parser.h"

#include <utility>

namespace weir::app::top {

bool SseParser::feed(std::string_view bytes, const std::function<void(SseEvent)>& on_event) {
  while (!bytes.empty()) {
    if (after_cr_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_cr_ = false;
    const std::size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    if (line_.size() + event_.data.size() > kMessageMax) return false;
    if (end == std::string_view::npos) return true;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    std::string_view line = line_;
    if (std::exchange(at_start_, false) && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    take_line(line, on_event);
    line_.clear();
  }
  return true;
}

void SseParser::take_line(std::string_view line, const std::function<void(SseEvent)>& on_event) {
  if (line.empty()) {
    if (has_data_) on_event(event_);
    event_ = SseEvent{.name = "message", .id = std::move(event_.id), .data = {}};
    has_data_ = false;
    return;
  }
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") {
    event_.name = value;
  } else if (field == "id") {
    event_.id = value;
  } else if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  }
}

}  // namespace weir::app::top
