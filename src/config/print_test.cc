#include "weir/experimental/config/print.h"

#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "weir/base/rng.h"
#include "weir/experimental/config/load.h"

#include "config/option_table.h"

namespace weir::config {
namespace {

TEST(PrintDefaults, LoadsBackAsTheDefaults) {
  const LoadedConfig loaded = load_config(print_defaults(), "defaults.toml");
  for (const ConfigError& error : loaded.errors) ADD_FAILURE() << to_text(error);
  EXPECT_EQ(loaded.config, Config());
}

TEST(PrintDefaults, NamesEveryOptionWithItsHelp) {
  const std::string text = print_defaults();
  for (const auto& option : config_options()) {
    EXPECT_NE(text.find("\n" + std::string(option.row.name) + " = "), std::string::npos)
        << option.row.key();
  }
  EXPECT_NE(text.find("\n# [[upstream]]\n"), std::string::npos);
  EXPECT_NE(text.find("\n# [[route]]\n"), std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST(PrintDefaults, UncommentedExamplesLoad) {
  std::string text;
  std::istringstream lines(print_defaults());
  bool example = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# [[")) example = true;
    // "# name = value" of an example; an option that is not set has no value.
    const std::size_t equals = line.find(" = ");
    const bool assignment = equals != std::string::npos && line.find(' ', 2) == equals;
    const bool left_out = assignment && equals + 3 == line.size();
    if (example && !left_out && (line.starts_with("# [") || assignment)) line.erase(0, 2);
    text += line + "\n";
  }
  const LoadedConfig loaded = load_config(text, "example.toml");
  for (const ConfigError& error : loaded.errors) ADD_FAILURE() << to_text(error);
  ASSERT_EQ(loaded.config.upstreams.size(), 1U);
  EXPECT_EQ(loaded.config.upstreams[0].name, "app");
  ASSERT_EQ(loaded.config.routes.size(), 1U);
  EXPECT_EQ(loaded.config.routes[0].upstream, "app");
}

/// A random value in the option's range, as an entry of the file would give it.
template <class Owner>
void randomize(Rng& rng, Owner& owner, const Option<Owner>& option) {
  const OptionRow& row = option.row;
  const Words words = option.choices(owner);
  RawValue value;
  if (!words.empty()) {
    const RawValue word{std::string(words[rng.below(words.size())])};
    value = is_list(row.kind) ? RawValue{RawValue::List{word}} : word;
  } else if (row.kind == OptionKind::kRatio) {
    value = {row.low + rng.unit() * (row.high - row.low)};
  } else if (row.has_range()) {
    value = {rng.between(static_cast<std::int64_t>(row.low), static_cast<std::int64_t>(row.high))};
  } else if (row.kind == OptionKind::kFlag) {
    value = {rng.below(2) == 1};
  } else if (row.kind == OptionKind::kRanges) {
    value = {RawValue::List{{std::string("10.0.0.0/8")}, {std::string("2001:db8::/32")}}};
  } else if (row.kind == OptionKind::kAddresses) {
    value = {RawValue::List{{std::string("unix:/a b\"c")},
                            {"[::1]:" + std::to_string(rng.below(65536))}}};
  } else if (row.kind == OptionKind::kSources) {
    value = {
        RawValue::List{{std::string("file:/a\"c")},
                       {std::string("dns:api:80 zone=z\\z")},
                       {"[::1]:" + std::to_string(1 + rng.below(65535)) + " weight=7 drain=true"}}};
  } else if (row.kind == OptionKind::kTexts) {
    value = {RawValue::List{{std::string("GET")}}};
  } else if (row.kind == OptionKind::kText) {
    value = {"text \"\\\t\x01 ä" + std::to_string(rng.below(100))};
  } else {
    value = {std::string("127.0.0.1:") + std::to_string(rng.below(65536))};
  }
  ASSERT_EQ(option.assign(owner, value, row), std::nullopt) << row.key();
}

// Every value that can be set can be printed and read back. The configuration as a whole may be
// invalid here.
TEST(PrintConfig, EveryConfigurationReadsBackAsItself) {
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    Config config;
    for (const auto& option : config_options()) randomize(rng, config, option);
    config.upstreams.resize(rng.below(3));
    for (auto& upstream : config.upstreams) {
      for (const auto& option : upstream_options()) {
        if (rng.below(2) == 0) randomize(rng, upstream, option);
      }
    }
    config.routes.resize(rng.below(3));
    for (auto& route : config.routes) {
      for (const auto& option : route_options()) {
        if (rng.below(2) == 0) randomize(rng, route, option);
      }
    }
    ASSERT_EQ(load_config(print_config(config), "printed.toml").config, config) << round;
  }
}

TEST(PrintAdmission, DecidesTheSameAndSaysNothingElse) {
  Config config;
  config.admission.max_concurrent = 77;
  config.admission.modes.peer = RuleMode::kShadow;
  config.admission.limit.policy = LimitKind::kVegas;
  config.actors.api_key_header = "x-secret-name";
  config.upstreams.resize(2);
  config.upstreams[0].name = "app";
  config.upstreams[0].endpoints = {*upstream::parse_source("192.0.2.7:80")};
  config.upstreams[1].name = "reports";
  config.upstreams[1].endpoints = config.upstreams[0].endpoints;
  config.upstreams[1].limit.max_limit = 9;
  config.upstreams[1].limit.initial_limit = 5;
  const std::string text = print_admission(config);
  EXPECT_EQ(text.find("192.0.2.7"), std::string::npos);
  EXPECT_EQ(text.find("x-secret-name"), std::string::npos);
  const LoadedConfig read = load_config(text, "printed.toml");
  ASSERT_TRUE(read.ok()) << to_text(read.errors.front());
  EXPECT_EQ(read.config.admission, config.admission);
  ASSERT_EQ(read.config.upstreams.size(), 2U);
  EXPECT_EQ(read.config.upstreams[0].name, "app");
  EXPECT_EQ(read.config.limit_of(read.config.upstreams[1]), config.limit_of(config.upstreams[1]));
}

}  // namespace
}  // namespace weir::config
