#pragma once

// What the open-loop clients of the tests share: the classes of requests that they send, and the
// result of each as JSON.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir_test {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

inline std::chrono::nanoseconds as_duration(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

/// Requests of one kind at one rate, and what became of them.
struct TrafficClass {
  std::string path;
  std::string field;  // "name: value", one more header field; or empty
  double rate = 0;
  Time next{};
  std::chrono::nanoseconds gap{};
  std::uint64_t offered = 0;
  std::uint64_t unsent = 0;
  std::uint64_t ok = 0;
  std::uint64_t refused = 0;  // 429, 503; of gRPC RESOURCE_EXHAUSTED, UNAVAILABLE
  std::uint64_t other = 0;    // another status
  std::uint64_t broken = 0;   // no complete answer
  std::uint64_t late = 0;     // abandoned
  std::uint64_t again = 0;    // sent again: the server had certainly not processed it
  std::vector<double> ok_ms;
  std::vector<double> refused_ms;
};

template <class T>
bool read_number(std::string_view text, T& value) {
  return std::from_chars(text.data(), text.data() + text.size(), value).ptr ==
         text.data() + text.size();
}

/// PATH:RATE[:HEADER]
inline std::optional<TrafficClass> read_class(std::string_view text) {
  const std::size_t first = text.find(':');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = std::min(text.find(':', first + 1), text.size());
  TrafficClass one;
  one.path = text.substr(0, first);
  if (!read_number(text.substr(first + 1, second - first - 1), one.rate)) return std::nullopt;
  if (second < text.size()) one.field = text.substr(second + 1);
  return one;
}

inline double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

inline void print_report(double seconds, std::vector<TrafficClass>& classes) {
  const auto ull = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf("{\"seconds\":%.3f,\"classes\":{", seconds);
  const char* comma = "";
  for (TrafficClass& one : classes) {
    std::printf(
        "%s\"%s\":{\"offered\":%llu,\"unsent\":%llu,\"ok\":%llu,\"refused\":%llu,\"other\":%llu,"
        "\"broken\":%llu,\"late\":%llu,\"again\":%llu,\"ok_p50_ms\":%.3f,\"ok_p99_ms\":%.3f,"
        "\"refused_p50_ms\":%.3f,\"refused_p99_ms\":%.3f,\"ok_percentiles_ms\":[",
        comma, one.path.c_str(), ull(one.offered), ull(one.unsent), ull(one.ok), ull(one.refused),
        ull(one.other), ull(one.broken), ull(one.late), ull(one.again), percentile(one.ok_ms, 0.5),
        percentile(one.ok_ms, 0.99), percentile(one.refused_ms, 0.5),
        percentile(one.refused_ms, 0.99));
    for (int percent = 0; percent < 100; ++percent) {
      std::printf("%s%.3f", percent == 0 ? "" : ",", percentile(one.ok_ms, percent / 100.0));
    }
    std::printf("]}");
    comma = ",";
  }
  std::printf("}}\n");
}

}  // namespace weir_test
