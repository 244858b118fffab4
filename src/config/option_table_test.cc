#include "config/option_table.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::config {
namespace {

template <class F>
void for_each_row(F f) {
  for (const auto& option : config_options()) f(option.row);
  for (const auto& option : upstream_options()) f(option.row);
  for (const auto& option : route_options()) f(option.row);
}

TEST(OptionTable, NamesAndKindsAreThoseOfTheGoldenFile) {
  std::string names;
  for_each_row([&](const OptionRow& row) {
    names += row.key() + " " + std::string(name_of(row.kind)) + "\n";
  });
  std::ifstream file(WEIR_GOLDEN_DIR "/options.txt");
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(names, golden.str())
      << "A released name must not change. For a new one, add its line to tests/golden/options.txt";
}

TEST(OptionTable, EveryRowFollowsTheRules) {
  std::set<std::string> keys;
  for_each_row([&](const OptionRow& row) {
    SCOPED_TRACE(row.key());
    EXPECT_TRUE(keys.insert(row.key()).second) << "twice in the table";
    EXPECT_TRUE(row.help.ends_with("."));
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(row.help[0])) != 0);
    EXPECT_LE(row.low, row.high);
    if (row.kind == OptionKind::kCount || row.kind == OptionKind::kSize ||
        row.kind == OptionKind::kTime || row.kind == OptionKind::kRatio) {
      EXPECT_TRUE(row.has_range());
    }
    EXPECT_TRUE(row.kind != OptionKind::kTime || row.name.ends_with("_ms"));
    EXPECT_TRUE(row.kind != OptionKind::kCount || !row.unit.empty());
  });
}

TEST(OptionTable, HasEverySection) {
  EXPECT_THAT(
      std::vector<std::string_view>(plain_sections().begin(), plain_sections().end()),
      testing::UnorderedElementsAre("listen", "tls", "admin", "server", "http2", "admission",
                                    "admission.limit", "actors", "actors.jwt", "priority", "memory",
                                    "trust", "dns", "reload", "recorder", "hedge"));
}

TEST(OptionTable, RowsOfOneSectionStandTogether) {
  std::set<std::string_view> finished;
  std::string_view current;
  for (const auto& option : config_options()) {
    if (option.row.section == current) continue;
    EXPECT_TRUE(finished.insert(option.row.section).second) << option.row.section;
    current = option.row.section;
  }
}

TEST(OptionTable, EnvironmentNamesAreDistinct) {
  std::set<std::string> names;
  for (const auto& option : config_options()) {
    EXPECT_TRUE(names.insert(environment_name(option.row)).second) << option.row.key();
  }
  for (const auto& alias : environment_aliases()) {
    EXPECT_TRUE(names.insert(std::string(alias.variable)).second) << alias.variable;
    EXPECT_NE(find_option(config_options(), alias.section, alias.name), nullptr) << alias.variable;
  }
  EXPECT_EQ(names.count("WEIR_ADMISSION_MAX_CONCURRENT"), 1U);
  EXPECT_EQ(names.count("WEIR_ADMISSION_LIMIT_MIN_LIMIT"), 1U);
  EXPECT_EQ(names.count("WEIR_MEMORY_PRESSURE_THRESHOLD"), 1U) << "the section is not said twice";
  EXPECT_EQ(names.count("WEIR_PER_ACTOR_INFLIGHT_MAX"), 1U);
  EXPECT_EQ(names.count("WEIR_PER_ACTOR_BYTES_MAX"), 1U);
}

// Every option that can be set by name must stay in the table with that name and its default.
TEST(OptionTable, HasTheOptionsOperatorsRelyOn) {
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"admission.max_concurrent", "1024"},
      {"admission.per_peer_limit", "64"},
      {"admission.limit.initial_limit", "128"},
      {"admission.limit.min_limit", "0"},
      {"admission.limit.vegas_alpha", "2.0"},
      {"admission.limit.vegas_beta", "8.0"},
      {"admission.limit.window_duration_ms", "1000"},
      {"admission.limit.policy", "\"auto\""},
      {"memory.memory_pressure_threshold", "0.85"},
      {"memory.memory_critical_threshold", "0.95"},
      {"memory.low_priority_shed_ratio", "1.0"},
      {"memory.poll_interval_ms", "500"},
      {"server.max_connections", "1536"},
      {"server.conn_encrypted_buf_size", "\"32KiB\""},
      {"server.conn_decrypted_buf_size", "\"32KiB\""},
      {"server.tcp_write_buffer_pool_size", "3072"},
      {"server.backpressure_list_max", "1000"},
      {"server.backpressure_timeout_ms", "30000"},
      {"server.high_watermark", "0.85"},
      {"server.critical_watermark", "0.95"},
      {"actors.inflight_max", "100"},
      {"actors.bytes_max", "\"4GiB\""},
      {"priority.high_limit", "0"},
      {"priority.normal_limit", "0"},
      {"priority.low_limit", "0"},
      {"priority.warn_threshold", "0.8"},
      {"admin.listen", "\"127.0.0.1:9901\""},
  };
  const Config defaults;
  for (const auto& [key, value] : expected) {
    const std::size_t dot = key.rfind('.');
    const auto* option = find_option(config_options(), key.substr(0, dot), key.substr(dot + 1));
    ASSERT_NE(option, nullptr) << key;
    EXPECT_EQ(option->print(defaults, option->row), value) << key;
  }
}

