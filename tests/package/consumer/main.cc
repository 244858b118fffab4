// A stranger's first ten lines.
#include <cstdio>

#include "weir/base/result.h"
#include "weir/policy/class_admission.h"

weir::Result<int, weir::Reason> answer(bool busy) {
  if (busy) return weir::unexpected(weir::Reason::kOverload);
  return 42;
}

int main() {
  std::printf("%s\n", answer(false).value() == 42 && !answer(true) ? "ok" : "wrong");
  return 0;
}
