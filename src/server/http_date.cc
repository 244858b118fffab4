#include "http_date.h"

#include <algorithm>
#include <chrono>
#include <string_view>

namespace weir::inline v0::inline server {

void write_http_date(std::int64_t unix_seconds, std::span<char, kHttpDateBytes> into) noexcept {
  using std::chrono::days;
  using std::chrono::floor;
  using std::chrono::seconds;
  const std::chrono::sys_seconds time{seconds(unix_seconds)};
  const auto day = floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";

  std::copy_n("Sun, 06 Nov 1994 08:49:37 GMT", kHttpDateBytes, into.begin());
  const auto text = [&](std::size_t at, std::string_view from) {
    std::copy(from.begin(), from.end(), into.begin() + static_cast<std::ptrdiff_t>(at));
  };
  const auto two = [&](std::size_t at, unsigned value) {
    into[at] = static_cast<char>('0' + value / 10 % 10);
    into[at + 1] = static_cast<char>('0' + value % 10);
  };
  const auto year = static_cast<unsigned>(static_cast<int>(date.year()));
  text(0, kDays.substr(std::chrono::weekday(day).c_encoding() * 3, 3));
  two(5, static_cast<unsigned>(date.day()));
  text(8, kMonths.substr((static_cast<unsigned>(date.month()) - 1) * 3, 3));
  two(12, year / 100);
  two(14, year % 100);
  two(17, static_cast<unsigned>(clock.hours().count()));
  two(20, static_cast<unsigned>(clock.minutes().count()));
  two(23, static_cast<unsigned>(clock.seconds().count()));
}

}  // namespace weir::inline v0::inline server
