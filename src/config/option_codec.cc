#include "config/option_codec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "weir/base/byte_size.h"
#include "weir/base/duration_text.h"

namespace weir::inline v0::config {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;

std::string number_text(double value) {
  std::array<char, 40> digits;
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  const auto end = whole ? std::to_chars(digits.data(), digits.data() + digits.size(),
                                         static_cast<std::int64_t>(value))
                               .ptr
                         : std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

std::string bound_text(double value, OptionKind kind) {
  if (kind == OptionKind::kSize) {
    const auto bytes = static_cast<std::uint64_t>(value);
    const bool one_short = bytes > 1024 && (bytes + 1) % 1024 == 0;  // as "4TiB - 1"
    return one_short ? to_string(ByteSize(bytes + 1)) + " - 1" : to_string(ByteSize(bytes));
  }
  if (kind == OptionKind::kTime) {
    return to_string(Duration(static_cast<std::int64_t>(value) * kNsPerMs));
  }
  return number_text(value);
}

bool inside(double value, const OptionRow& row) {
  return !row.has_range() || (value >= row.low && value <= row.high);
}

/// "a whole number, 1 to 16383"
std::string expected(std::string_view what, const OptionRow& row) {
  const std::string range = range_text(row);
  return range.empty() ? std::string(what) : std::string(what) + ", " + range;
}

Refusal out_of_range(const OptionRow& row) {
  return range_text(row);
}

/// Reads a whole number: an integer, or for sizes also a text with a unit.
Refusal read_whole(std::uint64_t& out, const RawValue& value, const OptionRow& row) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) {
    if (*integer < 0) return out_of_range(row);
    out = static_cast<std::uint64_t>(*integer);
  } else if (const auto* text = std::get_if<std::string>(&value.data);
             text != nullptr && row.kind == OptionKind::kSize) {
    const auto size = parse_byte_size(*text);
    if (!size) return expected("a size like \"4GiB\" or a number of bytes", row);
    out = size->bytes();
  } else if (row.kind == OptionKind::kSize) {
    return expected("a size like \"4GiB\" or a number of bytes", row);
  } else {
    return expected("a whole number", row);
  }
  return inside(static_cast<double>(out), row) ? std::nullopt : out_of_range(row);
}

template <class T>
Refusal assign_whole(T& field, const RawValue& value, const OptionRow& row) {
  std::uint64_t number = 0;
  if (Refusal refusal = read_whole(number, value, row)) return refusal;
  if (number > std::numeric_limits<T>::max()) return out_of_range(row);
  field = static_cast<T>(number);
  return std::nullopt;
}

template <class T>
std::string print_whole(T field, const OptionRow& row) {
  if (row.kind == OptionKind::kSize && field != 0) return quoted_text(to_string(ByteSize(field)));
  return std::to_string(field);
}

/// Passes every text of a list to `take(text) -> bool`; the first that returns false is refused.
template <class Take>
Refusal read_texts(const RawValue& value, std::string_view what, Take take) {
  const auto* list = std::get_if<RawValue::List>(&value.data);
  if (list == nullptr) return "a list: [" + std::string(what) + ", …]";
  for (const RawValue& item : *list) {
    const auto* text = std::get_if<std::string>(&item.data);
    if (text == nullptr || !take(*text)) {
      return "a list of " + std::string(what) + ", which " + to_text(item) + " is not";
    }
  }
  return std::nullopt;
}

template <class T, class Text>
std::string print_list(const std::vector<T>& list, Text text_of) {
  std::string text = "[";
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text += ", ";
    text += quoted_text(text_of(list[i]));
  }
  return text + "]";
}

std::string joined(Words words) {
  std::string text;
  for (const std::string_view word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

constexpr std::string_view kAddressText = "host:port, [v6]:port, :port or unix:/path";
constexpr std::string_view kRangeText = "an address or a range like 10.0.0.0/8";

}  // namespace

std::string range_text(const OptionRow& row) {
  if (!row.has_range()) return {};
  return bound_text(row.low, row.kind) + " to " + bound_text(row.high, row.kind);
}

Refusal assign(bool& field, const RawValue& value, const OptionRow&) {
  const auto* flag = std::get_if<bool>(&value.data);
  if (flag == nullptr) return "true or false";
  field = *flag;
  return std::nullopt;
}

Refusal assign(std::uint32_t& field, const RawValue& value, const OptionRow& row) {
  return assign_whole(field, value, row);
}

Refusal assign(std::uint64_t& field, const RawValue& value, const OptionRow& row) {
  return assign_whole(field, value, row);
}

Refusal assign(double& field, const RawValue& value, const OptionRow& row) {
  double number = 0;
  if (const auto* real = std::get_if<double>(&value.data)) {
    number = *real;
  } else if (const auto* integer = std::get_if<std::int64_t>(&value.data)) {
    number = static_cast<double>(*integer);
  } else {
    return expected("a number", row);
  }
  if (!std::isfinite(number) || !inside(number, row)) return out_of_range(row);
  field = number;
  return std::nullopt;
}

Refusal assign(Duration& field, const RawValue& value, const OptionRow& row) {
  const bool bare = row.name.ends_with("_ms");
  const std::string_view what =
      bare ? "a time like \"500ms\" or a number of milliseconds" : "a time like \"500ms\"";
  double ms = 0;
  Duration time{};
  if (const auto* integer = std::get_if<std::int64_t>(&value.data); integer != nullptr && bare) {
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max() / kNsPerMs;
    if (*integer < 0 || *integer > kMax) return out_of_range(row);
    time = Duration(*integer * kNsPerMs);
  } else if (const auto* text = std::get_if<std::string>(&value.data)) {
    const auto parsed = parse_duration(*text);
    if (!parsed) return expected(what, row);
    time = *parsed;
  } else {
    return expected(what, row);
  }
  ms = to_millis(time);
  if (!inside(ms, row)) return out_of_range(row);
  field = time;
  return std::nullopt;
}

Refusal assign(std::string& field, const RawValue& value, const OptionRow&) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) return "a text in quotes";
  field = *text;
  return std::nullopt;
}

