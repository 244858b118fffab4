// Prints a document of docs/reference, made from its table:
//   weir_gen_reference metrics > docs/reference/metrics.md
// `cmake --build build/release --target reference` writes them all.
#include <cstdio>
#include <string>
#include <string_view>

#include "config/option_table.h"
#include "metrics/metric.h"

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  std::string text;
  if (what == "options") text = weir::config::options_reference();
  if (what == "metrics") text = weir::metrics::metrics_reference();
  if (text.empty()) {
    std::fputs("usage: weir_gen_reference options|metrics\n", stderr);
    return 2;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}
