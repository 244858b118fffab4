#include "memory/write_pool.h"

#include <gtest/gtest.h>

namespace weir::inline v0::inline server {
namespace {

TEST(WritePool, BuffersStartEmptyEachTime) {
  WritePool pool({.count = 2, .bytes_each = 4096, .reserved = 0, .loops = 1, .cached_max = 1});
  WriteBuffer* buffer = pool.acquire(0, io::Access::kOrdinary);
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(buffer->room(), 4096U);
  buffer->end = 100;
  buffer->begin = 40;
  EXPECT_EQ(buffer->pending(), 60U);
  pool.release(0, buffer);
  EXPECT_EQ(pool.acquire(0, io::Access::kOrdinary), buffer);
  EXPECT_EQ(buffer->pending(), 0U);
  EXPECT_EQ(buffer->room(), 4096U);
  pool.release(0, buffer);
}

}  // namespace
}  // namespace weir::inline v0::inline server
