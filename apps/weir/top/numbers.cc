#include "numbers.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace weir::app::top {
namespace {

std::string with_unit(double value, const char* unit) {
  std::array<char, 48> text{};
  const bool whole = value >= 9.95 || value == std::floor(value);
  std::snprintf(text.data(), text.size(), whole ? "%.0f%s" : "%.1f%s", value, unit);
  return text.data();
}

bool is_shown(double value) {
  return std::isfinite(value) && value >= 0;
}

}  // namespace

std::string count_text(double value) {
  if (!is_shown(value)) return "-";
  if (value > 0 && value < 0.05) return "<0.1";
  if (value < 9999.5) return with_unit(value, "");
  constexpr std::array kUnits = {"k", "M", "G", "T"};
  for (const char* unit : kUnits) {
    value /= 1000;
    if (value < 999.5) {
      std::array<char, 48> text{};
      std::snprintf(text.data(), text.size(), value < 99.95 ? "%.1f%s" : "%.0f%s", value, unit);
      return text.data();
    }
  }
  return ">999T";
}

std::string rate_text(double per_s) {
  const std::string text = count_text(per_s);
  return text == "-" ? text : text + "/s";
}

std::string millis_text(double ms) {
  if (!is_shown(ms) || ms == 0) return "-";
  if (ms < 9999.5) return with_unit(ms < 0.1 ? 0.1 : ms, " ms");
  return duration_text(ms / 1000);
}

std::string duration_text(double s) {
  if (!is_shown(s)) return "-";
  if (s < 99.5) return with_unit(std::floor(s), " s");
  if (s < 99.5 * 60) return with_unit(std::floor(s / 60), " min");
  if (s < 48.0 * 3600) return with_unit(std::floor(s / 3600), " h");
  if (s < 9999.0 * 86400) return with_unit(std::floor(s / 86400), " d");
  return ">9999 d";
}

std::string bytes_text(double bytes) {
  if (!is_shown(bytes)) return "-";
  constexpr std::array kUnits = {" B", " KiB", " MiB", " GiB", " TiB"};
  for (const char* unit : kUnits) {
    if (bytes < 999.5) return with_unit(bytes, unit);
    bytes /= 1024;
  }
  return ">999 TiB";
}

std::string percent_text(double share) {
  if (!is_shown(share)) return "-";
  return share > 99.99 ? ">9999 %" : with_unit(share * 100, " %");
}

}  // namespace weir::app::top
