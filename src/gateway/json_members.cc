#include "json_members.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace weir::inline v0::gateway {
namespace {

constexpr unsigned kDepthMax = 16;

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

/// Reads values from the front of a text.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) noexcept : text_(text) {}

  [[nodiscard]] bool at_end() const noexcept { return at_ == text_.size(); }
  void skip_blanks() noexcept {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
  }
  [[nodiscard]] bool take(char c) noexcept {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  /// Without the quotes.
  std::optional<std::string_view> string() noexcept {
    if (!take('"')) return std::nullopt;
    const std::size_t begin = at_;
    while (!at_end() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return std::nullopt;
      if (text_[at_] == '\\' && !escape()) return std::nullopt;
      ++at_;
    }
    const std::size_t end = at_;
    if (!take('"')) return std::nullopt;
    return text_.substr(begin, end - begin);
  }

  std::optional<JsonMembers::Member> value(unsigned depth) noexcept {
    if (at_end()) return std::nullopt;
    const std::size_t begin = at_;
    JsonMembers::Member member;
    switch (text_[at_]) {
      case '"': {
        const auto read = string();
        if (!read) return std::nullopt;
        return JsonMembers::Member{.name = {}, .value = *read, .kind = JsonKind::kString};
      }
      case '{':
        if (!nested('{', '}', depth)) return std::nullopt;
        member.kind = JsonKind::kObject;
        break;
      case '[':
        if (!nested('[', ']', depth)) return std::nullopt;
        member.kind = JsonKind::kArray;
        break;
      case 't':
      case 'f':
      case 'n':
        if (!literal()) return std::nullopt;
        break;
      default:
        if (!number()) return std::nullopt;
        member.kind = JsonKind::kNumber;
    }
    member.value = text_.substr(begin, at_ - begin);
    return member;
  }

 private:
  /// At a backslash; afterwards at the last character of the escape.
  bool escape() noexcept {
    constexpr std::string_view kPlain = "\"\\/bfnrt";
    if (++at_ >= text_.size()) return false;
    if (kPlain.find(text_[at_]) != std::string_view::npos) return true;
    if (text_[at_] != 'u' || text_.size() - at_ < 5) return false;
    for (unsigned i = 1; i <= 4; ++i) {
      const char c = static_cast<char>(text_[at_ + i] | 0x20);
      if (!is_digit(text_[at_ + i]) && (c < 'a' || c > 'f')) return false;
    }
    at_ += 4;
    return true;
  }

  bool literal() noexcept {
    for (const std::string_view word : {"true", "false", "null"}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return true;
      }
    }
    return false;
  }

  bool digits() noexcept {
    const std::size_t begin = at_;
    while (!at_end() && is_digit(text_[at_])) ++at_;
    return at_ > begin;
  }

