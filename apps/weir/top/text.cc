#include "text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::app::top {
namespace {

constexpr char32_t kBroken = 0xFFFD;

struct Range {
  char32_t first;
  char32_t last;
};

// Two cells wide in terminals: East Asian wide and fullwidth, and pictures.
constexpr std::array kWide = {
    Range{0x1100, 0x115F},   Range{0x231A, 0x231B},   Range{0x2E80, 0x303E},
    Range{0x3041, 0x33FF},   Range{0x3400, 0x4DBF},   Range{0x4E00, 0x9FFF},
    Range{0xA000, 0xA4CF},   Range{0xA960, 0xA97C},   Range{0xAC00, 0xD7A3},
    Range{0xF900, 0xFAFF},   Range{0xFE30, 0xFE6F},   Range{0xFF01, 0xFF60},
    Range{0xFFE0, 0xFFE6},   Range{0x16FE0, 0x18CFF}, Range{0x1B000, 0x1B2FF},
    Range{0x1F200, 0x1F2FF}, Range{0x1F300, 0x1F64F}, Range{0x1F680, 0x1F6FF},
    Range{0x1F900, 0x1FAFF}, Range{0x20000, 0x3FFFD},
};

// No cell of their own, or they change what stands around them: a name has no use for them here.
constexpr std::array kNoCell = {
    Range{0x0000, 0x001F},   Range{0x007F, 0x009F},   Range{0x00AD, 0x00AD},
    Range{0x0300, 0x036F},   Range{0x0483, 0x0489},   Range{0x0591, 0x05BD},
    Range{0x0610, 0x061C},   Range{0x064B, 0x065F},   Range{0x0E31, 0x0E31},
    Range{0x0E34, 0x0E3A},   Range{0x0E47, 0x0E4E},   Range{0x115F, 0x11FF},
    Range{0x180B, 0x180F},   Range{0x1AB0, 0x1AFF},   Range{0x1DC0, 0x1DFF},
    Range{0x200B, 0x200F},   Range{0x2028, 0x202E},   Range{0x2060, 0x206F},
    Range{0x20D0, 0x20FF},   Range{0x3164, 0x3164},   Range{0xFE00, 0xFE0F},
    Range{0xFE20, 0xFE2F},   Range{0xFEFF, 0xFEFF},   Range{0xFFF0, 0xFFFB},
    Range{0x1F3FB, 0x1F3FF}, Range{0xE0000, 0xE0FFF}, Range{0xF0000, 0x10FFFF},
};

template <typename Ranges>
bool is_in(const Ranges& ranges, char32_t point) {
  return std::any_of(ranges.begin(), ranges.end(), [point](const Range& range) {
    return point >= range.first && point <= range.last;
  });
}

int cells_of(char32_t point) {
  return point >= 0x1100 && is_in(kWide, point) ? 2 : 1;
}

// What stands for our own signs where the terminal is not UTF-8.
constexpr std::array kAlike = {
    std::pair{U'▁', '_'}, std::pair{U'▂', '.'}, std::pair{U'▃', '-'}, std::pair{U'▄', '='},
    std::pair{U'▅', '+'}, std::pair{U'▆', '*'}, std::pair{U'▇', '%'}, std::pair{U'█', '#'},
    std::pair{U'░', '.'}, std::pair{U'│', '|'}, std::pair{U'─', '-'}, std::pair{U'…', '~'},
    std::pair{U'·', '-'}, std::pair{U'×', 'x'}, std::pair{U'→', '>'}, std::pair{U'▲', '^'},
};

}  // namespace

char32_t next_point(std::string_view text, std::size_t& at) noexcept {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(at++);
  if (first < 0x80) return first;
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  if (first < 0xC2 || first > 0xF4) return kBroken;
  char32_t point = first & (0x3FU >> more);
  for (int i = 0; i < more; ++i) {
    const unsigned next = byte(at + static_cast<std::size_t>(i));
    if ((next & 0xC0U) != 0x80U) return kBroken;
    point = (point << 6U) | (next & 0x3FU);
  }
  constexpr std::array<char32_t, 4> kLeast = {0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (point < kLeast[static_cast<std::size_t>(more)] || surrogate || point > 0x10FFFF) {
    return kBroken;
  }
  at += static_cast<std::size_t>(more);
  return point;
}

void append_point(std::string& text, char32_t point) {
  const auto put = [&](char32_t byte) {
    text += static_cast<char>(static_cast<unsigned char>(byte));
  };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0U | (point >> 6U));
    put(0x80U | (point & 0x3FU));
  } else if (point < 0x10000) {
    put(0xE0U | (point >> 12U));
    put(0x80U | ((point >> 6U) & 0x3FU));
    put(0x80U | (point & 0x3FU));
  } else {
    put(0xF0U | (point >> 18U));
    put(0x80U | ((point >> 12U) & 0x3FU));
    put(0x80U | ((point >> 6U) & 0x3FU));
    put(0x80U | (point & 0x3FU));
  }
}

std::string clean(std::string_view text, std::size_t max_points) {
  std::string out;
  std::size_t points = 0;
  for (std::size_t at = 0; at < text.size() && points < max_points; ++points) {
    const char32_t point = next_point(text, at);
    append_point(out, point == kBroken || is_in(kNoCell, point) ? U'?' : point);
  }
  return out;
}

std::string valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t from = at;
    const bool broken = next_point(bytes, at) == kBroken && at == from + 1;
    if (broken) {
      out += '?';
    } else {
      out += bytes.substr(from, at - from);
    }
  }
  return out;
}

int cells(std::string_view text) noexcept {
  int sum = 0;
  for (std::size_t at = 0; at < text.size();) sum += cells_of(next_point(text, at));
  return sum;
}

std::string cut(std::string_view text, int width) {
  if (width <= 0) return {};
  if (cells(text) <= width) return std::string(text);
  int used = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t next = at;
    const int more = cells_of(next_point(text, next));
    if (used + more > width - 1) break;
    used += more;
    at = next;
  }
  return std::string(text.substr(0, at)) + "…";
}

std::string padded(std::string_view text, int width, bool right) {
  std::string fitting = cut(text, width);
  const std::string blanks(static_cast<std::size_t>(std::max(0, width - cells(fitting))), ' ');
  return right ? blanks + fitting : fitting + blanks;
}

std::string ascii(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t point = next_point(text, at);
    if (point < 0x80) {
      out += static_cast<char>(point);
      continue;
    }
    const auto* alike = std::find_if(kAlike.begin(), kAlike.end(),
                                     [point](const auto& pair) { return pair.first == point; });
    out += alike != kAlike.end() ? std::string(1, alike->second)
                                 : std::string(static_cast<std::size_t>(cells_of(point)), '?');
  }
  return out;
}

}  // namespace weir::app::top
