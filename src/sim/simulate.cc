#include "weir/experimental/sim/simulate.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "weir/base/errno_text.h"

#include "compare.h"
#include "config/nearest.h"
#include "fixed_search.h"
#include "report.h"
#include "run.h"
#include "scenario_reader.h"
#include "seeds.h"

namespace weir::inline v0::sim {
namespace {

constexpr int kPassed = 0;
constexpr int kFailed = 1;
constexpr int kBadInput = 2;

std::optional<std::string> read_file(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return std::nullopt;
  const std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

std::string quoted(const std::string& text) {
  const bool plain = text.find_first_of(" \"'\\$*?[]{}()<>|&;#~`") == std::string::npos;
  return plain ? text : "'" + text + "'";
}

class Session {
 public:
  Session(const SimulateOptions& options, const SimulateShell& shell)
      : options_(options), shell_(shell) {}

  int run() {
    if (options_.files.empty()) return bad("no scenario file given");
    for (const std::string& name : options_.compare) {
      if (!limiter_named(name)) {
        std::string allowed = "none, fixed:N (1 to 16383)";
        for (const std::string_view kind : kLimitKindNames) allowed.append(", ").append(kind);
        const std::string_view near = config::nearest(name, kLimitKindNames);
        const std::string meant = near.empty() ? "" : ", did you mean " + std::string(near) + "?";
        return bad("--compare: unknown limiter '" + name + "'" + meant + "; allowed: " + allowed);
      }
    }
    if (options_.files.size() == 1 && std::filesystem::is_directory(options_.files[0])) {
      return list(options_.files[0]);
    }
    std::vector<Scenario> scenarios;
    for (const std::string& file : options_.files) {
      auto scenario = load(file);
      if (!scenario) return kBadInput;
      scenarios.push_back(std::move(*scenario));
    }
    for (const Scenario& scenario : scenarios) {
      const int status = one(scenario);
      if (status == kBadInput) return status;
      status_ = status == kFailed ? kFailed : status_;
    }
    if (options_.json) shell_.out << json_list(json_);
    return status_;
  }

 private:
  int bad(const std::string& message) {
    shell_.err << "weir simulate: " << message << "\n";
    return kBadInput;
  }

  std::optional<Scenario> load(const std::string& file) {
    const auto text = read_file(file);
    if (!text) {
      const auto why = std::filesystem::is_directory(file) ? std::errc::is_a_directory
                                                           : static_cast<std::errc>(errno);
      static_cast<void>(bad(file + ": " + errno_text(why)));
      return std::nullopt;
    }
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    const FileSource files = [folder](const std::string& path) { return read_file(folder / path); };
    auto scenario = read_scenario_text(*text, file, options_.assignments, files);
    if (!scenario) {
      shell_.err << printed(scenario.error());
      return std::nullopt;
    }
    return std::move(scenario).value();
  }

  // What there is to run in a folder.
  int list(const std::string& folder) {
    std::vector<std::string> files;
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
      if (entry.path().extension() == ".toml") files.push_back(entry.path().string());
    }
    if (files.empty()) return bad(folder + ": no scenario (*.toml) in it");
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) {
      const auto scenario = load(file);
      if (!scenario) return kBadInput;
      shell_.out << fmt::format("{:<48} {}\n", file, scenario->name);
    }
    return kPassed;
  }

  int one(const Scenario& scenario) {
    if (options_.search_fixed) return search(scenario);
    if (!options_.compare.empty()) return compare(scenario);
    if (options_.seeds > 0) return seeds(scenario);
    const RunResult result = timed_run(scenario, scenario.name);
    report(scenario, result, "");
    if (!write_plot(scenario, result, "")) return kBadInput;
    return result.passed() ? kPassed : kFailed;
  }

  // A limiter passes if its goodput is close to the best fixed limit's and its latency is low. A
  // scenario with phases has verdicts for that; here its committed oracles are checked.
  int search(const Scenario& scenario) {
    const FixedSearch found = search_fixed(scenario, progress_line(scenario.name + ", search"));
    clear_line();
    shell_.out << scenario.name << "\n" << printed(scenario, found);
    if (!scenario.phases.empty()) return found.oracles_hold(scenario) ? kPassed : kFailed;
    return found.enough_goodput() && found.quick_enough() ? kPassed : kFailed;
  }

