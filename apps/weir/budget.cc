#include <cstdio>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "weir/base/byte_size.h"
#include "weir/experimental/config/load.h"
#include "weir/experimental/gateway/gateway_budget.h"

#include "config_faults.h"
#include "subcommand.h"

namespace weir::app {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(const std::vector<MemoryAddend>& addends) {
  Json list = Json::array();
  for (const MemoryAddend& addend : addends) {
    list.push_back({{"holder", addend.holder},
                    {"count", addend.count},
                    {"bytes_each", addend.bytes_each},
                    {"bytes", addend.bytes()},
                    {"note", addend.note}});
  }
  return list;
}

int budget(const std::string& file, bool json) {
  const config::Environment environment = config::process_environment();
  const config::LoadedConfig loaded =
      file.empty() ? load_config("", "defaults", environment) : load_config_file(file, environment);
  if (!good(loaded.errors)) return kUsageError;
  warn(loaded.unknown_variables);
  const MemoryBudget sum = gateway::gateway_budget(loaded.config);
  const auto cgroup = gateway::own_cgroup_limit();
  const std::string objection = gateway::budget_objection(loaded.config, cgroup);
  if (json) {
    Json page = {{"ceiling_bytes", sum.total_bytes()},
                 {"memory_max", loaded.config.server.memory_max},
                 {"cgroup_limit", cgroup ? Json(*cgroup) : Json(nullptr)},
                 {"fits", objection.empty()},
                 {"addends", as_json(sum.addends)},
                 {"kernel_bytes", sum.kernel_bytes()},
                 {"kernel", as_json(sum.kernel)}};
    std::cout << page.dump(2) << "\n";
  } else {
    std::cout << "The most memory that this configuration can use:\n";
    std::cout << gateway::to_table(sum.addends) << std::setw(12)
              << to_human(ByteSize(sum.total_bytes())) << "  ceiling\n\n"
              << "Beside it, held by the kernel for sockets, when every buffer is full:\n"
              << gateway::to_table(sum.kernel);
  }
  if (objection.empty()) return kOk;
  std::cerr << "weir budget: " << objection << "\n";
  return kFailed;
}

}  // namespace

void add_budget(CLI::App& program, int& status) {
  struct Options {
    std::string file;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("budget", "Show the memory ceiling and what it is made of");
  command->add_option("-c,--config,FILE", options->file, "Configuration file (TOML) [defaults]");
  command->add_flag("--json", options->json, "As JSON");
  command->footer(
      "Exit status: 0 it fits, 1 it is above memory_max or the cgroup's limit, "
      "2 wrong configuration.");
  command->callback([options, &status] { status = budget(options->file, options->json); });
}

}  // namespace weir::app
