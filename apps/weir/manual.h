#pragma once

#include <string>
#include <string_view>

namespace weir::app {

/// weir.toml(5), made from the table of options.
[[nodiscard]] std::string manual_of_options(std::string_view source_date);

}  // namespace weir::app
