#include "weir/base/enum_names.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace weir::inline v0 {
namespace {

enum class Taste : std::uint8_t { kSweet, kSour, kBitter };
WEIR_ENUM_NAMES(Taste, "sweet", "sour", "bitter")

TEST(EnumNames, GiveEachEnumeratorTheNameInItsPlace) {
  EXPECT_EQ(kTasteNames.size(), 3U);
  EXPECT_EQ(name_of(Taste::kSweet), "sweet");
  EXPECT_EQ(name_of(Taste::kBitter), "bitter");
  EXPECT_EQ(&names_of(Taste::kSour), &kTasteNames);
  static_assert(name_of(Taste::kSour) == "sour");
}

TEST(EnumNames, AreFoundAgainAndNothingElseIs) {
  for (std::size_t i = 0; i < kTasteNames.size(); ++i) {
    EXPECT_EQ(named<Taste>(kTasteNames[i]), static_cast<Taste>(i));
  }
  for (const std::string_view other : {"", "Sweet", "sweets", "swee"}) {
    EXPECT_EQ(named<Taste>(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace weir::inline v0
