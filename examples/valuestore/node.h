#pragma once

#include <functional>
#include <string>
#include <vector>

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace valuestore {

/// What a test does to a node.
struct NodeHooks {
  rocksdb::Env* env = nullptr;    // its disk
  std::function<void()> on_usr1;  // at SIGUSR1; without it the signal is not looked at
};

/// Serves until SIGTERM or SIGINT, then drains. Prints "ready" when it serves. Returns the exit
/// status of the process; call it before any thread is made.
int run_node(const std::vector<std::string>& arguments, const NodeHooks& hooks = {});

}  // namespace valuestore
