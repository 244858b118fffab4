#include "weir/base/config_check.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(ConfigCheck, BoundsAreInclusive) {
  ConfigErrors errors;
  check_range(errors, "n", 1U, 1U, 5U);
  check_range(errors, "n", 5U, 1U, 5U);
  check_range(errors, "x", 0.5, 0.5, 1.0);
  check_range(errors, "t", milliseconds(1), milliseconds(1), milliseconds(2));
  EXPECT_TRUE(errors.empty());
}

TEST(ConfigCheck, AnErrorNamesKeyValueAndRange) {
  ConfigErrors errors;
  check_range(errors, "n", 6U, 1U, 5U);
  check_range(errors, "x", 1.5, 0.0, 1.0);
  check_range(errors, "t", nanoseconds(1), milliseconds(1), milliseconds(2));
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0], (ConfigError{.key = "n", .value = "6", .allowed = "1 to 5"}));
  EXPECT_EQ(errors[1], (ConfigError{.key = "x", .value = "1.5", .allowed = "0 to 1"}));
  EXPECT_EQ(errors[2], (ConfigError{.key = "t", .value = "1ns", .allowed = "1ms to 2ms"}));
}

TEST(ConfigCheck, NotANumberIsOutsideEveryRange) {
  ConfigErrors errors;
  check_range(errors, "x", std::nan(""), -std::numeric_limits<double>::infinity(),
              std::numeric_limits<double>::infinity());
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].value, "nan");
}

TEST(ConfigCheck, InnerErrorsGetThePrefixOfTheirSection) {
  ConfigErrors inner;
  check_range(inner, "min", 0U, 1U, 5U);
  ConfigErrors errors;
  append_errors(errors, "admission.limit.", inner);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].key, "admission.limit.min");
}

}  // namespace
}  // namespace weir
