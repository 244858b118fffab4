#include <string_view>

#include "config/option_table.h"

namespace weir::inline v0::config {
namespace {

constexpr std::string_view kIntro =
    "# Options\n\n"
    "Made from `src/config/options.def` by `weir_gen_reference options`; do not edit by hand.\n\n"
    "Sizes are written `\"4GiB\"` or as bytes, times `\"500ms\"` or, where the name ends in `_ms`, "
    "as\n"
    "milliseconds. \"live\": a reload (SIGHUP) is enough; \"restart\": it takes effect at the "
    "next\n"
    "start. Environment variables override the file; lists are written with commas there. A key "
    "or\n"
    "section that is not listed here is an error. `weir check --print-defaults` prints a file "
    "with\n"
    "all of them.\n";

template <class Owner>
void append_row(std::string& out, const Option<Owner>& option, const Owner& owner,
                std::string_view variable) {
  const std::string value = option.print(owner, option.row);
  out += "| `" + std::string(option.row.name) + "` | " + std::string(name_of(option.row.kind)) +
         " | " + (value.empty() ? "" : "`" + value + "`") + " | " + allowed_text(option, owner) +
         " | " + std::string(name_of(option.row.apply)) + " | ";
  if (!variable.empty()) out += "`" + std::string(variable) + "` | ";
  out += std::string(option.row.help) + " |\n";
}

template <class Owner>
void append_array(std::string& out, std::span<const Option<Owner>> options, std::string_view name) {
  const std::string headings =
      "| name | type | default | allowed | change | meaning |\n|---|---|---|---|---|---|\n";
  out += "\n## [[" + std::string(name) + "]]\n\n" + headings;
  for (const Option<Owner>& option : options) {
    if (option.row.section != name) {
      name = option.row.section;
      out += "\n## [" + std::string(name) + "], a table of one [[upstream]]\n\n" + headings;
    }
    append_row(out, option, Owner(), "");
  }
}

}  // namespace

std::string options_reference() {
  std::string out(kIntro);
  std::string_view section;
  for (const Option<Config>& option : config_options()) {
    if (option.row.section != section) {
      section = option.row.section;
      out += "\n## [" + std::string(section) + "]\n\n" +
             "| name | type | default | allowed | change | variable | meaning |\n" +
             "|---|---|---|---|---|---|---|\n";
    }
    append_row(out, option, Config(), environment_name(option.row));
  }
  append_array(out, upstream_options(), "upstream");
  append_array(out, route_options(), "route");
  out += "\n## Short variables\n\n| variable | option |\n|---|---|\n";
  for (const EnvironmentAlias& alias : environment_aliases()) {
    out += "| `" + std::string(alias.variable) + "` | `" + std::string(alias.section) + "." +
           std::string(alias.name) + "` |\n";
  }
  return out;
}

}  // namespace weir::inline v0::config
