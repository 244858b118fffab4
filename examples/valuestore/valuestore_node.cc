// One node of the value store.
//
//   valuestore_node --name a --nodes a=127.0.0.1:7001,b=…,c=… --data DIR [--admission on|off]
//                   [--hedging on|off] [--rebuild on|off] …        (node_options.cc has all)
//
// Prints "ready" when it serves. SIGTERM drains: writes are refused, reads go on, hints are
// delivered, then it ends with status 0.
#include "node.h"

int main(int argc, char** argv) {
  return valuestore::run_node({argv + 1, argv + argc});
}
