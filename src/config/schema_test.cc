// tests/integration/schema_test.py compares the schema with `weir check`.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weir/experimental/config/print.h"

#include "config/option_table.h"

namespace weir::config {
namespace {

using nlohmann::json;

TEST(Schema, HasEveryRowOfTheTableWithItsRangeAndText) {
  const json schema = json::parse(print_schema());
  const auto expect_row = [](const json& table, const OptionRow& row) {
    SCOPED_TRACE(row.key());
    ASSERT_TRUE(table["properties"].contains(row.name));
    const json& option = table["properties"][std::string(row.name)];
    EXPECT_EQ(option["description"], row.help);
    if (!row.has_range()) return;
    const json& number = option.contains("anyOf") ? option["anyOf"][0] : option;
    EXPECT_EQ(number["minimum"], row.low);
    EXPECT_EQ(number["maximum"], row.high);
  };
  for (const auto& option : config_options()) {
    const std::string section(option.row.section);
    const json& top = schema["properties"][section.substr(0, section.find('.'))];
    const bool nested = section.find('.') != std::string::npos;
    const std::size_t inner = option.row.section.find('.') + 1;
    expect_row(nested ? top["properties"][std::string(option.row.section.substr(inner))] : top,
               option.row);
  }
  for (const auto& option : upstream_options()) {
    const json& one = schema["properties"]["upstream"]["items"];
    const std::size_t dot = option.row.section.find('.');
    const bool nested = dot != std::string_view::npos;
    expect_row(nested ? one["properties"][std::string(option.row.section.substr(dot + 1))] : one,
               option.row);
  }
  for (const auto& option : route_options()) {
    expect_row(schema["properties"]["route"]["items"], option.row);
  }
}

TEST(Schema, RequiresWhatADefaultOneIsRefusedFor) {
  const json all = json::parse(print_schema())["properties"];
  EXPECT_EQ(all["upstream"]["items"]["required"], json({"name", "endpoints"}));
  ASSERT_EQ(gateway::RouteConfig().validate().size(), 1U);
  EXPECT_EQ(all["route"]["items"]["anyOf"],
            json::parse(R"([{"required": ["upstream"]}, {"required": ["redirect"]},
                            {"required": ["respond"]}])"));
}

}  // namespace
}  // namespace weir::config
