#include <iostream>
#include <memory>
#include <string>

#include "weir/base/byte_size.h"
#include "weir/experimental/config/load.h"
#include "weir/experimental/config/print.h"
#include "weir/experimental/gateway/gateway.h"
#include "weir/experimental/gateway/gateway_budget.h"
#include "weir/experimental/server/tls_check.h"

#include "config_faults.h"
#include "subcommand.h"

namespace weir::app {
namespace {

int check(const std::string& file) {
  const config::LoadedConfig loaded = load_config_file(file, config::process_environment());
  if (!good(loaded.errors)) {
    std::cerr << file << ": " << loaded.errors.size()
              << (loaded.errors.size() == 1 ? " error\n" : " errors\n");
    return kUsageError;
  }
  warn(loaded.unknown_variables);
  warn(loaded.warnings);
  const ConfigErrors certificates = check_tls_files(loaded.config.server.tls);
  for (const ConfigError& error : certificates) {
    std::cerr << file << ": " << config::to_text(error) << "\n";
  }
  if (!certificates.empty()) return kUsageError;
  for (const std::string& objection :
       {gateway::upstream_tls_objection(loaded.config), gateway::identity_objection(loaded.config),
        gateway::actions_objection(loaded.config)}) {
    if (objection.empty()) continue;
    std::cerr << file << ": " << objection << "\n";
    return kUsageError;
  }
  if (const std::string objection =
          gateway::budget_objection(loaded.config, gateway::own_cgroup_limit());
      !objection.empty()) {
    std::cerr << file << ": " << objection << "\n";
    return kUsageError;
  }
  const auto counted = [](std::size_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  std::cout << file << ": good; " << counted(loaded.config.upstreams.size(), "upstream") << ", "
            << counted(loaded.config.routes_in_force().size(), "route") << ", memory ceiling "
            << to_human(ByteSize(gateway::gateway_budget(loaded.config).total_bytes())) << "\n";
  return kOk;
}

}  // namespace

void add_check(CLI::App& program, int& status) {
  struct Options {
    std::string file;
    bool print_defaults = false;
    bool print_schema = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("check", "Check a configuration, or print one");
  auto* file = command->add_option("FILE", options->file, "Configuration file (TOML)");
  auto* defaults = command->add_flag("--print-defaults", options->print_defaults,
                                     "Print every option with its default and what it does");
  auto* schema = command->add_flag("--print-schema", options->print_schema,
                                   "Print the JSON Schema of the file, for editors");
  file->excludes(defaults)->excludes(schema);
  defaults->excludes(schema);
  command->footer(R"(Errors name file, line, key, value and what is allowed, all of them at once.
Exit status: 0 good, 2 not good.)");
  command->callback([options, &status] {
    if (options->print_defaults) {
      std::cout << config::print_defaults();
    } else if (options->print_schema) {
      std::cout << config::print_schema();
    } else if (options->file.empty()) {
      std::cerr << "weir check: name a file, --print-defaults or --print-schema\n";
      status = kUsageError;
    } else {
      status = check(options->file);
    }
  });
}

}  // namespace weir::app
