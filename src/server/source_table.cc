#include "source_table.h"

#include <algorithm>
#include <array>
#include <span>

#include "weir/base/assert.h"

namespace weir::inline v0::inline server {
namespace {

bool is_mapped_v4(const io::Address& peer) noexcept {
  return std::all_of(peer.ip.begin(), peer.ip.begin() + 10, [](auto b) { return b == 0; }) &&
         peer.ip[10] == 0xff && peer.ip[11] == 0xff;
}

std::uint64_t big_endian(const std::uint8_t* bytes, int count) noexcept {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) value = (value << 8U) | bytes[i];
  return value;
}

SourceTable::Entry source_of(const io::Address& peer) noexcept {
  if (peer.family == io::Family::kV4) return {.source = big_endian(peer.ip.data(), 4)};
  if (is_mapped_v4(peer)) return {.source = big_endian(peer.ip.data() + 12, 4)};
  return {.source = big_endian(peer.ip.data(), 8), .count = 0, .v6 = true};
}

bool has_source(const io::Address& peer) noexcept {
  return peer.family == io::Family::kV4 || peer.family == io::Family::kV6;
}

std::uint64_t hash_of(SipKey secret, const SourceTable::Entry& entry) noexcept {
  const std::array<std::uint64_t, 2> words{entry.source, entry.v6 ? 1ULL : 0ULL};
  return siphash64(secret, std::as_bytes(std::span(words)));
}

}  // namespace

std::uint64_t source_hash(SipKey secret, const io::Address& peer) noexcept {
  return has_source(peer) ? std::max<std::uint64_t>(hash_of(secret, source_of(peer)), 1) : 0;
}

SourceTable::SourceTable(const Shape& shape)
    : per_source_max_(shape.per_source_max),
      mask_(places_for(shape.connections) - 1),
      secret_(shape.secret),
      entries_(std::make_unique<Entry[]>(std::size_t{mask_} + 1)) {}

std::uint32_t SourceTable::home(const Entry& entry) const noexcept {
  return static_cast<std::uint32_t>(hash_of(secret_, entry)) & mask_;
}

std::uint32_t SourceTable::find(const Entry& wanted) const noexcept {
  std::uint32_t at = home(wanted);
  while (entries_[at].count > 0 &&
         (entries_[at].source != wanted.source || entries_[at].v6 != wanted.v6)) {
    at = (at + 1) & mask_;
  }
  return at;
}

bool SourceTable::enter(const io::Address& peer) noexcept {
  if (!has_source(peer)) return true;
  const Entry wanted = source_of(peer);
  Entry& entry = entries_[find(wanted)];
  if (entry.count >= per_source_max_) return false;
  if (entry.count == 0) {
    WEIR_ASSERT(used_ <= mask_ / 2);  // never more sources than connections
    entry = wanted;
    ++used_;
  }
  ++entry.count;
  return true;
}

void SourceTable::leave(const io::Address& peer) noexcept {
  if (!has_source(peer)) return;
  const std::uint32_t at = find(source_of(peer));
  WEIR_ASSERT(entries_[at].count > 0);
  if (--entries_[at].count > 0) return;
  --used_;
  close_gap(at);
}

/// Linear probing without tombstones: later entries that can use the hole move into it, so that
/// probes stay short.
void SourceTable::close_gap(std::uint32_t hole) noexcept {
  for (std::uint32_t at = (hole + 1) & mask_; entries_[at].count > 0; at = (at + 1) & mask_) {
    const std::uint32_t wanted = home(entries_[at]);
    const bool reachable_without_hole = ((at - wanted) & mask_) < ((at - hole) & mask_);
    if (reachable_without_hole) continue;
    entries_[hole] = entries_[at];
    entries_[at].count = 0;
    hole = at;
  }
}

std::uint32_t SourceTable::count_of(const io::Address& peer) const noexcept {
  return has_source(peer) ? entries_[find(source_of(peer))].count : 0;
}

}  // namespace weir::inline v0::inline server
