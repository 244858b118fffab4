#include "config_faults.h"

#include <iostream>

#include "weir/experimental/config/load.h"

namespace weir::app {

bool good(const ConfigErrors& faults) {
  for (const ConfigError& fault : faults) std::cerr << config::to_text(fault) << "\n";
  return faults.empty();
}

void warn(const ConfigErrors& faults) {
  for (const ConfigError& fault : faults)
    std::cerr << "warning: " << config::to_text(fault) << "\n";
}

}  // namespace weir::app
