#include "weir/base/result.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace weir {
namespace {

enum class Fault : unsigned char { kSmall, kLarge };

Result<int, Fault> half(int n) {
  if (n % 2 != 0) return unexpected(Fault::kSmall);
  return n / 2;
}

TEST(Result, HoldsAValue) {
  const Result<int, Fault> r = half(8);
  ASSERT_TRUE(r.has_value());
  EXPECT_TRUE(static_cast<bool>(r));
  EXPECT_EQ(*r, 4);
  EXPECT_EQ(r.value_or(9), 4);
}

TEST(Result, HoldsAnError) {
  const Result<int, Fault> r = half(7);
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error(), Fault::kSmall);
  EXPECT_EQ(r.value_or(9), 9);
}

TEST(Result, ChainsUntilTheFirstError) {
  EXPECT_EQ(*half(12).and_then(half), 3);
  EXPECT_EQ(half(6).and_then(half).error(), Fault::kSmall);
  EXPECT_EQ(*half(4).transform([](int n) { return n * 10; }), 20);
  EXPECT_EQ(*half(5).or_else([](Fault) { return Result<int, Fault>(1); }), 1);
}

TEST(Result, CarriesMoveOnlyValues) {
  Result<std::unique_ptr<int>, Fault> r = std::make_unique<int>(3);
  const std::unique_ptr<int> p = std::move(r).value();
  EXPECT_EQ(*p, 3);
}

TEST(Result, DistinguishesEqualValueAndErrorTypes) {
  const Result<std::string, std::string> bad = unexpected(std::string("why"));
  EXPECT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error(), "why");
}

TEST(Result, VoidIsSuccessByDefault) {
  Result<void, Fault> ok;
  EXPECT_TRUE(ok.has_value());
  const Result<void, Fault> bad = unexpected(Fault::kLarge);
  EXPECT_EQ(bad.error(), Fault::kLarge);
}

TEST(ResultDeathTest, ReadingTheMissingSideAborts) {
  EXPECT_DEATH(static_cast<void>(half(7).value()), "WEIR_ASSERT");
  EXPECT_DEATH(static_cast<void>(half(8).error()), "WEIR_ASSERT");
}

}  // namespace
}  // namespace weir
