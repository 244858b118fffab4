#include "roff.h"

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "weir/experimental/gateway/version.h"

namespace weir::app::roff {
namespace {

void append_character(std::string& out, char c, bool first_of_line) {
  switch (c) {
    case '\\':
      out += "\\e";
      break;
    case '-':
      out += "\\-";
      break;
    case '\'':
      out += "\\(aq";
      break;
    case '"':
      out += "\\(dq";
      break;
    case '`':
      out += "\\(ga";
      break;
    case '^':
      out += "\\(ha";
      break;
    case '~':
      out += "\\(ti";
      break;
    case '.':
      out += first_of_line ? "\\&." : ".";
      break;
    default:
      out += c;
  }
}

/// 2026-11-19; empty without a date.
std::string day_of(std::string_view seconds_since_1970) {
  std::int64_t seconds = 0;
  const auto read = std::from_chars(seconds_since_1970.data(),
                                    seconds_since_1970.data() + seconds_since_1970.size(), seconds);
  if (read.ec != std::errc() || seconds <= 0) return {};
  const std::chrono::year_month_day day{std::chrono::sys_days{std::chrono::days{seconds / 86'400}}};
  char text[32];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(day.year()),
                static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
  return text;
}

}  // namespace

std::string text(std::string_view plain) {
  std::string out;
  bool first = true;
  for (const char c : plain) {
    append_character(out, c, first);
    first = c == '\n';
  }
  return out;
}

std::string prose(std::string_view plain) {
  std::string out;
  while (true) {
    const std::size_t open = plain.find('`');
    const std::size_t close = open == std::string_view::npos ? open : plain.find('`', open + 1);
    if (close == std::string_view::npos) return out + text(plain);
    out += text(plain.substr(0, open)) + bold(plain.substr(open + 1, close - open - 1));
    plain.remove_prefix(close + 1);
  }
}

std::string bold(std::string_view plain) {
  return "\\fB" + text(plain) + "\\fR";
}

std::string italic(std::string_view plain) {
  return "\\fI" + text(plain) + "\\fR";
}

std::string request(std::string_view name, std::string_view argument) {
  return "." + std::string(name) + " \"" + text(argument) + "\"\n";
}

std::string title(std::string_view name, int section, std::string_view source_date) {
  return "." + std::string("TH \"") + text(name) + "\" " + std::to_string(section) + " \"" +
         day_of(source_date) + "\" \"weir " + text(gateway::version()) + "\" \"Weir\"\n";
}

std::string block(std::string_view plain) {
  std::string out;
  bool as_it_stands = false;
  while (!plain.empty()) {
    const std::size_t end = plain.find('\n');
    const std::string_view line = plain.substr(0, end);
    const bool indented = line.starts_with("  ");
    if (indented != as_it_stands) out += indented ? ".PP\n.EX\n" : ".EE\n";
    if (indented) {
      out += text(line) + "\n";
    } else if (!line.empty()) {
      out += ".PP\n" + prose(line) + "\n";
    }
    as_it_stands = indented;
    plain.remove_prefix(end == std::string_view::npos ? plain.size() : end + 1);
  }
  return out + (as_it_stands ? ".EE\n" : "");
}

}  // namespace weir::app::roff
