#pragma once

#include "weir/base/config_error.h"

/// How every subcommand reports configuration errors: on standard error, one line each.
namespace weir::app {

/// Prints each error with its place. True if there is none.
[[nodiscard]] bool good(const ConfigErrors& faults);
/// The same for settings that are allowed but probably not intended.
void warn(const ConfigErrors& faults);

}  // namespace weir::app
