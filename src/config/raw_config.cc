#include "config/raw_config.h"

#include <array>
#include <cstddef>
#include <cstdio>

#include "weir/base/number_text.h"

namespace weir::inline v0::config {
namespace {

constexpr std::size_t kShownMax = 60;

void append(std::string& text, const RawValue& value);

void append_list(std::string& text, const RawValue::List& list) {
  text += '[';
  for (std::size_t i = 0; i < list.size() && text.size() <= kShownMax; ++i) {
    if (i > 0) text += ", ";
    append(text, list[i]);
  }
  text += ']';
}

void append(std::string& text, const RawValue& value) {
  if (const auto* flag = std::get_if<bool>(&value.data)) text += *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value.data))
    text += std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value.data)) text += NumberText(*real).view();
  if (const auto* string = std::get_if<std::string>(&value.data)) text += quoted_text(*string);
  if (const auto* list = std::get_if<RawValue::List>(&value.data)) append_list(text, *list);
  if (const auto* other = std::get_if<RawOther>(&value.data)) text += other->what;
}

}  // namespace

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      std::array<char, 8> escape{};
      static_cast<void>(std::snprintf(escape.data(), escape.size(), "\\u%04x", byte));
      out += escape.data();
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string to_text(const RawValue& value) {
  std::string text;
  append(text, value);
  if (text.size() <= kShownMax) return text;
  std::size_t end = kShownMax;  // do not cut inside a UTF-8 character
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end) + "…";
}

}  // namespace weir::inline v0::config