  bool number() noexcept {
    static_cast<void>(take('-'));
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) static_cast<void>(take('-'));
      return digits();
    }
    return true;
  }

  bool nested(char open, char close, unsigned depth) noexcept {
    if (depth == kDepthMax || !take(open)) return false;
    skip_blanks();
    if (take(close)) return true;
    for (;;) {
      skip_blanks();
      if (open == '{') {
        if (!string()) return false;
        skip_blanks();
        if (!take(':')) return false;
        skip_blanks();
      }
      if (!value(depth + 1)) return false;
      skip_blanks();
      if (take(close)) return true;
      if (!take(',')) return false;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// The code unit of "uXXXX", whose form string() has checked.
unsigned code_unit(std::string_view escape) noexcept {
  unsigned unit = 0;
  std::from_chars(escape.data() + 1, escape.data() + 5, unit, 16);
  return unit;
}

/// The code point of the escapes at the front of `raw`, behind the backslash; takes them. None:
/// half of a pair.
std::optional<unsigned> take_code_point(std::string_view& raw) noexcept {
  const unsigned unit = code_unit(raw);
  raw.remove_prefix(5);
  if (unit < 0xD800 || unit > 0xDFFF) return unit;
  if (unit > 0xDBFF || !raw.starts_with("\\u")) return std::nullopt;
  const unsigned low = code_unit(raw.substr(1));
  if (low < 0xDC00 || low > 0xDFFF) return std::nullopt;
  raw.remove_prefix(6);
  return 0x10000 + ((unit - 0xD800) << 10U) + (low - 0xDC00);
}

/// In UTF-8. The number of bytes.
std::size_t encode(unsigned point, std::array<char, 4>& out) noexcept {
  const auto tail = [&](unsigned shift) {
    return static_cast<char>(0x80U | ((point >> shift) & 0x3FU));
  };
  if (point < 0x80) {
    out[0] = static_cast<char>(point);
    return 1;
  }
  if (point < 0x800) {
    out = {static_cast<char>(0xC0U | (point >> 6U)), tail(0)};
    return 2;
  }
  if (point < 0x10000) {
    out = {static_cast<char>(0xE0U | (point >> 12U)), tail(6), tail(0)};
    return 3;
  }
  out = {static_cast<char>(0xF0U | (point >> 18U)), tail(12), tail(6), tail(0)};
  return 4;
}

/// The text of a string whose form string() has checked.
std::optional<std::string_view> unescaped(std::string_view raw, std::span<char> out) noexcept {
  if (raw.find('\\') == std::string_view::npos) return raw;
  std::size_t size = 0;
  const auto add = [&](std::string_view bytes) {
    if (bytes.size() > out.size() - size) return false;
    size += bytes.copy(out.data() + size, bytes.size());
    return true;
  };
  while (!raw.empty()) {
    const std::size_t plain = std::min(raw.find('\\'), raw.size());
    if (!add(raw.substr(0, plain))) return std::nullopt;
    raw.remove_prefix(std::min(plain + 1, raw.size()));
    if (raw.empty()) break;
    std::array<char, 4> bytes{};
    std::size_t count = 1;
    if (raw.front() == 'u') {
      const auto point = take_code_point(raw);
      if (!point) return std::nullopt;
      count = encode(*point, bytes);
    } else {
      constexpr std::string_view kNames = "bfnrt";
      constexpr std::string_view kMeant = "\b\f\n\r\t";
      const std::size_t at = kNames.find(raw.front());
      bytes[0] = at == std::string_view::npos ? raw.front() : kMeant[at];
      raw.remove_prefix(1);
    }
    if (!add({bytes.data(), count})) return std::nullopt;
  }
  return std::string_view(out.data(), size);
}

bool says(const JsonMembers::Member& member, std::string_view wanted) noexcept {
  std::array<char, JsonMembers::kTextMax> out;
  return member.kind == JsonKind::kString && unescaped(member.value, out) == wanted;
}

}  // namespace

std::optional<JsonMembers> JsonMembers::of(std::string_view text) noexcept {
  JsonMembers found;
  JsonReader reader(text);
  reader.skip_blanks();
  if (!reader.take('{')) return std::nullopt;
  reader.skip_blanks();
  bool more = !reader.take('}');
  while (more) {
    reader.skip_blanks();
    const auto name = reader.string();
    if (!name || name->find('\\') != std::string_view::npos || found.find(*name) != nullptr ||
        found.count_ == kMax) {
      return std::nullopt;
    }
    reader.skip_blanks();
    if (!reader.take(':')) return std::nullopt;
    reader.skip_blanks();
    const auto value = reader.value(1);
    if (!value) return std::nullopt;
    found.members_[found.count_] = *value;
    found.members_[found.count_++].name = *name;
    reader.skip_blanks();
    more = reader.take(',');
    if (!more && !reader.take('}')) return std::nullopt;
  }
  reader.skip_blanks();
  if (!reader.at_end()) return std::nullopt;
  return found;
}

const JsonMembers::Member* JsonMembers::find(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (members_[i].name == name) return &members_[i];
  }
  return nullptr;
}

std::optional<std::string_view> JsonMembers::text(std::string_view name,
                                                  std::span<char> out) const noexcept {
  const Member* member = find(name);
  if (member == nullptr || member->kind != JsonKind::kString) return std::nullopt;
  return unescaped(member->value, out);
}

std::optional<double> JsonMembers::number(std::string_view name) const noexcept {
  const Member* member = find(name);
  if (member == nullptr || member->kind != JsonKind::kNumber) return std::nullopt;
  double value = 0;
  const char* end = member->value.data() + member->value.size();
  const auto [stopped, error] = std::from_chars(member->value.data(), end, value);
  if (error != std::errc() || stopped != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool JsonMembers::has_text(std::string_view name, std::string_view wanted) const noexcept {
  const Member* member = find(name);
  if (member == nullptr) return false;
  if (member->kind == JsonKind::kString) return says(*member, wanted);
  if (member->kind != JsonKind::kArray) return false;
  JsonReader reader(member->value);
  static_cast<void>(reader.take('['));
  do {
    reader.skip_blanks();
    const auto element = reader.value(2);
    if (!element) return false;  // an empty array
    if (says(*element, wanted)) return true;
    reader.skip_blanks();
  } while (reader.take(','));
  return false;
}

}  // namespace weir::inline v0::gateway
