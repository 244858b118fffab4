#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace valuestore {

/// The name of a value: a SHA-256.
///
/// Thread-safety: a value type. Cost: 32 bytes; of() hashes its input.
struct ValueKey {
  static constexpr std::size_t kSize = 32;

  std::array<char, kSize> bytes{};

  /// The key of these bytes: SHA-256 of `prefix` followed by `text`.
  [[nodiscard]] static ValueKey of(std::string_view prefix, std::string_view text);
  /// None if `text` does not have 32 bytes.
  [[nodiscard]] static std::optional<ValueKey> parse(std::string_view text);

  [[nodiscard]] std::string_view view() const noexcept { return {bytes.data(), bytes.size()}; }
  /// Eight of its bytes as a number: keys are uniformly distributed, so this is, too.
  [[nodiscard]] std::uint64_t mix() const noexcept;
  [[nodiscard]] std::string hex() const;

  auto operator<=>(const ValueKey&) const = default;
};

struct ValueKeyHash {
  [[nodiscard]] std::size_t operator()(const ValueKey& key) const noexcept { return key.mix(); }
};

}  // namespace valuestore
