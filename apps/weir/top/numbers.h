#pragma once

#include <string>

/// Numbers as an operator reads them: short, with their unit, never wider than 8 cells. What is
/// below 0 or no number is shown as "-". Pure.
namespace weir::app::top {

[[nodiscard]] std::string count_text(double value);    // 0, 3.2, 648, 12.3k, 4.1M
[[nodiscard]] std::string rate_text(double per_s);     // 648/s
[[nodiscard]] std::string millis_text(double ms);      // 0.4 ms, 23 ms, 1.2 s; 0 is "-"
[[nodiscard]] std::string duration_text(double s);     // 41 s, 12 min, 5 h, 3 d
[[nodiscard]] std::string bytes_text(double bytes);    // 508 MiB
[[nodiscard]] std::string percent_text(double share);  // 0.41 is "41 %"

}  // namespace weir::app::top
