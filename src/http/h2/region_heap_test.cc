#include "http/h2/region_heap.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::http::h2 {
namespace {

struct Region {
  explicit Region(std::size_t bytes) : words(bytes / 8) {}
  [[nodiscard]] std::span<std::byte> span() { return std::as_writable_bytes(std::span(words)); }
  std::vector<std::uint64_t> words;
};

TEST(RegionHeap, GivesAlignedPiecesThatDoNotOverlap) {
  Region region(4096);
  RegionHeap heap(region.span());
  void* a = heap.allocate(1);
  void* b = heap.allocate(100);
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % RegionHeap::kAlignment, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b) % RegionHeap::kAlignment, 0U);
  std::memset(a, 1, 1);
  std::memset(b, 2, 100);
  EXPECT_EQ(*static_cast<unsigned char*>(a), 1);
  heap.check();
  heap.release(a);
  heap.release(b);
  heap.check();
  EXPECT_EQ(heap.used_bytes(), 0U);
}

TEST(RegionHeap, IsWholeAgainWhenEverythingWasGivenBack) {
  Region region(8192);
  RegionHeap heap(region.span());
  std::vector<void*> pieces;
  while (void* p = heap.allocate(56)) pieces.push_back(p);
  EXPECT_EQ(pieces.size(), 128U) << "64 bytes each, header included";
  EXPECT_EQ(heap.refused(), 1U);
  for (std::size_t i = 0; i < pieces.size(); i += 2) heap.release(pieces[i]);
  EXPECT_EQ(heap.allocate(57), nullptr) << "no two free pieces are neighbours";
  for (std::size_t i = 1; i < pieces.size(); i += 2) heap.release(pieces[i]);
  heap.check();
  EXPECT_NE(heap.allocate(8192 - 8), nullptr) << "all of it, in one piece";
}

TEST(RegionHeap, RefusesWhatDoesNotFitAndCountsIt) {
  Region region(1024);
  RegionHeap heap(region.span());
  EXPECT_EQ(heap.allocate(1024), nullptr) << "the header does not fit";
  EXPECT_EQ(heap.allocate(~std::size_t{0}), nullptr);
  EXPECT_EQ(heap.allocate_zeroed(~std::size_t{0} / 2, 4), nullptr) << "the product overflows";
  EXPECT_EQ(heap.refused(), 3U);
  EXPECT_EQ(heap.used_bytes(), 0U);
  EXPECT_NE(heap.allocate(1016), nullptr);
}

TEST(RegionHeap, ZeroedIsZeroAfterUse) {
  Region region(1024);
  RegionHeap heap(region.span());
  void* a = heap.allocate(512);
  std::memset(a, 0xff, 512);
  heap.release(a);
  const auto* zeroed = static_cast<const unsigned char*>(heap.allocate_zeroed(64, 8));
  ASSERT_NE(zeroed, nullptr);
  for (int i = 0; i < 512; ++i) EXPECT_EQ(zeroed[i], 0);
}

TEST(RegionHeap, ReallocateKeepsContents) {
  Region region(2048);
  RegionHeap heap(region.span());
  auto* a = static_cast<char*>(heap.reallocate(nullptr, 10));
  std::memcpy(a, "0123456789", 10);
  void* fence = heap.allocate(8);
  auto* b = static_cast<char*>(heap.reallocate(a, 200));
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(std::memcmp(b, "0123456789", 10), 0);
  EXPECT_EQ(heap.reallocate(b, 4096), nullptr);
  EXPECT_EQ(std::memcmp(b, "0123456789", 10), 0) << "a refusal leaves it";
  heap.release(b);
  heap.release(fence);
  heap.check();
}

TEST(RegionHeap, DoesNotTouchTheInsideOfALargePiece) {
  Region region(64 * 1024);
  std::memset(region.words.data(), 0xee, region.words.size() * 8);
  RegionHeap heap(region.span());
  const auto* large = static_cast<const unsigned char*>(heap.allocate(16394));
  for (int i = 16; i < 16394; ++i) ASSERT_EQ(large[i], 0xee) << i;
  EXPECT_LE(heap.touched_bytes(), 16394U + 16U);
}

