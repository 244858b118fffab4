#include "recipe.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace valuestore {
namespace {

/// Records in memory, by their keys.
class Records {
 public:
  ValueKey leaf(std::string bytes) { return add({RecordKind::kLeaf, 0, std::move(bytes)}); }
  ValueKey recipe(std::string_view function, const std::vector<ValueKey>& inputs) {
    std::vector<std::string> names;
    for (const ValueKey& input : inputs) names.emplace_back(input.view());
    return add(Recipe::make(function, names, {})->record());
  }
  ValueKey add(const Record& record) {
    records[record.key()] = record;
    return record.key();
  }
  weir::Result<std::string, std::string> value(const ValueKey& key,
                                               const RecipeBounds& bounds = {}) {
    return evaluate(
        key,
        [this](const ValueKey& wanted) -> weir::Result<Record, std::string> {
          const auto found = records.find(wanted);
          if (found == records.end()) return weir::unexpected(std::string("not found"));
          return found->second;
        },
        bounds);
  }

  std::map<ValueKey, Record> records;
};

TEST(Recipe, EachFunctionOfItsInputs) {
  Records records;
  const ValueKey a = records.leaf("Hello, ");
  const ValueKey b = records.leaf("world");
  const ValueKey joined = records.recipe("concat", {a, b});
  EXPECT_EQ(*records.value(joined), "Hello, world");
  EXPECT_EQ(*records.value(records.recipe("uppercase", {joined})), "HELLO, WORLD");
  EXPECT_EQ(*records.value(records.recipe("sha256", {joined})),
            ValueKey::of("", "Hello, world").view());
}

TEST(Recipe, HasAnotherKeyThanALeafOfTheSameBytes) {
  const Recipe recipe{RecipeFunction::kConcat, {ValueKey::of("", "a")}};
  const Record leaf{RecordKind::kLeaf, 0, recipe.encoded()};
  EXPECT_NE(recipe.record().key(), leaf.key());
}

TEST(Recipe, AMissingInputIsNamed) {
  Records records;
  const ValueKey missing = ValueKey::of("", "missing");
  const auto value = records.value(records.recipe("concat", {missing}));
  ASSERT_FALSE(value.has_value());
  EXPECT_EQ(value.error(), missing.hex() + ": not found");
}

TEST(Recipe, DepthIsBounded) {
  Records records;
  const RecipeBounds bounds{.depth_max = 3};
  ValueKey key = records.leaf("x");
  for (int i = 0; i < 3; ++i) key = records.recipe("concat", {key});
  EXPECT_EQ(*records.value(key, bounds), "x");
  key = records.recipe("concat", {key});
  EXPECT_NE(records.value(key, bounds).error().find("nested deeper than 3"), std::string::npos);
}

TEST(Recipe, ACycleThatNoHashCouldMakeEndsAtTheDepthBound) {
  Records records;
  const ValueKey key = ValueKey::of("", "not the key of its bytes");
  records.records[key] = Recipe{RecipeFunction::kConcat, {key}}.record();
  EXPECT_NE(records.value(key).error().find("nested deeper than 16"), std::string::npos);
}

TEST(Recipe, ReadsAreBoundedSoThatFanOutCannotMultiply) {
  Records records;
  ValueKey key = records.leaf("x");
  for (int level = 0; level < 6; ++level) {  // 8^6 reads
    key = records.recipe("concat", std::vector<ValueKey>(8, key));
  }
  EXPECT_NE(records.value(key).error().find("more than 1024 values"), std::string::npos);
}

TEST(Recipe, TheResultIsBounded) {
  Records records;
  const ValueKey key = records.recipe("concat", {records.leaf("12345"), records.leaf("67890")});
  EXPECT_NE(records.value(key, {.bytes_max = 9}).error().find("larger than 9 bytes"),
            std::string::npos);
  EXPECT_EQ(*records.value(key, {.bytes_max = 10}), "1234567890");
}

TEST(Recipe, AWrongDefinitionIsRefusedWithTheAllowedValues) {
  const std::string key(ValueKey::of("", "a").view());
  EXPECT_EQ(Recipe::make("reverse", {key}, {}).error(),
            "function: must be concat, sha256 or uppercase");
  EXPECT_EQ(Recipe::make("concat", {}, {}).error(), "inputs: must be 1 to 64 keys");
  EXPECT_EQ(Recipe::make("concat", std::vector<std::string>(65, key), {}).error(),
            "inputs: must be 1 to 64 keys");
  EXPECT_EQ(Recipe::make("concat", {"short"}, {}).error(), "inputs: a key has 32 bytes");
}

TEST(Recipe, IsTheSameAfterEncodingAndForeignBytesAreRefused) {
  const Recipe recipe{RecipeFunction::kSha256, {ValueKey::of("", "a"), ValueKey::of("", "b")}};
  const auto decoded = Recipe::decode(recipe.encoded());
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->function, recipe.function);
  EXPECT_EQ(decoded->inputs, recipe.inputs);
  for (const std::string& bytes : {std::string(), std::string("\x07"), std::string(20, '\0')}) {
    EXPECT_FALSE(Recipe::decode(bytes).has_value());
  }
}

TEST(Record, IsTheSameAfterEncodingAndForeignBytesAreRefused) {
  const Record record{RecordKind::kRecipe, 77, "payload"};
  EXPECT_EQ(Record::decode(record.encoded()), record);
  EXPECT_FALSE(Record::decode("short").has_value());
  EXPECT_FALSE(Record::decode(std::string(20, '\x05')).has_value());
}

}  // namespace
}  // namespace valuestore
