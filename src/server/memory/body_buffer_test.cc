#include "weir/experimental/server/body_buffer.h"

#include <array>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace weir::inline v0::inline server {
namespace {

http::BodyChunk chunk_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
          http::BodyStatus::kContinue};
}

struct BodyBufferTest : testing::Test {
  alignas(16) std::array<std::byte, 64 * 1024> memory{};
  Arena arena{memory};
  BodyBuffer body{arena};
};

TEST_F(BodyBufferTest, InitSetsArena) {
  EXPECT_EQ(body.arena(), &arena);
  EXPECT_EQ(body.size(), 0U);
  EXPECT_EQ(body.capacity(), 0U);
  EXPECT_EQ(arena.used(), 0U) << "nothing is taken before it is needed";
}

TEST_F(BodyBufferTest, AppendSingleChunk) {
  EXPECT_TRUE(body.append(chunk_of("hello")));
  EXPECT_EQ(body.get(), "hello");
}

TEST_F(BodyBufferTest, AppendMultipleChunksConcatenates) {
  EXPECT_TRUE(body.append(chunk_of("one ")));
  EXPECT_TRUE(body.append(chunk_of("")));
  EXPECT_TRUE(body.append(chunk_of("two ")));
  EXPECT_TRUE(body.append(chunk_of("three")));
  EXPECT_EQ(body.get(), "one two three");
}

TEST_F(BodyBufferTest, AppendGrowsBuffer) {
  EXPECT_TRUE(body.append(chunk_of(std::string(1000, 'a'))));
  const std::size_t before = body.capacity();
  const void* where = body.get().data();
  EXPECT_TRUE(body.append(chunk_of(std::string(1000, 'b'))));
  EXPECT_GT(body.capacity(), before);
  EXPECT_EQ(body.get(), std::string(1000, 'a') + std::string(1000, 'b'));
  EXPECT_EQ(body.get().data(), where) << "the newest allocation grows in place";
}

TEST_F(BodyBufferTest, AppendGrowsAroundAnotherAllocation) {
  EXPECT_TRUE(body.append(chunk_of(std::string(1000, 'a'))));
  ASSERT_NE(arena.allocate(64), nullptr);  // in the way
  EXPECT_TRUE(body.append(chunk_of(std::string(1000, 'b'))));
  EXPECT_EQ(body.get(), std::string(1000, 'a') + std::string(1000, 'b'));
}

TEST_F(BodyBufferTest, AppendFailsWhenArenaIsExhausted) {
  EXPECT_TRUE(body.append(chunk_of(std::string(60 * 1024, 'x'))));
  EXPECT_FALSE(body.append(chunk_of(std::string(8 * 1024, 'y'))));
  EXPECT_EQ(body.get(), std::string(60 * 1024, 'x')) << "what it had is intact";
  EXPECT_TRUE(body.append(chunk_of(std::string(3 * 1024, 'z')))) << "a smaller piece still fits";
}

TEST_F(BodyBufferTest, GetReturnsContiguous) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(body.append(chunk_of("0123456789")));
  ASSERT_EQ(body.get().size(), 1000U);
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(body.get()[i], static_cast<char>('0' + i % 10));
  EXPECT_TRUE(arena.owns(body.get().data()));
}

TEST_F(BodyBufferTest, GetEmptyReturnsNull) {
  EXPECT_EQ(body.get().data(), nullptr);
  EXPECT_TRUE(body.append(chunk_of("")));
  EXPECT_EQ(body.get().data(), nullptr);
}

TEST_F(BodyBufferTest, ResetKeepsArena) {
  EXPECT_TRUE(body.append(chunk_of("hello")));
  const std::size_t used = arena.used();
  body.reset();
  EXPECT_EQ(body.size(), 0U);
  EXPECT_EQ(body.get().data(), nullptr);
  EXPECT_EQ(body.arena(), &arena);
  EXPECT_TRUE(body.append(chunk_of("again")));
  EXPECT_EQ(body.get(), "again");
  EXPECT_EQ(arena.used(), used) << "the room is used again";
}

TEST_F(BodyBufferTest, LargeAppendMultipleGrows) {
  std::string expected;
  int grows = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string piece(1000, static_cast<char>('a' + i % 26));
    const std::size_t before = body.capacity();
    ASSERT_TRUE(body.append(chunk_of(piece)));
    if (body.capacity() != before) ++grows;
    expected += piece;
  }
  EXPECT_EQ(body.get(), expected);
  EXPECT_GE(grows, 5);
  EXPECT_LE(grows, 12) << "doubling, not creeping";
}

TEST_F(BodyBufferTest, ReserveTakesKnownLengthAtOnce) {
  EXPECT_TRUE(body.reserve(10'000));
  EXPECT_EQ(body.capacity(), 10'000U);
  EXPECT_FALSE(body.reserve(1'000'000));
  EXPECT_EQ(body.capacity(), 10'000U);
}

TEST(Arena, AlignsGivesNothingWhenFullAndCopies) {
  alignas(16) std::array<std::byte, 256> memory{};
  Arena arena(memory);
  ASSERT_NE(arena.allocate(1, 1), nullptr);
  auto* number = arena.make<std::uint64_t>(7U);
  ASSERT_NE(number, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(number) % alignof(std::uint64_t), 0U);
  EXPECT_EQ(arena.copy("text"), "text");
  EXPECT_EQ(arena.allocate(1000), nullptr);
  EXPECT_EQ(arena.copy(std::string(1000, 'x')).data(), nullptr);
  EXPECT_EQ(*number, 7U);
  arena.reset();
  EXPECT_EQ(arena.available(), 256U);
}

}  // namespace
}  // namespace weir::inline v0::inline server
