// Layers that link external libraries are usable without the headers of those libraries.
#include "weir/experimental/io/loop.h"

#include <cstdio>

int main() {
  weir::io::Loop loop;
  loop.run_once();
  std::puts(loop.turns() == 1 ? "ok" : "no turn");
}
