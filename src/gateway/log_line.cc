#include "log_line.h"

#include <algorithm>

#include "weir/base/number_text.h"

namespace weir::inline v0::gateway {
namespace {

bool is_plain(char c) noexcept {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  constexpr std::string_view kOthers = "._:/@,+*~%-";
  return letter || (c >= '0' && c <= '9') || kOthers.find(c) != std::string_view::npos;
}

}  // namespace

void LogLine::text(std::string_view key, std::string_view value) noexcept {
  name(key);
  const bool quoted = json_ || value.empty() || !std::all_of(value.begin(), value.end(), is_plain);
  if (quoted) put('"');
  for (const char c : value) put_escaped(c);
  if (quoted) put('"');
}

void LogLine::number(std::string_view key, std::uint64_t value) noexcept {
  name(key);
  put_number(value);
}

void LogLine::number_text(std::string_view key, std::uint64_t value) noexcept {
  const NumberText digits(value);
  text(key, digits.view());
}

void LogLine::millis(std::string_view key, Duration value) noexcept {
  name(key);
  const std::uint64_t us =
      value.count() <= 0 ? 0 : static_cast<std::uint64_t>(value.count()) / 1000;
  put_number(us / 1000);
  put('.');
  put(static_cast<char>('0' + us / 100 % 10));
  put(static_cast<char>('0' + us / 10 % 10));
  put(static_cast<char>('0' + us % 10));
}

std::string_view LogLine::finish() noexcept {
  if (json_) put('}');
  return {out_.data(), used_};
}

void LogLine::put_escaped(char c) noexcept {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    put('\\');
    put(c);
  } else if (byte >= 0x20 && byte < 0x7f) {
    put(c);
  } else {
    for (const char e : {'\\', 'u', '0', '0', kHex[byte >> 4U], kHex[byte & 15U]}) put(e);
  }
}

void LogLine::put_number(std::uint64_t value) noexcept {
  const NumberText digits(value);
  for (const char c : digits.view()) put(c);
}

void LogLine::name(std::string_view key) noexcept {
  if (begun_) put(json_ ? ',' : ' ');
  begun_ = true;
  if (json_) put('"');
  for (const char c : key) put(c);
  if (json_) put('"');
  put(json_ ? ':' : '=');
}

}  // namespace weir::inline v0::gateway
