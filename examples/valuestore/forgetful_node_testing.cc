// A node whose disk forgets at SIGUSR1 what was not synced, and whose process ends then: as when
// the power fails. Otherwise as valuestore_node.
#include <cstdint>
#include <memory>

#include <rocksdb/env.h>
#include <unistd.h>

#include "forgetful_file_system_testing.h"
#include "node.h"

int main(int argc, char** argv) {
  const auto disk = std::make_shared<valuestore::ForgetfulFileSystem>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
  const auto lose_power = [&] {
    // A few bytes more than what was synced: a log may end in the middle of a record.
    disk->lose_power(static_cast<std::uint64_t>(::getpid() % 64));
    ::_exit(1);
  };
  return valuestore::run_node({argv + 1, argv + argc}, {.env = env.get(), .on_usr1 = lose_power});
}
