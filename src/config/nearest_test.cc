#include "config/nearest.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace weir::config {
namespace {

TEST(EditDistance, CountsTypingMistakes) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", "abc"), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("abcd", "abdc"), 1U) << "a swap is one mistake";
  EXPECT_EQ(edit_distance("max_concurent", "max_concurrent"), 1U);
}

TEST(EditDistance, IsSymmetric) {
  constexpr std::array<std::string_view, 6> kWords = {"limit", "limits", "tilmi",
                                                      "",      "x",      "min_limit"};
  for (const auto a : kWords) {
    for (const auto b : kWords) EXPECT_EQ(edit_distance(a, b), edit_distance(b, a)) << a << b;
  }
}

TEST(Nearest, FindsWhatWasMeant) {
  constexpr std::array<std::string_view, 4> kKeys = {"max_concurrent", "per_peer_limit",
                                                     "waiting_max", "bytes_max"};
  EXPECT_EQ(nearest("max_concurent", kKeys), "max_concurrent");
  EXPECT_EQ(nearest("waitingmax", kKeys), "waiting_max");
  EXPECT_EQ(nearest("max_concurrency", kKeys), "max_concurrent");
  EXPECT_EQ(nearest("timeout", kKeys), "");
  EXPECT_EQ(nearest("", kKeys), "");
  EXPECT_EQ(nearest(std::string(1000, 'x'), kKeys), "");
}

TEST(Nearest, DoesNotTurnAShortWordIntoAnything) {
  constexpr std::array<std::string_view, 2> kKeys = {"ab", "listen"};
  EXPECT_EQ(nearest("xy", kKeys), "") << "two mistakes in two letters are no mistake";
}

}  // namespace
}  // namespace weir::config
