#include <string>
#include <string_view>

#include "config/option_table.h"
#include "manual.h"
#include "roff.h"

namespace weir::app {
namespace {

/// An option, its default, what it does, and below: type, range, change, variable.
template <class Owner>
std::string entry(const config::Option<Owner>& option, const Owner& owner,
                  std::string_view variable) {
  const std::string value = option.print(owner, option.row);
  std::string out = ".TP\n" + roff::bold(option.row.name);
  if (!value.empty()) out += " = " + roff::text(value);
  out += "\n" + roff::prose(option.row.help) + "\n.br\n";
  std::string facts(name_of(option.row.kind));
  if (const std::string allowed = config::allowed_text(option, owner); !allowed.empty()) {
    facts += "; " + allowed;
  }
  facts += "; " + std::string(name_of(option.row.apply));
  out += "(" + roff::text(facts);
  if (!variable.empty()) out += "; " + roff::italic(variable);
  return out + ")\n";
}

template <class Owner>
std::string entries(std::span<const config::Option<Owner>> options, std::string_view name) {
  std::string out = roff::request("SS", "[[" + std::string(name) + "]]");
  for (const config::Option<Owner>& option : options) {
    if (option.row.section != name) {
      name = option.row.section;
      out += roff::request("SS", "[" + std::string(name) + "]");
      out += "A table of one [[upstream]].\n";
    }
    out += entry(option, Owner(), "");
  }
  return out;
}

// A line that is not indented is a paragraph.
constexpr std::string_view kDescription =
    "Sizes are written \"4GiB\" or as bytes, times \"500ms\" or, where the name ends in _ms, as "
    "milliseconds.\n"
    "A key or section that is not listed here is an error. `weir check FILE` names all errors at "
    "once, with line, key and what is allowed; `weir check --print-defaults` prints a file with "
    "all "
    "options.\n"
    "After the meaning of an option stand its type, what is allowed, whether a reload (SIGHUP, "
    "`systemctl reload weir`) is enough (live) or a new start is needed (restart), and the "
    "environment variable that overrides the file. Lists are written with commas there.\n"
    "The smallest file:\n"
    "  [[upstream]]\n"
    "  name = \"app\"\n"
    "  endpoints = [\"127.0.0.1:3000\"]";

}  // namespace

std::string manual_of_options(std::string_view source_date) {
  std::string out = roff::title("WEIR.TOML", 5, source_date);
  out += ".SH NAME\nweir.toml \\- configuration of weir\n.SH DESCRIPTION\n";
  out += roff::block(kDescription).substr(std::string_view(".PP\n").size());  // .SH began one
  out += ".SH OPTIONS\n";
  std::string_view section;
  for (const config::Option<config::Config>& option : config::config_options()) {
    if (option.row.section != section) {
      section = option.row.section;
      out += roff::request("SS", "[" + std::string(section) + "]");
    }
    out += entry(option, config::Config(), config::environment_name(option.row));
  }
  out += entries(config::upstream_options(), "upstream");
  out += entries(config::route_options(), "route");
  out += ".SH ENVIRONMENT\nShort names of variables:\n";
  for (const config::EnvironmentAlias& alias : config::environment_aliases()) {
    out += ".TP\n" + roff::italic(alias.variable) + "\n" +
           roff::bold(std::string(alias.section) + "." + std::string(alias.name)) + "\n";
  }
  out += ".SH FILES\n.TP\n.I /etc/weir/weir.toml\nRead by the service.\n";
  return out + ".SH SEE ALSO\n.BR weir (1)\n";
}

}  // namespace weir::app
