#include "weir/experimental/config/load.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "weir/base/errno_text.h"

#include "config/nearest.h"
#include "config/option_table.h"
#include "config/toml_reader.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): no header of POSIX has it

namespace weir::inline v0::config {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{4} << 20U;
constexpr std::array<std::string_view, 2> kArraySections = {"upstream", "route"};

bool is_array_section(std::string_view name) {
  return std::find(kArraySections.begin(), kArraySections.end(), name) != kArraySections.end();
}

bool is_upstream_table(std::string_view name) {
  const auto known = upstream_tables();
  return std::find(known.begin(), known.end(), name) != known.end();
}

bool is_plain_section(std::string_view name) {
  const auto known = plain_sections();
  return std::find(known.begin(), known.end(), name) != known.end();
}

std::string did_you_mean(std::string_view what, std::string_view candidate) {
  std::string text = "a known " + std::string(what);
  if (!candidate.empty()) text += "; did you mean " + std::string(candidate) + "?";
  return text;
}

/// "admission", or "upstream[2]" for the third of several, or "upstream[2].tls" for a table in it.
std::string section_key(const std::string& section, int index) {
  if (index < 0) return section;
  const std::size_t dot = std::min(section.find('.'), section.size());
  return section.substr(0, dot) + "[" + std::to_string(index) + "]" + section.substr(dot);
}

template <class Owner>
std::vector<std::string_view> names_in(std::span<const Option<Owner>> options,
                                       std::string_view section) {
  std::vector<std::string_view> names;
  for (const Option<Owner>& option : options) {
    if (option.row.section == section) names.push_back(option.row.name);
  }
  return names;
}

/// The section that has an option of exactly this name; empty if none or several have one.
std::string_view home_of(std::string_view name) {
  std::string_view home;
  for (const Option<Config>& option : config_options()) {
    if (option.row.name != name) continue;
    if (!home.empty()) return {};
    home = option.row.section;
  }
  return home;
}

/// By line; errors without a line come last.
bool by_place(const ConfigError& a, const ConfigError& b) {
  const auto rank = [](const ConfigError& error) {
    return error.line > 0 ? error.line : std::numeric_limits<int>::max();
  };
  return rank(a) < rank(b);
}

class Loader {
 public:
  explicit Loader(std::string file) : file_(std::move(file)) {}

  void read(const RawConfig& raw) {
    for (const RawSection& section : raw.sections) take_section(section);
    for (const RawEntry& entry : raw.entries) take_entry(entry);
  }

  void override_from(const Environment& environment) {
    std::set<std::string_view> used;
    for (const EnvironmentAlias& alias : environment_aliases()) {
      override_one(environment, alias.variable,
                   *find_option(config_options(), alias.section, alias.name), used);
    }
    for (const Option<Config>& option : config_options()) {
      override_one(environment, environment_name(option.row), option, used);
    }
    for (const EnvironmentVariable& variable : environment) {
      if (used.count(variable.name) == 0) note_unknown(variable);
    }
  }

  LoadedConfig finish() && {
    for (ConfigError& error : out_.config.validate()) {
      if (refused_.count(error.key) == 0) add(out_.errors, std::move(error));
    }
    for (ConfigError& warning : out_.config.warnings()) add(out_.warnings, std::move(warning));
    std::stable_sort(out_.errors.begin(), out_.errors.end(), by_place);
    return std::move(out_);
  }

 private:
  struct Place {
    std::string file;
    int line = 0;
  };

  /// Adds an error about a key, with the file and line of the key or else of its section.
  void add(ConfigErrors& to, ConfigError error) const {
    std::string_view key = error.key;
    while (error.line == 0 && error.file.empty()) {
      const auto found = places_.find(std::string(key));
      if (found != places_.end()) {
        error.file = found->second.file;
        error.line = found->second.line;
        break;
      }
      const std::size_t dot = key.rfind('.');
      if (dot == std::string_view::npos) {
        error.file = file_;
        break;
      }
      key = key.substr(0, dot);
    }
    to.push_back(std::move(error));
  }

  void refuse(const std::string& key, std::string value, std::string allowed, Place place) {
    refused_.insert(key);
    out_.errors.push_back(
        {key, std::move(value), std::move(allowed), std::move(place.file), place.line});
  }

  void take_section(const RawSection& section) {
    const std::string key = section_key(section.name, section.index);
    places_[key] = {file_, section.line};
    const bool as_array = section.repeated;
    if (is_array_section(section.name) && as_array) {
      const auto count = static_cast<std::size_t>(section.index) + 1;
      if (section.name == "upstream") out_.config.upstreams.resize(count);
      if (section.name == "route") out_.config.routes.resize(count);
      return;
    }
    if (is_plain_section(section.name) && !as_array) return;
    if (is_upstream_table(section.name) && !as_array && section.index >= 0) return;
    bad_sections_.insert(section.name);
    if (as_array && section.index > 0) return;  // already reported
    if (is_array_section(section.name)) {
      refuse(key, "[" + section.name + "]", "written [[" + section.name + "]]", places_[key]);
    } else if (is_plain_section(section.name) || is_upstream_table(section.name)) {
      if (!as_array) return;  // below a section that is refused
      refuse(key, "[[" + section.name + "]]", "written [" + section.name + "], once", places_[key]);
    } else if (!has_bad_parent(section.name)) {
      std::vector<std::string_view> known(plain_sections().begin(), plain_sections().end());
      known.insert(known.end(), kArraySections.begin(), kArraySections.end());
      known.insert(known.end(), upstream_tables().begin(), upstream_tables().end());
      refuse(key, "[" + section.name + "]", did_you_mean("section", nearest(section.name, known)),
             places_[key]);
    }
  }

