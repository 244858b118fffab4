#include "weir/base/config_check.h"

#include <array>
#include <cstdio>
#include <utility>

namespace weir::inline v0 {

namespace {

std::string text(double value) {
  std::array<char, 40> buffer{};
  static_cast<void>(std::snprintf(buffer.data(), buffer.size(), "%.10g", value));
  return buffer.data();
}

std::string text(Duration value) {
  constexpr std::int64_t kMilli = 1'000'000;
  const std::int64_t ns = value.count();
  return ns % kMilli == 0 ? std::to_string(ns / kMilli) + "ms" : std::to_string(ns) + "ns";
}

std::string range(const std::string& low, const std::string& high) {
  return low + " to " + high;
}

}  // namespace

void add_error(ConfigErrors& errors, std::string_view key, std::string value, std::string allowed) {
  errors.push_back(
      {.key = std::string(key), .value = std::move(value), .allowed = std::move(allowed)});
}

void check_range(ConfigErrors& errors, std::string_view key, double value, double low,
                 double high) {
  if (value >= low && value <= high) return;
  add_error(errors, key, text(value), range(text(low), text(high)));
}

void check_range(ConfigErrors& errors, std::string_view key, std::uint64_t value, std::uint64_t low,
                 std::uint64_t high) {
  if (value >= low && value <= high) return;
  add_error(errors, key, std::to_string(value), range(std::to_string(low), std::to_string(high)));
}

void check_range(ConfigErrors& errors, std::string_view key, Duration value, Duration low,
                 Duration high) {
  if (value >= low && value <= high) return;
  add_error(errors, key, text(value), range(text(low), text(high)));
}

void append_errors(ConfigErrors& errors, std::string_view prefix, ConfigErrors inner) {
  for (ConfigError& error : inner) {
    error.key = std::string(prefix) + error.key;
    errors.push_back(std::move(error));
  }
}

}  // namespace weir::inline v0
