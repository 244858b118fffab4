#include "dashboard/asset.h"

#include <algorithm>

#include "asset_table.h"

namespace weir::inline v0::dashboard {

std::span<const Asset> assets() noexcept {
  return asset_table();
}

const Asset* find_asset(std::string_view name) noexcept {
  const std::span<const Asset> all = assets();
  const auto found =
      std::find_if(all.begin(), all.end(), [name](const Asset& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace weir::inline v0::dashboard
