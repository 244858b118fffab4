#include "http/h2/stream_table.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "weir/base/assert.h"

namespace weir::inline v0::http::h2 {

std::uint32_t StreamTable::slots_for(std::uint32_t streams) noexcept {
  return std::bit_ceil(std::max(2 * streams, 8U));
}

std::size_t StreamTable::bytes_for(std::uint32_t streams) noexcept {
  return slots_for(streams) * sizeof(std::uint16_t) + streams * sizeof(Stream);
}

StreamTable::StreamTable(void* memory, std::uint32_t streams) noexcept
    : streams_(reinterpret_cast<Stream*>(static_cast<std::byte*>(memory) +
                                         slots_for(streams) * sizeof(std::uint16_t))),
      slots_(static_cast<std::uint16_t*>(memory)),
      mask_(slots_for(streams) - 1),
      capacity_(streams) {
  std::uninitialized_fill_n(slots_, mask_ + 1, kNone);
}

Stream* StreamTable::find(StreamId id) const noexcept {
  for (std::uint32_t slot = home_of(id); slots_[slot] != kNone; slot = (slot + 1) & mask_) {
    if (streams_[slots_[slot]].id == id) return &streams_[slots_[slot]];
  }
  return nullptr;
}

Stream* StreamTable::open(StreamId id) noexcept {
  if (size_ == capacity_) return nullptr;
  std::uint16_t index = free_;
  if (index != kNone) {
    free_ = streams_[index].next_told;
  } else {
    index = static_cast<std::uint16_t>(fresh_++);
  }
  Stream* stream = std::construct_at(streams_ + index);
  stream->id = id;
  stream->next_told = kNone;
  std::uint32_t slot = home_of(id);
  while (slots_[slot] != kNone) slot = (slot + 1) & mask_;
  slots_[slot] = index;
  ++size_;
  return stream;
}

void StreamTable::close(Stream& stream) noexcept {
  const std::uint16_t index = index_of(stream);
  std::uint32_t hole = home_of(stream.id);
  while (slots_[hole] != index) {
    WEIR_ASSERT(slots_[hole] != kNone);
    hole = (hole + 1) & mask_;
  }
  // Entries that a collision had moved past the hole are moved back into it.
  for (std::uint32_t slot = (hole + 1) & mask_; slots_[slot] != kNone; slot = (slot + 1) & mask_) {
    const std::uint32_t home = home_of(streams_[slots_[slot]].id);
    if (((slot - home) & mask_) >= ((slot - hole) & mask_)) {
      slots_[hole] = slots_[slot];
      hole = slot;
    }
  }
  slots_[hole] = kNone;
  stream.id = 0;
  stream.next_told = free_;
  free_ = index;
  --size_;
}

}  // namespace weir::inline v0::http::h2
