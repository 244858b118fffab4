#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "config/option_table.h"

namespace weir::config {
namespace {

TEST(OptionsReference, CommittedDocumentIsMadeFromTheTable) {
  std::ifstream file(WEIR_REFERENCE_DIR "/options.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(options_reference(), text.str())
      << "run: cmake --build build/release --target reference";
}

}  // namespace
}  // namespace weir::config
