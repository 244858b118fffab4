#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/enum_names.h"
#include "weir/base/result.h"

#include "record.h"
#include "value_key.h"

namespace valuestore {

enum class RecipeFunction : std::uint8_t { kConcat, kSha256, kUppercase };
WEIR_ENUM_NAMES(RecipeFunction, "concat", "sha256", "uppercase")

/// The bounds of a recipe's evaluation.
struct RecipeBounds {
  std::size_t inputs_max = 64;             // of one recipe
  std::size_t depth_max = 16;              // recipes made of recipes
  std::size_t reads_max = 1024;            // values read for one result
  std::size_t bytes_max = kReplyBytesMax;  // of a result, or of one between
};

/// A value that is defined by a function of other values.
///
/// Its key is the hash of its definition, which names its inputs by their hashes: a recipe cannot
/// be written before its inputs have keys, so recipes cannot form a cycle.
/// Thread-safety: a value type.
struct Recipe {
  RecipeFunction function = RecipeFunction::kConcat;
  std::vector<ValueKey> inputs;

  /// The definition, or what is wrong with it.
  [[nodiscard]] static weir::Result<Recipe, std::string> make(
      std::string_view function, const std::vector<std::string>& inputs,
      const RecipeBounds& bounds);
  [[nodiscard]] static weir::Result<Recipe, std::string> decode(std::string_view payload);
  [[nodiscard]] std::string encoded() const;
  [[nodiscard]] Record record() const { return {RecordKind::kRecipe, 0, encoded()}; }
};

/// Reads the record of a key, or says why it cannot.
using ReadRecord = std::function<weir::Result<Record, std::string>(const ValueKey&)>;

/// The value of a record: its bytes, or what its recipe makes of its inputs.
///
/// Promises: ends within the bounds, whatever the records say; an error names the bound and the
/// key. Cost: each input is read once per use; the recursion is at most depth_max deep.
[[nodiscard]] weir::Result<std::string, std::string> evaluate(const ValueKey& key,
                                                              const ReadRecord& read,
                                                              const RecipeBounds& bounds);

}  // namespace valuestore
