#include "upstream/kept_body.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::upstream {
namespace {

constexpr std::size_t kBlock = 64;

class KeptBodyTest : public ::testing::Test {
 protected:
  KeptBody::Source source(std::uint64_t keep_max) {
    return {.blocks = &blocks, .loop = 0, .access = io::Access::kOrdinary, .keep_max = keep_max};
  }
  /// All stored bytes from `position` on.
  static std::string rest(const KeptBody& body, std::uint64_t position) {
    std::string all;
    while (position < body.end()) {
      const std::string_view piece = body.from(position);
      EXPECT_FALSE(piece.empty());
      all += piece;
      position += piece.size();
    }
    return all;
  }
  void TearDown() override { EXPECT_EQ(blocks.stats().used, 0U); }

  io::SharedBlocks blocks{
      {.count = 8, .bytes_each = kBlock, .reserved = 0, .loops = 1, .cached_max = 0}};
};

std::string numbered(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i % 26);
  return text;
}

TEST_F(KeptBodyTest, KeepsEveryByteWhateverTheSizesOfThePieces) {
  for (const std::size_t piece : {1UL, 2UL, 63UL, kBlock, kBlock + 1, 2 * kBlock, 200UL}) {
    KeptBody body;
    ASSERT_TRUE(body.open(source(4 * kBlock)));
    const std::string text = numbered(4 * kBlock);
    for (std::size_t at = 0; at < text.size(); at += piece) {
      const std::string_view next = std::string_view(text).substr(at, piece);
      ASSERT_TRUE(body.can_keep(next.size())) << piece << " at " << at;
      body.append(next);
    }
    EXPECT_TRUE(body.keeping());
    EXPECT_EQ(body.end(), text.size());
    for (const std::uint64_t from : {0UL, 1UL, kBlock - 1, kBlock, kBlock + 1, text.size()}) {
      EXPECT_EQ(rest(body, from), text.substr(from)) << piece << " from " << from;
    }
    EXPECT_FALSE(body.can_keep(1)) << "all that is to be kept is here";
    body.close();
  }
}

TEST_F(KeptBodyTest, WhatDoesNotFitIsNotKept) {
  KeptBody body;
  ASSERT_TRUE(body.open(source(10)));
  ASSERT_TRUE(body.can_keep(10));
  body.append(numbered(10));
  EXPECT_FALSE(body.can_keep(1));
  EXPECT_TRUE(body.keeping()) << "asking changes nothing";
  body.stop_keeping(4);
  EXPECT_FALSE(body.keeping());
  EXPECT_EQ(body.held_bytes(), 6U);
  EXPECT_EQ(rest(body, 4), numbered(10).substr(4));
  body.close();
}

TEST_F(KeptBodyTest, NothingIsKeptIfNothingMayBe) {
  KeptBody body;
  ASSERT_TRUE(body.open(source(0)));
  EXPECT_FALSE(body.keeping());
  EXPECT_FALSE(body.can_keep(0));
  body.close();
}

TEST_F(KeptBodyTest, AStreamFindsRoomForABlockWheneverAllIsSent) {
  KeptBody body;
  ASSERT_TRUE(body.open(source(2 * kBlock)));
  const std::string text = numbered(100);
  ASSERT_TRUE(body.can_keep(text.size()));
  body.append(text);
  body.stop_keeping(text.size());
  EXPECT_EQ(blocks.stats().used, 1U);
  std::uint64_t at = text.size();
  for (int i = 0; i < 5; ++i) {
    body.append(numbered(kBlock));  // the kernel accepted none of it
    EXPECT_EQ(rest(body, at), numbered(kBlock));
    at += kBlock;
    body.stop_keeping(at);
    EXPECT_EQ(body.held_bytes(), 0U);
    body.skip(7);  // the kernel accepted all of it
    at += 7;
    EXPECT_EQ(body.end(), at);
  }
  EXPECT_EQ(blocks.stats().used, 1U);
  body.close();
}

TEST_F(KeptBodyTest, AStreamHoldsNoBlockThatWasLeasedToKeepMore) {
  io::SharedBlocks few({.count = 3, .bytes_each = kBlock, .reserved = 0, .loops = 1});
  KeptBody body;
  ASSERT_TRUE(body.open({.blocks = &few, .loop = 0, .keep_max = 4 * kBlock}));
  ASSERT_TRUE(body.can_keep(10));
  body.append(numbered(10));
  EXPECT_FALSE(body.can_keep(4 * kBlock - 10)) << "there are only three blocks";
  EXPECT_EQ(few.stats().used, 3U);
  body.stop_keeping(10);
  EXPECT_EQ(few.stats().used, 1U);
  body.append(numbered(kBlock));
  EXPECT_EQ(rest(body, 10), numbered(kBlock));
  body.close();
  EXPECT_EQ(few.stats().used, 0U);
}

TEST_F(KeptBodyTest, HoldsAtMostItsBlocks) {
  KeptBody body;
  ASSERT_TRUE(body.open(source(100 * kBlock)));
  EXPECT_TRUE(body.can_keep(KeptBody::kBlocksMax * kBlock));
  EXPECT_FALSE(body.can_keep(KeptBody::kBlocksMax * kBlock + 1));
  EXPECT_EQ(blocks.stats().used, KeptBody::kBlocksMax);
  body.close();
}

TEST_F(KeptBodyTest, AnEmptyPoolIsSaidAtOnce) {
  io::SharedBlocks none({.count = 0, .bytes_each = kBlock, .reserved = 0, .loops = 1});
  KeptBody body;
  EXPECT_FALSE(body.open({.blocks = &none, .loop = 0, .keep_max = kBlock}));
  EXPECT_FALSE(body.is_open());
}

TEST_F(KeptBodyTest, ARandomStreamGivesBackEveryByteInOrder) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    KeptBody body;
    ASSERT_TRUE(body.open(source(rng.below(5) * kBlock)));
    std::string sent;
    std::string given;
    std::uint64_t position = 0;
    for (int i = 0; i < 30; ++i) {
      std::string piece = numbered(rng.below(kBlock) + 1);
      given += piece;
      std::string_view left = piece;
      if (!body.can_keep(piece.size())) {
        body.stop_keeping(position);
        const std::size_t direct = rng.below(piece.size() + 1);
        body.skip(direct);
        sent += left.substr(0, direct);
        position += direct;
        left.remove_prefix(direct);
      }
      body.append(left);
      while (position < body.end()) {
        const std::string_view next = body.from(position);
        const std::string_view some = next.substr(0, rng.below(next.size()) + 1);
        sent += some;
        position += some.size();
      }
      if (!body.keeping()) body.stop_keeping(position);
      if (body.keeping()) {
        ASSERT_EQ(rest(body, 0), given);
      }
    }
    ASSERT_EQ(sent, given);
    body.close();
  }
}

}  // namespace
}  // namespace weir::upstream
