// Any bytes as weir.toml: only an error with a text, or a configuration that prints and loads back
// as itself, is allowed.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/experimental/config/load.h"
#include "weir/experimental/config/print.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const weir::config::LoadedConfig loaded = weir::config::load_config(text, "fuzz.toml");
  for (const weir::ConfigError& error : loaded.errors) {
    WEIR_ASSERT(error.line >= 0 && !weir::config::to_text(error).empty());
  }
  if (!loaded.ok()) return 0;
  const weir::config::LoadedConfig again =
      weir::config::load_config(weir::config::print_config(loaded.config), "again");
  WEIR_ASSERT(again.ok());
  WEIR_ASSERT(again.config == loaded.config);
  return 0;
}
