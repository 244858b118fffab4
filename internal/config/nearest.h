#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace weir::inline v0::config {

/// Typing mistakes between two words: insertions, deletions, substitutions, and swaps of
/// neighbours (optimal string alignment). Cost: O(|a| · |b|).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `word` was probably meant to be: the nearest one, if it is at most two
/// mistakes (or a third of the word) away; empty otherwise. For equal distances, the first.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> candidates);

}  // namespace weir::inline v0::config
