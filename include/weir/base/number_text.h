#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

namespace weir::inline v0 {

/// The number that a text is, without anything around it; nullopt if it is none, or out of range.
/// `base` is for whole numbers.
template <class Number, class... Base>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text, Base... base) noexcept {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base...);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// The shortest text of a number, in place: no allocation. parse_number() reads it back.
class NumberText {
 public:
  /// `base` is for whole numbers.
  template <class Number, class... Base>
  explicit NumberText(Number value, Base... base) noexcept {
    char* const end =
        std::to_chars(bytes_.data(), bytes_.data() + bytes_.size(), value, base...).ptr;
    size_ = static_cast<std::size_t>(end - bytes_.data());
  }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.data(), size_}; }

 private:
  std::array<char, 32> bytes_;
  std::size_t size_ = 0;
};

}  // namespace weir::inline v0
