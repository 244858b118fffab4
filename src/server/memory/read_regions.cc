#include "memory/read_regions.h"

#include <algorithm>

#include <sys/mman.h>

#include "weir/base/assert.h"

namespace weir::inline v0::inline server {

std::uint32_t RegionPool::take() noexcept {
  const std::lock_guard lock(mutex_);
  std::byte* region = pool_.acquire();
  WEIR_ASSERT(region != nullptr);  // there is one per connection
  return pool_.index_of(region);
}

void RegionPool::give(std::uint32_t region) noexcept {
  const std::lock_guard lock(mutex_);
  pool_.release(pool_.at(region));
}

std::uint32_t RegionPool::trim(std::uint32_t regions_max) noexcept {
  const std::lock_guard lock(mutex_);
  return pool_.trim(regions_max);
}

RegionStack::RegionStack(RegionPool& pool)
    : pool_(pool), capacity_(pool.capacity()), ring_(capacity_), touched_(capacity_) {}

RegionStack::~RegionStack() {
  while (free_ > 0) abandon();
}

void RegionStack::adopt() {
  const std::uint32_t region = pool_.take();
  bottom_ = (bottom_ == 0 ? capacity_ : bottom_) - 1;
  ring_[bottom_] = region;
  touched_[region] = 1;  // perhaps, on another loop
  ++free_;
  ++free_min_;
  ++owned_;
}

void RegionStack::abandon() {
  WEIR_ASSERT(free_ > 0);  // the connection has released its region
  pool_.give(ring_[bottom_]);
  bottom_ = bottom_ + 1 == capacity_ ? 0 : bottom_ + 1;
  --free_;
  if (free_min_ > 0) --free_min_;
  --owned_;
}

ReadRegion RegionStack::lease() {
  WEIR_ASSERT(free_ > 0);
  const std::uint32_t region = slot(--free_);
  free_min_ = std::min(free_min_, free_);
  touched_[region] = 1;
  return {{pool_.at(region), pool_.region_bytes()}, region};
}

void RegionStack::release(const ReadRegion& region) {
  WEIR_ASSERT(free_ < owned_);
  slot(free_++) = region.index;
}

std::uint32_t RegionStack::sweep() noexcept {
  constexpr std::size_t kPage = 4096;
  const std::size_t whole = pool_.region_bytes() / kPage * kPage;
  std::uint32_t returned = 0;
  for (std::uint32_t i = 0; i < free_min_; ++i) {
    const std::uint32_t region = slot(i);
    if (touched_[region] == 0) continue;
    touched_[region] = 0;
    if (whole > 0) static_cast<void>(::madvise(pool_.at(region), whole, MADV_DONTNEED));
    ++returned;
  }
  free_min_ = free_;
  return returned;
}

}  // namespace weir::inline v0::inline server
