// The layers that link libraries from outside are usable too, without those libraries' headers.
#include "weir/experimental/io/loop.h"

#include <cstdio>

int main() {
  weir::io::Loop loop;
  loop.run_once();
  std::puts(loop.turns() == 1 ? "ok" : "no turn");
}
