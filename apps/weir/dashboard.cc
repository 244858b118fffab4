#include <iostream>
#include <memory>

#include "admin_target.h"
#include "subcommand.h"

namespace weir::app {

void add_dashboard(CLI::App& program, int& status) {
  const auto target = std::make_shared<AdminTarget>();
  CLI::App* command =
      program.add_subcommand("dashboard", "Print the address of the dashboard, for a browser");
  add_admin_target(*command, *target);
  command->footer(
      R"(With admin.actions = "token" the address contains the token: keep it to yourself.
Exit status: 0 printed, 1 there is none.)");
  command->callback([target, &status] {
    const auto address = dashboard_for(*target);
    if (address) {
      std::cout << *address << "\n";
    } else {
      std::cerr << "weir dashboard: " << address.error() << "\n";
      status = kFailed;
    }
  });
}

}  // namespace weir::app
