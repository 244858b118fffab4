#include "value_cache.h"

#include <string>

#include <gtest/gtest.h>

namespace valuestore {
namespace {

ValueKey key_of(const std::string& value) {
  return ValueKey::of("", value);
}

TEST(ValueCache, KeepsWhatWasUsedLastWithinItsBytes) {
  const std::string a(1000, 'a');
  const std::string b(1000, 'b');
  const std::string c(1000, 'c');
  ValueCache cache(2500);
  cache.insert(key_of(a), a);
  cache.insert(key_of(b), b);
  EXPECT_EQ(cache.find(key_of(a)), a);  // so b is the older one
  cache.insert(key_of(c), c);
  EXPECT_EQ(cache.find(key_of(a)), a);
  EXPECT_FALSE(cache.find(key_of(b)).has_value());
  EXPECT_EQ(cache.find(key_of(c)), c);
  EXPECT_LE(cache.bytes(), 2500U);
}

TEST(ValueCache, DoesNotKeepWhatIsLargerThanItself) {
  const std::string large(5000, 'x');
  ValueCache cache(4096);
  cache.insert(key_of(large), large);
  EXPECT_FALSE(cache.find(key_of(large)).has_value());
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(ValueCache, CountsAValueOnceAndIsEmptyAfterClear) {
  ValueCache cache(10000);
  cache.insert(key_of("v"), "v");
  const std::size_t once = cache.bytes();
  cache.insert(key_of("v"), "v");
  EXPECT_EQ(cache.bytes(), once);
  cache.clear();
  EXPECT_EQ(cache.bytes(), 0U);
  EXPECT_FALSE(cache.find(key_of("v")).has_value());
}

}  // namespace
}  // namespace valuestore
