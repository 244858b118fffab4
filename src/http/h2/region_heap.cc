#include "http/h2/region_heap.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "weir/base/assert.h"

namespace weir::inline v0::http::h2 {

/// Sizes include the header and are multiples of 8, so their low bits are flags. The list links
/// exist only while the piece is free, therefore no piece is smaller than 16 bytes.
struct RegionHeap::Piece {
  static constexpr std::uint32_t kFree = 1;
  static constexpr std::uint32_t kHeader = 8;
  static constexpr std::uint32_t kSmallest = 16;

  std::uint32_t before;  // size of the piece in front of this one, 0 for the first
  std::uint32_t size_and_flags;
  std::uint32_t list_next;
  std::uint32_t list_previous;

  [[nodiscard]] std::uint32_t size() const noexcept { return size_and_flags & ~7U; }
  [[nodiscard]] bool is_free() const noexcept { return (size_and_flags & kFree) != 0; }
  [[nodiscard]] void* memory() noexcept { return reinterpret_cast<std::byte*>(this) + kHeader; }
};

namespace {
constexpr std::size_t round_up(std::size_t bytes) noexcept {
  return (bytes + 7) & ~std::size_t{7};
}
}  // namespace

RegionHeap::RegionHeap(std::span<std::byte> region, std::size_t front_bytes)
    : region_(region), front_(static_cast<std::uint32_t>(front_bytes & ~std::size_t{7})) {
  const auto address = reinterpret_cast<std::uintptr_t>(region.data());
  WEIR_ASSERT(address % kAlignment == 0);
  WEIR_ASSERT(region.size() >= kRegionBytesMin && region.size() <= kRegionBytesMax);
  region_ = region.first(region.size() & ~std::size_t{7});
  for (auto& level : heads_) level.fill(kNone);
}

RegionHeap::Place RegionHeap::place_of(std::uint32_t bytes) noexcept {
  if (bytes < (1U << kSmallBits)) return {0, bytes >> (kSmallBits - kSplitBits)};
  const auto log = static_cast<unsigned>(std::bit_width(bytes)) - 1;
  return {log - kSmallBits + 1, (bytes >> (log - kSplitBits)) & (kSplit - 1)};
}

RegionHeap::Piece& RegionHeap::at(std::uint32_t offset) const noexcept {
  return *std::launder(reinterpret_cast<Piece*>(region_.data() + offset));
}

std::uint32_t RegionHeap::offset_of(const Piece& piece) const noexcept {
  return static_cast<std::uint32_t>(reinterpret_cast<const std::byte*>(&piece) - region_.data());
}

RegionHeap::Piece* RegionHeap::next(const Piece& piece) const noexcept {
  const std::uint32_t end = offset_of(piece) + piece.size();
  return end == end_ ? nullptr : &at(end);
}

void RegionHeap::insert(Piece& piece) noexcept {
  const Place place = place_of(piece.size());
  std::uint32_t& head = heads_[place.level][place.slot];
  piece.size_and_flags |= Piece::kFree;
  piece.list_next = head;
  piece.list_previous = kNone;
  if (head != kNone) at(head).list_previous = offset_of(piece);
  head = offset_of(piece);
  slot_maps_[place.level] = static_cast<std::uint8_t>(slot_maps_[place.level] | 1U << place.slot);
  level_map_ |= 1U << place.level;
}

void RegionHeap::remove(Piece& piece) noexcept {
  const Place place = place_of(piece.size());
  if (piece.list_next != kNone) at(piece.list_next).list_previous = piece.list_previous;
  if (piece.list_previous != kNone) {
    at(piece.list_previous).list_next = piece.list_next;
  } else if ((heads_[place.level][place.slot] = piece.list_next) == kNone) {
    slot_maps_[place.level] =
        static_cast<std::uint8_t>(slot_maps_[place.level] & ~(1U << place.slot));
    if (slot_maps_[place.level] == 0) level_map_ &= ~(1U << place.level);
  }
  piece.size_and_flags &= ~Piece::kFree;
}

/// The head of the list for this size, if that piece is large enough (others in the list may not
/// be); otherwise the head of the first list in which all pieces are large enough.
RegionHeap::Piece* RegionHeap::find(std::uint32_t bytes) noexcept {
  const Place exact = place_of(bytes);
  const std::uint32_t first = heads_[exact.level][exact.slot];
  if (first != kNone && at(first).size() >= bytes) return &at(first);
  unsigned level = exact.level;
  unsigned slots = slot_maps_[level] & (~0U << (exact.slot + 1));
  if (slots == 0) {
    const std::uint32_t levels = level_map_ & (~0U << (level + 1));
    if (levels != 0) {
      level = static_cast<unsigned>(std::countr_zero(levels));
      slots = slot_maps_[level];
    }
  }
  if (slots != 0) return &at(heads_[level][static_cast<unsigned>(std::countr_zero(slots))]);
  return nullptr;
}

/// The last resort, and the only search through a list: used when no larger list has a piece.
RegionHeap::Piece* RegionHeap::search(std::uint32_t bytes) noexcept {
  const Place exact = place_of(bytes);
  for (std::uint32_t i = heads_[exact.level][exact.slot]; i != kNone; i = at(i).list_next) {
    if (at(i).size() >= bytes) return &at(i);
  }
  return nullptr;
}

/// Adds a piece of `bytes` behind the last one, or returns nullptr. The first large piece skips the
/// rest of the front, which becomes a free piece.
RegionHeap::Piece* RegionHeap::extend(std::uint32_t bytes) noexcept {
  const bool skips = bytes >= kLargeBytes && end_ + Piece::kSmallest <= front_ &&
                     front_ + std::size_t{bytes} <= region_.size();
  if (!skips && bytes > region_.size() - end_) return nullptr;
  const auto append = [this](std::uint32_t size) -> Piece& {
    Piece& added = *::new (static_cast<void*>(region_.data() + end_)) Piece;
    added.before = last_bytes_;
    added.size_and_flags = size;
    end_ += size;
    last_bytes_ = size;
    return added;
  };
  if (skips) insert(append(front_ - end_));
  return &append(bytes);
}

/// Removes the last piece, which is not used any more.
void RegionHeap::withdraw(Piece& last) noexcept {
  last.size_and_flags |= Piece::kFree;  // so that freeing it twice is detected
  end_ = offset_of(last);
  last_bytes_ = last.before;
}

/// Cuts the part that `piece` (in use) does not need off its end, and frees it.
void RegionHeap::trim(Piece& piece, std::uint32_t bytes) noexcept {
  const std::uint32_t rest = piece.size() - bytes;
  if (rest < Piece::kSmallest) return;
  Piece* behind = next(piece);
  piece.size_and_flags = bytes;
  // `piece` was free, so the next piece is in use: there is nothing to merge with.
  WEIR_ASSERT(behind != nullptr && !behind->is_free());
  Piece& cut = *::new (static_cast<void*>(region_.data() + offset_of(piece) + bytes)) Piece;
  cut.before = bytes;
  cut.size_and_flags = rest;
  behind->before = rest;
  insert(cut);
}

void* RegionHeap::allocate(std::size_t bytes) noexcept {
  if (allowed_ == 0 || bytes > region_.size()) {
    ++refused_;
    return nullptr;
  }
  --allowed_;
  const auto wanted = static_cast<std::uint32_t>(
      std::max<std::size_t>(round_up(bytes + Piece::kHeader), Piece::kSmallest));
  Piece* piece = find(wanted);
  Piece* added = piece == nullptr ? extend(wanted) : nullptr;
  if (piece == nullptr && added == nullptr) piece = search(wanted);
  if (piece != nullptr) {
    remove(*piece);
    trim(*piece, wanted);
  } else if (piece = added; piece == nullptr) {
    ++refused_;
    return nullptr;
  }
  if (wanted < kLargeBytes)
    touched_ = std::max(touched_, std::size_t{offset_of(*piece)} + piece->size());
  used_ += piece->size();
  peak_ = std::max(peak_, used_);
  return piece->memory();
}

void* RegionHeap::allocate_zeroed(std::size_t count, std::size_t bytes_each) noexcept {
  if (bytes_each != 0 && count > region_.size() / bytes_each) {
    ++refused_;
    return nullptr;
  }
  void* memory = allocate(count * bytes_each);
  if (memory != nullptr) std::memset(memory, 0, count * bytes_each);
  return memory;
}

RegionHeap::Piece& RegionHeap::owner_of(void* pointer) const {
  std::byte* at = static_cast<std::byte*>(pointer) - Piece::kHeader;
  WEIR_ASSERT(at >= region_.data() && at < region_.data() + region_.size());
  Piece& piece = *std::launder(reinterpret_cast<Piece*>(at));
  WEIR_ASSERT(!piece.is_free());
  return piece;
}

void* RegionHeap::reallocate(void* pointer, std::size_t bytes) noexcept {
  if (pointer == nullptr) return allocate(bytes);
  const std::size_t had = owner_of(pointer).size() - Piece::kHeader;
  if (bytes <= had) return pointer;
  void* moved = allocate(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, pointer, had);
  release(pointer);
  return moved;
}

void RegionHeap::release(void* pointer) noexcept {
  if (pointer == nullptr) return;
  Piece* piece = &owner_of(pointer);
  used_ -= piece->size();
  Piece* behind = next(*piece);
  if (behind != nullptr && behind->is_free()) {
    remove(*behind);
    piece->size_and_flags += behind->size();
  }
  if (piece->before != 0) {
    Piece& front = at(offset_of(*piece) - piece->before);
    if (front.is_free()) {
      remove(front);
      front.size_and_flags += piece->size();
      piece = &front;
    }
  }
  behind = next(*piece);
  if (behind == nullptr) {
    withdraw(*piece);
    return;
  }
  behind->before = piece->size();
  insert(*piece);
}

void RegionHeap::check() const {
  std::size_t used = 0;
  std::uint32_t before = 0;
  bool previous_free = false;
  for (const Piece* piece = end_ == 0 ? nullptr : &at(0); piece != nullptr; piece = next(*piece)) {
    WEIR_ASSERT(piece->before == before && piece->size() >= Piece::kSmallest);
    WEIR_ASSERT(!(previous_free && piece->is_free()));
    previous_free = piece->is_free();
    before = piece->size();
    if (!previous_free) used += piece->size();
  }
  WEIR_ASSERT(used == used_ && before == last_bytes_ && end_ <= region_.size());
  WEIR_ASSERT(!previous_free);  // a free piece at the end is removed
}

}  // namespace weir::inline v0::http::h2
