#include "weir/experimental/config/print.h"

#include <cstddef>
#include <string_view>

#include "config/option_table.h"

namespace weir::inline v0::config {
namespace {

constexpr std::size_t kColumns = 96;

/// Comment lines, broken between words.
void append_comment(std::string& out, std::string_view text) {
  std::string line = "#";
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line = "#";
    }
    line += " " + std::string(word);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  out += line + "\n";
}

/// "Most requests in flight. (1 to 16383 requests; live)"
template <class Owner>
std::string comment_of(const Option<Owner>& option, const Owner& owner) {
  std::string note = allowed_text(option, owner);
  if (!note.empty()) note += "; ";
  note += name_of(option.row.apply);
  return std::string(option.row.help) + " (" + note + ")";
}

template <class Owner>
void append_option(std::string& out, const Option<Owner>& option, const Owner& owner) {
  const std::string value = option.print(owner, option.row);
  if (!value.empty()) out += std::string(option.row.name) + " = " + value + "\n";
}

template <class Owner>
void append_block(std::string& out, std::span<const Option<Owner>> options, const Owner& owner,
                  std::string_view section) {
  out += "\n[[" + std::string(section) + "]]\n";
  for (const Option<Owner>& option : options) {
    if (option.row.section != section) {
      section = option.row.section;
      out += "[" + std::string(section) + "]\n";
    }
    append_option(out, option, owner);
  }
}

/// An example of a [[section]], commented out; options that are not set show only their comment.
template <class Owner>
void append_example(std::string& out, std::span<const Option<Owner>> options, const Owner& example,
                    std::string_view section) {
  out += "\n# [[" + std::string(section) + "]]\n";
  for (const Option<Owner>& option : options) {
    if (option.row.section != section) {
      section = option.row.section;
      out += "# [" + std::string(section) + "]\n";
    }
    append_comment(out, comment_of(option, example));
    const std::string value = option.print(example, option.row);
    out += "# " + std::string(option.row.name) + " = " + value + "\n";
  }
}

std::string print_sections(const Config& config, bool comments) {
  std::string out;
  std::string_view section;
  for (const Option<Config>& option : config_options()) {
    if (option.row.section != section) {
      section = option.row.section;
      out += (out.empty() ? "[" : "\n[") + std::string(section) + "]\n";
    }
    if (comments) append_comment(out, comment_of(option, config));
    append_option(out, option, config);
  }
  return out;
}

}  // namespace

std::string print_defaults() {
  std::string out =
      "# Every option at its default. Times may be written \"500ms\", sizes \"4GiB\". \"live\": a "
      "reload\n# (SIGHUP) is enough; \"restart\": it takes effect at the next start.\n\n";
  out += print_sections(Config(), true);
  upstream::UpstreamConfig upstream;
  upstream.name = "app";
  upstream.endpoints = {*upstream::parse_source("127.0.0.1:3000")};
  append_example(out, upstream_options(), upstream, "upstream");
  gateway::RouteConfig route;
  route.upstream = "app";
  append_example(out, route_options(), route, "route");
  return out;
}

std::string print_config(const Config& config) {
  std::string out = print_sections(config, false);
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    append_block(out, upstream_options(), upstream, "upstream");
  }
  for (const gateway::RouteConfig& route : config.routes)
    append_block(out, route_options(), route, "route");
  return out;
}

std::string print_admission(const Config& config) {
  std::string out;
  std::string_view section;
  for (const Option<Config>& option : config_options()) {
    if (!option.row.field.starts_with("admission.")) continue;
    if (option.row.section != section) {
      section = option.row.section;
      out += "[" + std::string(section) + "]\n";
    }
    append_option(out, option, config);
  }
  upstream::UpstreamConfig nowhere;
  nowhere.endpoints = {*upstream::parse_source("127.0.0.1:1")};
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    out += "[[upstream]]\n";
    for (const Option<upstream::UpstreamConfig>& option : upstream_options()) {
      const bool limits = option.row.field.starts_with("limit.") || option.row.name == "name";
      if (limits) append_option(out, option, upstream);
      if (option.row.name == "endpoints") append_option(out, option, nowhere);
    }
  }
  if (config.upstreams.size() < 2) return out;
  // Several upstreams need a route, or the text could not be read again.
  gateway::RouteConfig anything;
  anything.upstream = config.upstreams.front().name;
  out += "[[route]]\n";
  for (const Option<gateway::RouteConfig>& option : route_options()) {
    if (option.row.name == "upstream") append_option(out, option, anything);
  }
  return out;
}

}  // namespace weir::inline v0::config