TEST(OptionTable, DefaultsAreInsideOfTheirRanges) {
  Config config;
  for (const auto& option : config_options()) {
    const RawValue printed = raw_from_text(option.print(config, option.row), option.row);
    if (!option.row.has_range()) continue;
    RawValue value = printed;  // sizes print with quotes
    if (const auto* text = std::get_if<std::string>(&printed.data)) {
      value = {text->substr(1, text->size() - 2)};
    }
    EXPECT_EQ(option.assign(config, value, option.row), std::nullopt) << option.row.key();
  }
  EXPECT_EQ(config, Config());
  EXPECT_TRUE(config.validate().empty());
}

/// Sets the option to a number, even out of its range; false if the field cannot hold it.
template <class Owner>
bool force(Owner& config, const Option<Owner>& option, double value) {
  OptionRow free = option.row;
  free.low = free.high = 0;
  const bool real = option.row.kind == OptionKind::kRatio;
  const RawValue raw = real ? RawValue{value} : RawValue{static_cast<std::int64_t>(value)};
  return !option.assign(config, raw, free).has_value();
}

bool complains(const Config& config, const std::string& key) {
  const ConfigErrors errors = config.validate();
  return std::any_of(errors.begin(), errors.end(),
                     [&](const ConfigError& error) { return error.key == key; });
}

// Code that fills the structs in C++ gets the same bounds from validate() as readers of the file.
TEST(OptionTable, ValidateRefusesWhatTheTableRefuses) {
  // Bounded only by the table: the structs have no bound for these.
  const std::set<std::string> only_here = {"server.memory_max",
                                           "tls.memory_budget",
                                           "server.body_min_rate",
                                           "server.write_min_rate",
                                           "server.drain_bytes_max",
                                           "server.requests_per_connection_max",
                                           "server.socket_receive_buffer_size",
                                           "server.socket_send_buffer_size",
                                           "server.tcp_user_timeout_ms"};
  for (const auto& option : config_options()) {
    const OptionRow& row = option.row;
    if (!row.has_range() || only_here.count(row.key()) != 0) continue;
    const double step = row.kind == OptionKind::kRatio ? 1e-6 : 1;
    Config above;
    if (force(above, option, row.high + step)) {
      EXPECT_TRUE(complains(above, row.key())) << row.key() << " above " << row.high;
    }
    Config below;
    if (row.low - step >= 0 && force(below, option, row.low - step)) {
      EXPECT_TRUE(complains(below, row.key())) << row.key() << " below " << row.low;
    }
  }
}

TEST(OptionTable, ValidateOfAnUpstreamRefusesWhatTheTableRefuses) {
  const auto complains_of = [](const upstream::UpstreamConfig& upstream, const std::string& key) {
    const ConfigErrors errors = upstream.validate(LimitConfig());
    return std::any_of(errors.begin(), errors.end(),
                       [&](const ConfigError& error) { return error.key == key; });
  };
  for (const auto& option : upstream_options()) {
    const OptionRow& row = option.row;
    if (!row.has_range()) continue;
    const double step = row.kind == OptionKind::kRatio ? 1e-6 : 1;
    upstream::UpstreamConfig above;
    if (force(above, option, row.high + step)) {
      EXPECT_TRUE(complains_of(above, key_inside(row))) << row.key() << " above " << row.high;
    }
    upstream::UpstreamConfig below;
    if (row.low - step >= 0 && force(below, option, row.low - step)) {
      EXPECT_TRUE(complains_of(below, key_inside(row))) << row.key() << " below " << row.low;
    }
  }
}

TEST(OptionTable, ValidateAcceptsWhatTheTableAccepts) {
  // Bounded more tightly by another option.
  const std::set<std::string> coupled = {"server.reserved_connections",
                                         "server.reserved_write_buffers",
                                         "server.reserved_streams",
                                         "server.reserved_handshakes",
                                         "server.high_watermark",
                                         "server.critical_watermark",
                                         "server.head_bytes_max",
                                         "server.uri_bytes_max",
                                         "server.trailer_bytes_max",
                                         "http2.uri_bytes_max",
                                         "http2.session_bytes_max",
                                         "admission.limit.initial_limit",
                                         "admission.limit.min_limit",
                                         "admission.limit.vegas_alpha",
                                         "admission.limit.vegas_beta",
                                         "actors.actor_table_size",
                                         "memory.memory_pressure_threshold",
                                         "memory.memory_critical_threshold",
                                         "hedge.min_delay_ms",
                                         "hedge.default_delay_ms"};
  for (const auto& option : config_options()) {
    const OptionRow& row = option.row;
    if (!row.has_range() || coupled.count(row.key()) != 0) continue;
    for (const double value : {row.low, row.high}) {
      Config config;
      ASSERT_TRUE(force(config, option, value)) << row.key();
      EXPECT_FALSE(complains(config, row.key())) << row.key() << " = " << value;
    }
  }
}

TEST(OptionTable, FindsTheKeyOfAField) {
  EXPECT_EQ(key_of_field("admission", "max_concurrent"), "admission.max_concurrent");
  EXPECT_EQ(key_of_field("admission", "limit.min_limit"), "admission.limit.min_limit");
  EXPECT_EQ(key_of_field("admission", "class_cap_high"), "priority.high_limit");
  EXPECT_EQ(key_of_field("admission", "inflight_max"), "actors.inflight_max");
  EXPECT_EQ(key_of_field("admission", "streams_max"), "admission.streams_max");
  EXPECT_EQ(key_of_field("server", "streams_max"), "server.streams_max");
  EXPECT_EQ(key_of_field("server", "listen"), "listen.addresses");
  EXPECT_EQ(key_of_field("server", "no_such"), "server.no_such");
}

}  // namespace
}  // namespace weir::config
