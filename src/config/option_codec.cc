#include "config/option_codec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/byte_size.h"
#include "weir/base/duration_text.h"
#include "weir/base/number_text.h"

namespace weir::inline v0::config {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;

std::string number_text(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  const NumberText text = whole ? NumberText(static_cast<std::int64_t>(value)) : NumberText(value);
  return std::string(text.view());
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

/// Sets the field to the texts of a list, each as `parse` (text -> optional or Result) reads it.
template <class T, class Parse>
Refusal assign_list(std::vector<T>& field, const RawValue& value, std::string_view what,
                    Parse parse) {
  const auto* list = std::get_if<RawValue::List>(&value.data);
  if (list == nullptr) return "a list: [" + std::string(what) + ", …]";
  std::vector<T> given;
  for (const RawValue& item : *list) {
    const auto* text = std::get_if<std::string>(&item.data);
    if (text != nullptr) {
      if (auto read = parse(*text)) {
        given.push_back(std::move(*read));
        continue;
      }
    }
    return "a list of " + std::string(what) + ", which " + to_text(item) + " is not";
  }
  field = std::move(given);
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
  return assign_list(field, value, addresses ? kAddressText : "texts", [&](std::string_view text) {
    const bool wrong = addresses && !parse_net_address(text);
    return wrong ? std::nullopt : std::optional<std::string>(text);
  });
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
  std::string why;
  Refusal refusal = assign_list(field, value, upstream::kSourceSyntax, [&](std::string_view text) {
    auto source = upstream::parse_source(text);
    if (!source) why = source.error();
    return source;
  });
  if (refusal && !why.empty()) *refusal += ": " + why;
  return refusal;
}

Refusal assign(std::vector<IpRange>& field, const RawValue& value, const OptionRow&) {
  return assign_list(field, value, kRangeText, parse_ip_range);
}

Refusal assign(std::vector<gateway::IdentityKind>& field, const RawValue& value, const OptionRow&) {
  return assign_list(field, value, joined(gateway::kIdentityKindNames),
                     named<gateway::IdentityKind>);
}

Refusal assign(std::vector<gateway::UpgradeProtocol>& field, const RawValue& value,
               const OptionRow&) {
  return assign_list(field, value, joined(gateway::kUpgradeProtocolNames),
                     named<gateway::UpgradeProtocol>);
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
std::string print(const std::vector<gateway::UpgradeProtocol>& field, const OptionRow&) {
  return print_list(field, [](gateway::UpgradeProtocol protocol) { return name_of(protocol); });
}

namespace {

RawValue::List split(std::string_view text) {
  RawValue::List list;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    list.push_back({std::string(trimmed(text.substr(0, comma)))});
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return list;
}

}  // namespace

RawValue raw_from_text(std::string_view text, const OptionRow& row) {
  if (is_list(row.kind)) return {split(text)};
  switch (row.kind) {
    case OptionKind::kFlag:
      if (text == "true" || text == "1") return {true};
      if (text == "false" || text == "0") return {false};
      break;
    case OptionKind::kCount:
    case OptionKind::kSize:
    case OptionKind::kTime:
      if (const auto integer = parse_number<std::int64_t>(text)) return {*integer};
      break;
    case OptionKind::kRatio:
      if (const auto real = parse_number<double>(text)) return {*real};
      break;
    default:
      break;
  }
  return {std::string(text)};
}

}  // namespace weir::inline v0::config
