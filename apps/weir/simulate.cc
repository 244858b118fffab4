#include "weir/experimental/sim/simulate.h"

#include <iostream>
#include <memory>

#include <unistd.h>

#include "weir/base/time.h"
#include "weir/experimental/io/clock.h"

#include "subcommand.h"

namespace weir::app {

void add_simulate(CLI::App& program, int& status) {
  const auto options = std::make_shared<sim::SimulateOptions>();
  CLI::App* command = program.add_subcommand(
      "simulate", "Run scenarios in virtual time, with the same code that guards real traffic");
  command->add_option("FILE", options->files, "Scenario files (TOML), or a folder to list")
      ->required();
  command->add_flag("--json", options->json, "Report as JSON");
  command->add_flag("--series", options->series, "With --json: the time series too");
  command->add_option("--plot", options->plot, "Write a picture (SVG) to this file")
      ->type_name("FILE");
  command
      ->add_option("--set", options->assignments,
                   "Change one value, as in load.web.rate=2000 or service.*.workers=32")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--compare", options->compare,
                   "Run each scenario with these limiters: none,fixed:64,vegas,auto")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--seeds", options->seeds,
                   "Run with this many seeds; the median and the worst of each verdict")
      ->check(CLI::Range(1, 10000));
  command->add_flag("--search-fixed", options->search_fixed,
                    "Find the best fixed limit, per phase if there are any, and compare");
  command->footer("Exit status: 0 all verdicts hold, 1 one does not, 2 bad input.");
  command->callback([options, &status] {
    const sim::SimulateShell shell{
        std::cout, std::cerr, [] { return to_seconds(io::monotonic_now().time_since_epoch()); },
        isatty(STDERR_FILENO) == 1};
    status = simulate(*options, shell);
  });
}

}  // namespace weir::app