TEST(RegionHeap, TheFirstLargePieceBeginsRightBehindTheFront) {
  Region region(64 * 1024);
  RegionHeap heap(region.span(), 5000);
  const auto at = [&](const void* piece) {
    return static_cast<std::size_t>(static_cast<const std::byte*>(piece) - region.span().data());
  };
  void* before = heap.allocate(100);
  void* large = heap.allocate(16394);
  EXPECT_EQ(at(large), 5008U) << "5000, and its header";
  heap.check();
  // Small pieces fill the front, then follow the large ones.
  std::vector<void*> small;
  while (heap.used_bytes() < 5000 + 16394 - 600) {
    small.push_back(heap.allocate(500));
    EXPECT_LT(at(small.back()), 5000U);
  }
  heap.check();
  void* late = heap.allocate(2000);
  EXPECT_GT(at(late), 5000U + 16394U);
  void* second = heap.allocate(16394);
  EXPECT_GT(at(second), at(late)) << "the front is skipped once";
  for (void* piece : small) heap.release(piece);
  for (void* piece : {before, large, late, second}) heap.release(piece);
  heap.check();
  EXPECT_EQ(heap.used_bytes(), 0U);
}

TEST(RegionHeap, WhatWouldNotFitBehindTheFrontMayUseIt) {
  Region region(16 * 1024);
  RegionHeap heap(region.span(), 8000);
  void* large = heap.allocate(9000);  // 8000 + 9000 is more than the region has
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(static_cast<std::byte*>(large), region.span().data() + 8);
  heap.check();
}

TEST(RegionHeap, DoesNotTouchWhatLiesBehindTheLastPiece) {
  Region region(64 * 1024);
  std::memset(region.words.data(), 0xee, region.words.size() * 8);
  RegionHeap heap(region.span(), 4000);
  void* small = heap.allocate(100);
  void* large = heap.allocate(16394);
  heap.release(heap.allocate(20000));
  heap.release(large);
  heap.release(small);
  EXPECT_NE(heap.allocate(100), nullptr);
  heap.check();
  const auto* bytes = reinterpret_cast<const unsigned char*>(region.words.data());
  for (std::size_t i = 4000 + 16408 + 16; i < 64 * 1024; ++i) ASSERT_EQ(bytes[i], 0xee) << i;
}

TEST(RegionHeap, CanBeToldToRefuse) {
  Region region(1024);
  RegionHeap heap(region.span());
  heap.refuse_after(1);
  EXPECT_NE(heap.allocate(8), nullptr);
  EXPECT_EQ(heap.allocate(8), nullptr);
}

TEST(RegionHeapDeathTest, FreeingTwiceAborts) {
  Region region(1024);
  RegionHeap heap(region.span());
  void* a = heap.allocate(8);
  heap.release(a);
  EXPECT_DEATH(heap.release(a), "is_free");
}

/// Random operations: pieces keep their contents, never overlap, and the totals are right.
TEST(RegionHeap, HoldsUnderRandomTraffic) {
  struct Held {
    unsigned char* at;
    std::size_t bytes;
    unsigned char mark;
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    Region region(32 * 1024);
    RegionHeap heap(region.span(), seed % 2 == 0 ? 0 : seed * 512);
    std::vector<Held> held;
    for (int step = 0; step < 3000; ++step) {
      if (held.empty() || rng.below(100) < 55) {
        const std::size_t bytes = rng.below(100) < 90 ? rng.below(400) : rng.below(9000);
        auto* at = static_cast<unsigned char*>(heap.allocate(bytes));
        if (at == nullptr) continue;
        const auto mark = static_cast<unsigned char>(rng.below(256));
        std::memset(at, mark, bytes);
        held.push_back({at, bytes, mark});
      } else {
        const std::size_t i = rng.below(held.size());
        for (std::size_t k = 0; k < held[i].bytes; ++k) ASSERT_EQ(held[i].at[k], held[i].mark);
        heap.release(held[i].at);
        held[i] = held.back();
        held.pop_back();
      }
      if (step % 100 == 0) heap.check();
    }
    for (const Held& h : held) heap.release(h.at);
    heap.check();
    EXPECT_EQ(heap.used_bytes(), 0U);
  }
}

}  // namespace
}  // namespace weir::inline v0::http::h2
