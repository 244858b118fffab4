#include "recipe.h"

#include <utility>

namespace valuestore {
namespace {

using Value = weir::Result<std::string, std::string>;

std::string apply(RecipeFunction function, std::string joined) {
  switch (function) {
    case RecipeFunction::kConcat:
      return joined;
    case RecipeFunction::kSha256:
      return std::string(ValueKey::of("", joined).view());
    case RecipeFunction::kUppercase:
      break;
  }
  for (char& c : joined) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return joined;
}

/// One evaluation: counts what it has read so far.
class Evaluation {
 public:
  Evaluation(const ReadRecord& read, const RecipeBounds& bounds) : read_(read), bounds_(bounds) {}

  Value value(const ValueKey& key, std::size_t depth) {
    if (++reads_ > bounds_.reads_max) {
      return weir::unexpected("the result needs more than " + std::to_string(bounds_.reads_max) +
                              " values");
    }
    auto record = read_(key);
    if (!record) return weir::unexpected(key.hex() + ": " + record.error());
    if (record->kind == RecordKind::kLeaf) return std::move(record->payload);
    if (depth >= bounds_.depth_max) {
      return weir::unexpected(key.hex() + ": recipes are nested deeper than " +
                              std::to_string(bounds_.depth_max));
    }
    const auto recipe = Recipe::decode(record->payload);
    if (!recipe) return weir::unexpected(key.hex() + ": " + recipe.error());
    return made(*recipe, depth);
  }

 private:
  Value made(const Recipe& recipe, std::size_t depth) {
    std::string joined;
    for (const ValueKey& input : recipe.inputs) {
      Value part = value(input, depth + 1);
      if (!part) return part;
      if (joined.size() + part->size() > bounds_.bytes_max) {
        return weir::unexpected("the result is larger than " + std::to_string(bounds_.bytes_max) +
                                " bytes");
      }
      joined += *part;
    }
    return apply(recipe.function, std::move(joined));
  }

  const ReadRecord& read_;
  const RecipeBounds& bounds_;
  std::size_t reads_ = 0;
};

}  // namespace

weir::Result<Recipe, std::string> Recipe::make(std::string_view function,
                                               const std::vector<std::string>& inputs,
                                               const RecipeBounds& bounds) {
  Recipe recipe;
  const auto named = weir::named<RecipeFunction>(function);
  if (!named) {
    return weir::unexpected(std::string("function: must be concat, sha256 or uppercase"));
  }
  recipe.function = *named;
  if (inputs.empty() || inputs.size() > bounds.inputs_max) {
    return weir::unexpected("inputs: must be 1 to " + std::to_string(bounds.inputs_max) + " keys");
  }
  for (const std::string& input : inputs) {
    const auto key = ValueKey::parse(input);
    if (!key) return weir::unexpected(std::string("inputs: a key has 32 bytes"));
    recipe.inputs.push_back(*key);
  }
  return recipe;
}

weir::Result<Recipe, std::string> Recipe::decode(std::string_view payload) {
  if (payload.empty() || (payload.size() - 1) % ValueKey::kSize != 0 ||
      static_cast<unsigned char>(payload[0]) >= kRecipeFunctionNames.size()) {
    return weir::unexpected(std::string("not a recipe"));
  }
  Recipe recipe;
  recipe.function = static_cast<RecipeFunction>(payload[0]);
  for (std::size_t at = 1; at < payload.size(); at += ValueKey::kSize) {
    recipe.inputs.push_back(*ValueKey::parse(payload.substr(at, ValueKey::kSize)));
  }
  return recipe;
}

std::string Recipe::encoded() const {
  std::string bytes(1, static_cast<char>(function));
  for (const ValueKey& input : inputs) bytes += input.view();
  return bytes;
}

Value evaluate(const ValueKey& key, const ReadRecord& read, const RecipeBounds& bounds) {
  return Evaluation(read, bounds).value(key, 0);
}

}  // namespace valuestore