  /// Whether a parent section was refused; a section below it gives no second message.
  [[nodiscard]] bool has_bad_parent(std::string_view name) const {
    for (std::size_t dot = name.rfind('.'); dot != std::string_view::npos; dot = name.rfind('.')) {
      name = name.substr(0, dot);
      if (bad_sections_.count(std::string(name)) != 0) return true;
    }
    return false;
  }

  void take_entry(const RawEntry& entry) {
    if (entry.section.empty()) return take_homeless(entry);
    if (bad_sections_.count(entry.section) != 0 || has_bad_parent(entry.section)) return;
    if (entry.section == "upstream" || is_upstream_table(entry.section)) {
      set(out_.config.upstreams[static_cast<std::size_t>(entry.index)], upstream_options(), entry);
    } else if (entry.section == "route") {
      set(out_.config.routes[static_cast<std::size_t>(entry.index)], route_options(), entry);
    } else {
      set(out_.config, config_options(), entry);
    }
  }

  void take_homeless(const RawEntry& entry) {
    const std::string_view home = home_of(entry.name);
    std::string allowed = home.empty() ? "below a [section]" : "below [" + std::string(home) + "]";
    if (is_array_section(entry.name)) allowed = "written [[" + entry.name + "]]";
    if (is_plain_section(entry.name)) allowed = "written [" + entry.name + "]";
    refuse(entry.name, to_text(entry.value), std::move(allowed), {file_, entry.line});
  }

  template <class Owner>
  void set(Owner& owner, std::span<const Option<Owner>> options, const RawEntry& entry) {
    const std::string key = section_key(entry.section, entry.index) + "." + entry.name;
    places_[key] = {file_, entry.line};
    const Option<Owner>* option = find_option(options, entry.section, entry.name);
    if (option != nullptr) return assign(owner, *option, entry.value, key);
    const auto names = names_in(options, entry.section);
    const std::string_view home = home_of(entry.name);
    std::string allowed = did_you_mean("key", nearest(entry.name, names));
    if (!home.empty()) allowed = "below [" + std::string(home) + "], where that key belongs";
    refuse(key, to_text(entry.value), std::move(allowed), places_[key]);
  }

  template <class Owner>
  void assign(Owner& owner, const Option<Owner>& option, const RawValue& value,
              const std::string& key) {
    if (Refusal refusal = option.assign(owner, value, option.row)) {
      refuse(key, to_text(value), std::move(*refusal), places_[key]);
    }
  }

  void override_one(const Environment& environment, std::string_view name,
                    const Option<Config>& option, std::set<std::string_view>& used) {
    for (const EnvironmentVariable& variable : environment) {
      if (variable.name != name) continue;
      used.insert(variable.name);
      const std::string key = option.row.key();
      places_[key] = {"environment variable " + variable.name, 0};
      assign(out_.config, option, raw_from_text(variable.value, option.row), key);
    }
  }

  /// Reports only likely misspellings, because other programs may use WEIR_ names too.
  void note_unknown(const EnvironmentVariable& variable) {
    std::vector<std::string> names;
    for (const Option<Config>& option : config_options()) {
      names.push_back(environment_name(option.row));
    }
    for (const EnvironmentAlias& alias : environment_aliases()) names.emplace_back(alias.variable);
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string_view meant = nearest(variable.name, known);
    if (meant.empty()) return;
    out_.unknown_variables.push_back({variable.name, quoted_text(variable.value),
                                      did_you_mean("variable", meant), "environment", 0});
  }

  std::string file_;
  LoadedConfig out_;
  std::map<std::string, Place> places_;
  std::set<std::string> refused_;
  std::set<std::string> bad_sections_;
};

LoadedConfig unreadable(const std::string& path, std::string why) {
  LoadedConfig out;
  out.errors.push_back({"", std::move(why), "a readable file of at most 4 MiB", path, 0});
  return out;
}

}  // namespace

Environment process_environment() {
  Environment found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with("WEIR_") || equals == std::string_view::npos) continue;
    found.push_back({std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
  return found;
}

LoadedConfig load_config(std::string_view toml, const std::string& file,
                         const Environment& environment) {
  RawConfig raw = read_toml(toml, file);
  if (!raw.syntax.empty()) {
    LoadedConfig out;
    out.errors = std::move(raw.syntax);
    return out;
  }
  Loader loader(file);
  loader.read(raw);
  loader.override_from(environment);
  return std::move(loader).finish();
}

LoadedConfig load_config_file(const std::string& path, const Environment& environment) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return unreadable(path, errno_text(static_cast<std::errc>(errno)));
  std::string text;
  std::array<char, 16384> chunk;
  while (file.read(chunk.data(), chunk.size()) || file.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kFileBytesMax) return unreadable(path, errno_text(std::errc::file_too_large));
  }
  if (file.bad()) return unreadable(path, errno_text(static_cast<std::errc>(errno)));
  return load_config(text, path, environment);
}

std::string to_text(const ConfigError& error) {
  std::string text = error.file;
  if (error.line > 0) text += ":" + std::to_string(error.line);
  if (!text.empty()) text += ": ";
  text += error.key;
  if (!error.key.empty() && !error.value.empty()) text += " = ";
  text += error.value;
  if (!error.allowed.empty()) text += ": must be " + error.allowed;
  return text;
}

}  // namespace weir::inline v0::config
