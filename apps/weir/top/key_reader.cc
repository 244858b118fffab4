#include "key_reader.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "text.h"

namespace weir::app::top {
namespace {

constexpr std::size_t kSequenceMax = 32;

constexpr std::array kSequences = {
    std::pair{std::string_view("[A"), KeyKind::kUp},
    std::pair{std::string_view("[B"), KeyKind::kDown},
    std::pair{std::string_view("[C"), KeyKind::kRight},
    std::pair{std::string_view("[D"), KeyKind::kLeft},
    std::pair{std::string_view("OA"), KeyKind::kUp},
    std::pair{std::string_view("OB"), KeyKind::kDown},
    std::pair{std::string_view("OC"), KeyKind::kRight},
    std::pair{std::string_view("OD"), KeyKind::kLeft},
    std::pair{std::string_view("[5~"), KeyKind::kPageUp},
    std::pair{std::string_view("[6~"), KeyKind::kPageDown},
    std::pair{std::string_view("[H"), KeyKind::kHome},
    std::pair{std::string_view("[F"), KeyKind::kEnd},
    std::pair{std::string_view("OH"), KeyKind::kHome},
    std::pair{std::string_view("OF"), KeyKind::kEnd},
    std::pair{std::string_view("[1~"), KeyKind::kHome},
    std::pair{std::string_view("[4~"), KeyKind::kEnd},
    std::pair{std::string_view("[Z"), KeyKind::kBackTab},
};

Key control_key(unsigned char byte) {
  switch (byte) {
    case '\r':
    case '\n':
      return {KeyKind::kEnter};
    case '\t':
      return {KeyKind::kTab};
    case 0x7F:
    case 0x08:
      return {KeyKind::kBackspace};
    case 0x03:
      return {KeyKind::kInterrupt};
    case 0x1A:
      return {KeyKind::kSuspend};
    case 0x0C:
      return {KeyKind::kRedraw};
    default:
      return {KeyKind::kOther};
  }
}

/// How many bytes behind an Escape make its sequence; none if more must come.
std::optional<std::size_t> sequence_length(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  if (rest.front() == 'O') return rest.size() >= 2 ? std::optional<std::size_t>(2) : std::nullopt;
  if (rest.front() != '[') return 0;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    const auto byte = static_cast<unsigned char>(rest[i]);
    if (byte >= 0x40 && byte <= 0x7E) return i + 1;
    if (byte < 0x20 || byte > 0x7E || i > kSequenceMax) return i;
  }
  return std::nullopt;
}

/// The bytes of the character that begins with `first`.
std::size_t point_length(unsigned char first) {
  return first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 1;
}

}  // namespace

std::vector<Key> KeyReader::feed(std::string_view bytes) {
  kept_ += bytes;
  std::vector<Key> keys;
  std::size_t at = 0;
  while (at < kept_.size()) {
    const auto first = static_cast<unsigned char>(kept_[at]);
    if (first == 0x1B) {
      const std::string_view rest = std::string_view(kept_).substr(at + 1);
      const std::optional<std::size_t> length = sequence_length(rest);
      if (!length) break;
      const auto* found = std::find_if(kSequences.begin(), kSequences.end(), [&](const auto& one) {
        return one.first == rest.substr(0, *length);
      });
      if (*length == 0) {
        keys.push_back({KeyKind::kEscape});
      } else {
        keys.push_back({found == kSequences.end() ? KeyKind::kOther : found->second});
      }
      at += 1 + *length;
    } else if (first < 0x20 || first == 0x7F) {
      keys.push_back(control_key(first));
      ++at;
    } else {
      if (at + point_length(first) > kept_.size()) break;
      keys.push_back({KeyKind::kPoint, next_point(kept_, at)});
    }
  }
  kept_.erase(0, at);
  return keys;
}

std::vector<Key> KeyReader::flush() {
  if (kept_.empty()) return {};
  const bool escape = kept_ == "\x1B";
  kept_.clear();
  return {Key{escape ? KeyKind::kEscape : KeyKind::kOther}};
}

}  // namespace weir::app::top
