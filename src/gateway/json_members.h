#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weir::inline v0::gateway {

enum class JsonKind : std::uint8_t { kString, kNumber, kLiteral, kArray, kObject };

/// The members of a JSON object, read without an allocation. Values are views of their text.
///
/// Promises: accepts exactly the objects of RFC 8259 in which no name repeats, no name has an
/// escape, nothing is nested deeper than 16 and there are at most 64 members: two readers of such a
/// text cannot disagree about its members.
/// Cost: one pass. Lifetime: that of the text.
class JsonMembers {
 public:
  static constexpr std::size_t kMax = 64;
  static constexpr std::size_t kTextMax = 512;

  struct Member {
    std::string_view name;
    std::string_view value;  // its text; of a string, without the quotes
    JsonKind kind = JsonKind::kLiteral;
  };

  [[nodiscard]] static std::optional<JsonMembers> of(std::string_view text) noexcept;
  [[nodiscard]] std::span<const Member> all() const noexcept { return {members_.data(), count_}; }
  [[nodiscard]] const Member* find(std::string_view name) const noexcept;
  /// What a string member says; none if it is something else, or does not fit `out`, which is used
  /// only if the text has escapes.
  [[nodiscard]] std::optional<std::string_view> text(std::string_view name,
                                                     std::span<char> out) const noexcept;
  [[nodiscard]] std::optional<double> number(std::string_view name) const noexcept;
  /// Whether a member is this string, or an array that contains it; at most kTextMax bytes.
  [[nodiscard]] bool has_text(std::string_view name, std::string_view wanted) const noexcept;

 private:
  std::array<Member, kMax> members_;
  std::size_t count_ = 0;
};

}  // namespace weir::inline v0::gateway
