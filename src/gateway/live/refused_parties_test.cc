#include "live/refused_parties.h"

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

BudgetRow row_of(std::uint64_t id, std::uint64_t refused) {
  return {.label = "p" + std::to_string(id), .id = id, .in_flight = 1, .refused = refused};
}

TEST(RefusedParties, AreOrderedByWhatWasRefusedInTheLastSecond) {
  RefusedParties parties;
  parties.read({row_of(1, 1000), row_of(2, 0), row_of(3, 5)}, 1);
  EXPECT_DOUBLE_EQ(parties.top()[0].refused_per_s, 0) << "since when is not known yet";
  parties.read({row_of(1, 1000), row_of(2, 40), row_of(3, 15)}, 2);
  EXPECT_EQ(parties.top()[0].row.id, 2U);
  EXPECT_DOUBLE_EQ(parties.top()[0].refused_per_s, 20);
  EXPECT_EQ(parties.top()[1].row.id, 3U);
  EXPECT_EQ(parties.top()[2].row.id, 1U);
}

TEST(RefusedParties, SayForHowLongTheyAreRefused) {
  RefusedParties parties;
  for (std::uint64_t s = 0; s <= 30; ++s) parties.read({row_of(1, s)}, 1);
  EXPECT_EQ(parties.top()[0].since_s, 30U);
  parties.read({row_of(1, 30)}, 1);
  EXPECT_EQ(parties.top()[0].since_s, 0U) << "a second without a refusal ends it";
}

TEST(RefusedParties, AtMostTenAreShown) {
  RefusedParties parties;
  std::vector<BudgetRow> rows;
  for (std::uint64_t id = 1; id <= 100; ++id) rows.push_back(row_of(id, 0));
  parties.read(rows, 1);
  EXPECT_EQ(parties.top().size(), RefusedParties::kShown);
}

TEST(RefusedParties, AnEntryThatWasReusedIsNotRefusedBackwards) {
  RefusedParties parties;
  parties.read({row_of(1, 50)}, 1);
  parties.read({row_of(1, 3)}, 1);
  EXPECT_DOUBLE_EQ(parties.top()[0].refused_per_s, 0);
}

}  // namespace
}  // namespace weir::gateway
