#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay_run.h"

namespace weir::inline v0::sim {

/// What the report says beside the numbers.
struct ReplayTitle {
  std::string file{};
  std::string upstream{};
  std::uint64_t decisions = 0;  // of the whole recording
  std::uint64_t torn = 0;
  std::vector<std::string> others{};   // upstreams of the recording that are not replayed
  std::vector<std::string> changes{};  // what the forecast is about
  std::uint32_t workers = 0;           // given by --workers
};

[[nodiscard]] std::string replay_text(const ReplayTitle& title, const ReplayResult& result);
[[nodiscard]] std::string replay_json(const ReplayTitle& title, const ReplayResult& result);

}  // namespace weir::inline v0::sim
