#include "weir/base/block_pool.h"

#include <algorithm>
#include <limits>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

#include "weir/base/assert.h"

namespace weir::inline v0 {
namespace {

constexpr std::size_t kLineBytes = 64;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  if (bytes > std::numeric_limits<std::size_t>::max() - unit) throw std::bad_alloc();
  return (bytes + unit - 1) / unit * unit;
}

std::size_t product(std::size_t a, std::size_t b) {
  if (b != 0 && a > std::numeric_limits<std::size_t>::max() / b) throw std::bad_alloc();
  return a * b;
}

std::size_t page_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

BlockPool::BlockPool(Shape shape)
    : block_bytes_(shape.block_bytes),
      stride_(rounded_up(std::max<std::size_t>(shape.block_bytes, 1), kLineBytes)),
      mapped_bytes_(rounded_up(product(stride_, shape.block_count), page_bytes())),
      free_(std::make_unique_for_overwrite<std::uint32_t[]>(shape.block_count)),
      taken_(std::make_unique<bool[]>(shape.block_count)) {
  stats_.capacity = shape.block_count;
  if (mapped_bytes_ == 0) return;
  void* mapping = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  // Huge pages would commit 2 MiB at the first byte; blocks that were never used must cost nothing.
  static_cast<void>(::madvise(mapping, mapped_bytes_, MADV_NOHUGEPAGE));
  memory_ = static_cast<std::byte*>(mapping);
}

BlockPool::~BlockPool() {
  if (memory_ != nullptr) static_cast<void>(::munmap(memory_, mapped_bytes_));
}

std::byte* BlockPool::acquire() noexcept {
  std::uint32_t index = fresh_;
  if (free_count_ > 0) {
    index = free_[--free_count_];
    trimmed_ = std::min(trimmed_, free_count_);
  } else if (fresh_ < stats_.capacity) {
    ++fresh_;
  } else {
    ++stats_.exhausted;
    return nullptr;
  }
  taken_[index] = true;
  stats_.peak = std::max(stats_.peak, ++stats_.used);
  return memory_ + stride_ * index;
}

void BlockPool::release(std::byte* block) noexcept {
  const std::uint32_t index = index_of(block);
  WEIR_ASSERT(taken_[index]);
  taken_[index] = false;
  free_[free_count_++] = index;
  --stats_.used;
}

std::uint32_t BlockPool::index_of(const std::byte* block) const noexcept {
  const auto offset = reinterpret_cast<std::uintptr_t>(block) -
                      reinterpret_cast<std::uintptr_t>(memory_);  // wraps to a huge value if below
  WEIR_ASSERT(offset < stride_ * stats_.capacity && offset % stride_ == 0);
  return static_cast<std::uint32_t>(offset / stride_);
}

std::byte* BlockPool::at(std::uint32_t index) const noexcept {
  WEIR_ASSERT(index < stats_.capacity);
  return memory_ + stride_ * index;
}

std::uint32_t BlockPool::trim(std::uint32_t blocks_max) noexcept {
  const std::size_t page = page_bytes();
  std::uint32_t done = 0;
  for (; done < blocks_max && trimmed_ < free_count_; ++done, ++trimmed_) {
    // Only pages that are completely inside the block: its neighbours may be in use.
    const std::size_t start = stride_ * free_[trimmed_];
    const std::size_t first = (start + page - 1) / page * page;
    const std::size_t last = (start + stride_) / page * page;
    if (first < last) static_cast<void>(::madvise(memory_ + first, last - first, MADV_DONTNEED));
  }
  return done;
}

}  // namespace weir::inline v0
