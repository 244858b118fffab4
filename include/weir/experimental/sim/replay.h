#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace weir::inline v0::sim {

/// The command line of `weir replay`, and the recording itself.
struct ReplayOptions {
  std::string name{};                      // of the file or address, for messages
  std::string bytes{};                     // of the recording
  std::string upstream{};                  // empty: the one with most decisions
  std::string recorded_config{};           // a weir.toml in place of what the recording holds
  std::string config{};                    // a weir.toml: what would it have done?
  std::vector<std::string> assignments{};  // --set key=value
  std::uint32_t workers = 0;               // what if the service had this many? 0: as it has
  bool json = false;
};

/// Replays what a decision recorder recorded, with the code of admission in virtual time. First the
/// past under its own settings: if refusals or p99 differ by more than a fifth, it prints the fit
/// and gives no forecast. Otherwise, what the other settings would have done.
///
/// Returns the exit status: 0, 1 if the replay does not fit, 2 for bad input (`err` says what).
/// Thread-safety: a function. Cost: about a microsecond per decision and run.
[[nodiscard]] int replay(const ReplayOptions& options, std::ostream& out, std::ostream& err);

}  // namespace weir::inline v0::sim
