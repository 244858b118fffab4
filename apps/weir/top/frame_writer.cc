#include "frame_writer.h"

#include <algorithm>

namespace weir::app::top {
namespace {

std::string_view sequence_of(Style style, bool colour) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kStrong:
      return "\x1b[1m";
    case Style::kFaint:
      return "\x1b[2m";
    case Style::kGood:
      return colour ? "\x1b[32m" : "";
    case Style::kWarn:
      return colour ? "\x1b[33m" : "\x1b[1m";
    case Style::kBad:
      return colour ? "\x1b[1;31m" : "\x1b[1m";
    case Style::kMarked:
      return "\x1b[7m";
  }
  return "";
}

Line in_charset(const Line& line, Looks looks) {
  return looks.utf8 ? line : line.in_ascii();
}

}  // namespace

std::string styled(const Line& line, Looks looks) {
  std::string out;
  for (const Span& span : line.spans()) {
    const std::string_view sequence = sequence_of(span.style, looks.colour);
    out += sequence;
    out += span.text;
    if (!sequence.empty()) out += "\x1b[0m";
  }
  return out;
}

std::string FrameWriter::changes(const Frame& frame, ScreenSize size) {
  std::string out;
  if (size != size_) {
    out += "\x1b[0m\x1b[2J";
    shown_.clear();
    size_ = size;
  }
  shown_.resize(frame.lines.size());
  for (std::size_t i = 0; i < frame.lines.size(); ++i) {
    const Line line = in_charset(frame.lines[i], looks_);
    if (line == shown_[i]) continue;
    out += "\x1b[" + std::to_string(i + 1) + ";1H" + styled(line, looks_);
    // Behind a full line this would take its last sign.
    if (line.width() < size.cols) out += "\x1b[K";
    shown_[i] = line;
  }
  return out;
}

std::string as_text(const Frame& frame, Looks looks, bool with_styles) {
  std::string out;
  std::size_t rows = frame.lines.size();
  while (rows > 0 && frame.lines[rows - 1].width() == 0) --rows;
  for (std::size_t i = 0; i < rows; ++i) {
    const Line line = in_charset(frame.lines[i], looks);
    std::string text = with_styles ? styled(line, looks) : line.plain();
    if (!with_styles) text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  return out;
}

}  // namespace weir::app::top