Refusal assign(std::vector<std::string>& field, const RawValue& value, const OptionRow& row) {
  const bool addresses = row.kind == OptionKind::kAddresses;
  std::vector<std::string> given;
  Refusal refusal =
      read_texts(value, addresses ? kAddressText : "texts", [&](const std::string& t) {
        given.push_back(t);
        return !addresses || parse_net_address(t).has_value();
      });
  if (!refusal) field = std::move(given);
  return refusal;
}

Refusal assign(std::optional<NetAddress>& field, const RawValue& value, const OptionRow&) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text != nullptr && text->empty()) {
    field.reset();
    return std::nullopt;
  }
  auto address = parse_net_address(text != nullptr ? *text : std::string_view());
  if (!address) return std::string(kAddressText);
  field = std::move(*address);
  return std::nullopt;
}

Refusal assign(std::vector<upstream::SourceSpec>& field, const RawValue& value, const OptionRow&) {
  std::vector<upstream::SourceSpec> given;
  std::string why;
  Refusal refusal = read_texts(value, upstream::kSourceSyntax, [&](const std::string& text) {
    auto source = upstream::parse_source(text);
    if (source) {
      given.push_back(std::move(*source));
    } else {
      why = source.error();
    }
    return why.empty();
  });
  if (!refusal) field = std::move(given);
  if (refusal && !why.empty()) *refusal += ": " + why;
  return refusal;
}

Refusal assign(std::vector<IpRange>& field, const RawValue& value, const OptionRow&) {
  std::vector<IpRange> given;
  Refusal refusal = read_texts(value, kRangeText, [&](const std::string& text) {
    const auto range = parse_ip_range(text);
    if (range) given.push_back(*range);
    return range.has_value();
  });
  if (!refusal) field = std::move(given);
  return refusal;
}

Refusal assign(std::vector<gateway::IdentityKind>& field, const RawValue& value, const OptionRow&) {
  const Words words = words_of(gateway::IdentityKind{});
  std::vector<gateway::IdentityKind> given;
  Refusal refusal = read_texts(value, joined(words), [&](const std::string& text) {
    const auto found = std::find(words.begin(), words.end(), text);
    if (found != words.end())
      given.push_back(static_cast<gateway::IdentityKind>(found - words.begin()));
    return found != words.end();
  });
  if (!refusal) field = std::move(given);
  return refusal;
}

std::string one_of(Words words) {
  return "one of " + joined(words);
}

Refusal find_word(std::size_t& index, const RawValue& value, Words words) {
  const auto* text = std::get_if<std::string>(&value.data);
  const auto found = text == nullptr ? words.end() : std::find(words.begin(), words.end(), *text);
  if (found == words.end()) return one_of(words);
  index = static_cast<std::size_t>(found - words.begin());
  return std::nullopt;
}

std::string print(bool field, const OptionRow&) {
  return field ? "true" : "false";
}
std::string print(std::uint32_t field, const OptionRow& row) {
  return print_whole(field, row);
}
std::string print(std::uint64_t field, const OptionRow& row) {
  return print_whole(field, row);
}
std::string print(double field, const OptionRow&) {
  const std::string text = number_text(field);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}
std::string print(Duration field, const OptionRow& row) {
  const bool bare = row.name.ends_with("_ms") && field.count() % kNsPerMs == 0;
  return bare ? std::to_string(field.count() / kNsPerMs) : quoted_text(to_string(field));
}
std::string print(const std::string& field, const OptionRow&) {
  return quoted_text(field);
}
std::string print(const std::vector<std::string>& field, const OptionRow&) {
  return print_list(field, [](const std::string& text) { return text; });
}
std::string print(const std::optional<NetAddress>& field, const OptionRow&) {
  return quoted_text(field ? to_string(*field) : std::string());
}
std::string print(const std::vector<upstream::SourceSpec>& field, const OptionRow&) {
  return print_list(field, [](const upstream::SourceSpec& source) { return source.to_string(); });
}
std::string print(const std::vector<IpRange>& field, const OptionRow&) {
  return print_list(field, [](const IpRange& range) { return to_string(range); });
}
std::string print(const std::vector<gateway::IdentityKind>& field, const OptionRow&) {
  return print_list(field, [](gateway::IdentityKind kind) { return name_of(kind); });
}

namespace {

template <class T>
bool read_number(T& out, std::string_view text) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, out);
  return !text.empty() && result.ec == std::errc() && result.ptr == end;
}

RawValue::List split(std::string_view text) {
  RawValue::List list;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    list.push_back({std::string(item)});
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return list;
}

}  // namespace

RawValue raw_from_text(std::string_view text, const OptionRow& row) {
  std::int64_t integer = 0;
  double real = 0;
  if (is_list(row.kind)) return {split(text)};
  switch (row.kind) {
    case OptionKind::kFlag:
      if (text == "true" || text == "1") return {true};
      if (text == "false" || text == "0") return {false};
      break;
    case OptionKind::kCount:
    case OptionKind::kSize:
    case OptionKind::kTime:
      if (read_number(integer, text)) return {integer};
      break;
    case OptionKind::kRatio:
      if (read_number(real, text)) return {real};
      break;
    default:
      break;
  }
  return {std::string(text)};
}

}  // namespace weir::inline v0::config
