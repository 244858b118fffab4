#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "value_key.h"

namespace valuestore {

/// What a reply may carry: below 4 MiB, which is what gRPC's clients accept by default.
inline constexpr std::size_t kReplyBytesMax = (4U << 20U) - (64U << 10U);

enum class RecordKind : std::uint8_t { kLeaf = 0, kRecipe = 1 };

/// What a node stores for a key: the bytes of a leaf, or the definition of a recipe.
///
/// `epoch` is that of the last put; garbage collection compares it. Copies that nodes make for each
/// other (hints, repairs, transfers) keep the epoch of their source, so that they cannot keep alive
/// what nobody puts any more.
/// Thread-safety: a value type.
struct Record {
  RecordKind kind = RecordKind::kLeaf;
  std::uint64_t epoch = 0;
  std::string payload;

  /// The key that these bytes must have. A leaf and a recipe of the same bytes have different keys.
  [[nodiscard]] ValueKey key() const;
  [[nodiscard]] std::string encoded() const;
  /// None if `bytes` is no record.
  [[nodiscard]] static std::optional<Record> decode(std::string_view bytes);

  bool operator==(const Record&) const = default;
};

}  // namespace valuestore