  int seeds(const Scenario& scenario) {
    const SeedsResult result =
        run_seeds(scenario, options_.seeds, progress_line(scenario.name + ", seeds"));
    clear_line();
    if (options_.json) {
      json_.push_back(seeds_json(scenario, result));
    } else {
      shell_.out << seeds_text(scenario, result) << "\n";
    }
    return result.passed() ? kPassed : kFailed;
  }

  // A comparison passes if the last limiter, the candidate, passes.
  int compare(const Scenario& scenario) {
    std::vector<CompareRow> rows;
    bool passed = true;
    for (const std::string& name : options_.compare) {
      const Scenario changed = with_limiter(scenario, *limiter_named(name));
      const RunResult result = timed_run(changed, scenario.name + ", " + name);
      rows.push_back(row_of(changed, result, name));
      passed = result.passed();
      if (options_.json) json_.push_back(json_report(changed, result, options_.series));
      if (!write_plot(changed, result, name)) return kBadInput;
    }
    if (!options_.json) shell_.out << compare_table(scenario, rows) << "\n";
    return passed ? kPassed : kFailed;
  }

  RunResult timed_run(const Scenario& scenario, const std::string& label) {
    const double before = shell_.wall_seconds ? shell_.wall_seconds() : 0;
    RunResult result = run_scenario(scenario, nullptr, progress_line(label));
    if (shell_.wall_seconds) result.wall_seconds = shell_.wall_seconds() - before;
    clear_line();
    return result;
  }

  void report(const Scenario& scenario, const RunResult& result, const std::string& limiter) {
    if (options_.json) {
      json_.push_back(json_report(scenario, result, options_.series));
    } else {
      shell_.out << text_report(scenario, result, command(scenario, limiter)) << "\n";
    }
  }

  [[nodiscard]] std::string command(const Scenario& scenario, const std::string& limiter) const {
    std::string text = "weir simulate " + quoted(scenario.file);
    for (const std::string& assignment : options_.assignments)
      text += " --set " + quoted(assignment);
    if (!limiter.empty()) text += " --compare " + limiter;
    return text;
  }

  bool write_plot(const Scenario& scenario, const RunResult& result, const std::string& limiter) {
    if (options_.plot.empty()) return true;
    std::filesystem::path path = options_.plot;
    std::string name = path.stem().string();
    if (options_.files.size() > 1) {
      name += "-" + std::filesystem::path(scenario.file).stem().string();
    }
    if (options_.compare.size() > 1) name += "-" + limiter;
    path.replace_filename(name + path.extension().string());
    std::ofstream out(path, std::ios::binary);
    out << plot_svg(scenario, result);
    if (out.good()) return true;
    static_cast<void>(bad("--plot: cannot write " + path.string() + ": " +
                          errno_text(static_cast<std::errc>(errno))));
    return false;
  }

  // One line that is overwritten at most four times a second, for runs that take longer than that.
  Progress progress_line(const std::string& label) {
    if (!shell_.progress || !shell_.wall_seconds) return nullptr;
    shown_at_ = shell_.wall_seconds();
    return [this, label](double share, std::uint64_t requests) {
      const double now = shell_.wall_seconds();
      if (now - shown_at_ < 0.25) return;
      shown_at_ = now;
      shown_ = true;
      shell_.err << fmt::format("\r\x1b[K{}: {:.0f} %", label, share * 100);
      if (requests > 0) {
        shell_.err << fmt::format(", {:.1f} million requests", static_cast<double>(requests) / 1e6);
      }
      shell_.err.flush();
    };
  }
  void clear_line() {
    if (shown_) shell_.err << "\r\x1b[K" << std::flush;
    shown_ = false;
  }

  const SimulateOptions& options_;
  const SimulateShell& shell_;
  std::vector<std::string> json_;
  int status_ = kPassed;
  double shown_at_ = 0;
  bool shown_ = false;
};

}  // namespace

int simulate(const SimulateOptions& options, const SimulateShell& shell) {
  return Session(options, shell).run();
}

}  // namespace weir::inline v0::sim
