#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::inline v0::http::h2 {

/// malloc and free inside one block of memory that the caller owns: a library that allocates
/// through it never uses more than the block, fragmentation included.
///
/// Two-level segregated fit: free pieces are in lists by size (powers of two, each divided into
/// eight), found through bitmaps, and merged with free neighbours at once. The memory behind the
/// last piece is unused; it has no header, so it is not touched.
///
/// Promises: returns nullptr when no piece is large enough, and counts it; a piece never moves.
/// Memory inside a piece is not touched, so a large buffer that is filled only in part commits only
/// that part; large pieces leave the front to small ones, which stay close together. Freeing a
/// foreign pointer, or a piece twice, aborts where it can be detected. Thread-safety: none.
/// Cost: O(1); eight bytes per piece. Alignment: 8 bytes. Lifetime: the block must outlive the
/// heap, and the heap its pieces.
class RegionHeap {
 public:
  static constexpr std::size_t kAlignment = 8;
  static constexpr std::size_t kRegionBytesMin = 256;
  static constexpr std::size_t kLargeBytes = 8192;
  static constexpr std::size_t kRegionBytesMax = std::size_t{1} << 24U;

  /// `region` is aligned to kAlignment and has a size between the two bounds. Large pieces are
  /// placed behind its first `front_bytes`; the first of them exactly there, so that its beginning
  /// shares a page with the end of the front.
  explicit RegionHeap(std::span<std::byte> region, std::size_t front_bytes = 0);
  RegionHeap(const RegionHeap&) = delete;
  RegionHeap& operator=(const RegionHeap&) = delete;
  ~RegionHeap() = default;

  [[nodiscard]] void* allocate(std::size_t bytes) noexcept;
  [[nodiscard]] void* allocate_zeroed(std::size_t count, std::size_t bytes_each) noexcept;
  [[nodiscard]] void* reallocate(void* pointer, std::size_t bytes) noexcept;
  void release(void* pointer) noexcept;  // nullptr: does nothing

  /// Bytes in use, including the headers of pieces.
  [[nodiscard]] std::size_t used_bytes() const noexcept { return used_; }
  [[nodiscard]] std::size_t peak_bytes() const noexcept { return peak_; }
  [[nodiscard]] std::size_t capacity_bytes() const noexcept { return region_.size(); }
  /// The highest end of a small piece so far: only large pieces were placed behind it.
  [[nodiscard]] std::size_t touched_bytes() const noexcept { return touched_; }
  /// The number of failed allocations.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
  /// For tests: allows this number of further allocations, then fails all.
  void refuse_after(std::uint64_t pieces) noexcept { allowed_ = pieces; }

  /// For tests: walks all pieces and aborts if they are inconsistent.
  void check() const;

 private:
  static constexpr unsigned kSplitBits = 3;
  static constexpr unsigned kSplit = 1U << kSplitBits;
  static constexpr unsigned kSmallBits = 7;  // below 128 bytes: lists 16 bytes apart
  static constexpr unsigned kLevels = 24 - kSmallBits + 2;
  static constexpr std::uint32_t kNone = 0xffffffff;

  struct Piece;
  struct Place {
    unsigned level = 0;
    unsigned slot = 0;
  };

  [[nodiscard]] static Place place_of(std::uint32_t bytes) noexcept;
  [[nodiscard]] Piece& at(std::uint32_t offset) const noexcept;
  [[nodiscard]] std::uint32_t offset_of(const Piece& piece) const noexcept;
  [[nodiscard]] Piece* next(const Piece& piece) const noexcept;
  void insert(Piece& piece) noexcept;
  void remove(Piece& piece) noexcept;
  [[nodiscard]] Piece* find(std::uint32_t bytes) noexcept;
  [[nodiscard]] Piece* search(std::uint32_t bytes) noexcept;
  void trim(Piece& piece, std::uint32_t bytes) noexcept;
  [[nodiscard]] Piece* extend(std::uint32_t bytes) noexcept;
  void withdraw(Piece& last) noexcept;
  [[nodiscard]] Piece& owner_of(void* pointer) const;

  std::span<std::byte> region_;
  std::uint32_t front_ = 0;
  std::uint32_t end_ = 0;         // of the last piece
  std::uint32_t last_bytes_ = 0;  // its size
  std::uint32_t level_map_ = 0;
  std::array<std::uint8_t, kLevels> slot_maps_{};
  std::array<std::array<std::uint32_t, kSplit>, kLevels> heads_{};
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
  std::size_t touched_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t allowed_ = ~std::uint64_t{0};
};

}  // namespace weir::inline v0::http::h2
