#pragma once

#include <span>

#include "dashboard/asset.h"

namespace weir::inline v0::dashboard {

/// What embed.py wrote, in a source of the build directory.
[[nodiscard]] std::span<const Asset> asset_table() noexcept;

}  // namespace weir::inline v0::dashboard
