#include "scenario_test_support.h"

#include <fstream>
#include <sstream>

namespace weir::inline v0::sim {

std::string scenario_file(const std::string& name) {
  const std::ifstream in(std::string(WEIR_SCENARIO_DIR) + "/" + name + ".toml");
  EXPECT_TRUE(in.good()) << name;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace weir::inline v0::sim
