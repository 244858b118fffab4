#pragma once

#include "weir/base/config_error.h"

/// How every subcommand tells what is wrong with a configuration: on standard error, a line each.
namespace weir::app {

/// Tells each fault with its place. True if there is none.
[[nodiscard]] bool good(const ConfigErrors& faults);
/// The same for what is allowed, and yet hardly meant.
void warn(const ConfigErrors& faults);

}  // namespace weir::app
