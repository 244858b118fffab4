#include "budget_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "weir/base/assert.h"

#include "memory_orders.h"

namespace weir::inline v0::inline control {

namespace {

std::size_t bucket_count(std::size_t entries, std::size_t ways) {
  return std::bit_ceil(std::max<std::size_t>(entries, 64)) / ways;
}

}  // namespace

BudgetTable::BudgetTable(std::size_t entries)
    : mask_(bucket_count(entries, kWays) - 1),
      buckets_(std::make_unique<Bucket[]>(mask_ + 1)),
      entries_(std::make_unique<Entry[]>((mask_ + 1) * kWays)),
      overflow_(std::make_unique<std::atomic<std::uint32_t>[]>(mask_ + 1)) {}

std::size_t BudgetTable::memory_bytes(std::size_t entries) noexcept {
  const std::size_t buckets = bucket_count(entries, kWays);
  return buckets * (sizeof(Bucket) + kWays * sizeof(Entry) + sizeof(std::atomic<std::uint32_t>));
}

bool BudgetTable::grow(std::uint32_t entry, std::uint64_t bytes, std::uint64_t bytes_max) noexcept {
  const std::uint64_t cap = std::min(bytes_max, kBytesMask);
  std::uint64_t word = entries_[entry].word.load(kRelaxed);
  do {
    if (bytes > cap || (word & kBytesMask) > cap - bytes) return false;
  } while (!entries_[entry].word.compare_exchange_weak(word, word + bytes, kAcqRel, kRelaxed));
  return true;
}

void BudgetTable::shrink(std::uint32_t entry, std::uint64_t bytes) noexcept {
  const std::uint64_t before = entries_[entry].word.fetch_sub(bytes, kAcqRel);
  WEIR_ASSERT((before & kBytesMask) >= bytes);
}

// Closes an entry that holds nothing; false if it holds something. Under structure_.
bool BudgetTable::claim(std::size_t index) noexcept {
  std::uint64_t word = entries_[index].word.load(kAcquire);
  if ((word & (kHeldMask | kClosed)) != 0) return false;
  return entries_[index].word.compare_exchange_strong(word, word | kClosed, kAcqRel, kRelaxed);
}

void BudgetTable::forget_overflow(std::uint64_t tag, std::size_t bucket) noexcept {
  for (std::size_t b = home_of(tag); b != bucket; b = (b + 1) & mask_) {
    overflow_[b].fetch_sub(1, kRelease);
  }
}

// Writes a closed entry and opens it with the next generation. Under structure_.
void BudgetTable::install(std::size_t index, std::size_t bucket, const Identity& who) noexcept {
  Entry& entry = entries_[index];
  std::atomic_thread_fence(kRelease);  // readers of the stores below see the entry closed: top()
  std::atomic<std::uint64_t>& tag = buckets_[bucket].tags[index % kWays];
  const std::uint64_t old_tag = tag.load(kRelaxed);
  if (old_tag != 0) {
    forget_overflow(old_tag, bucket);
  } else {
    used_.fetch_add(1, kRelaxed);
  }
  const std::uint64_t new_tag = tag_of(who.key);
  for (std::size_t b = home_of(new_tag); b != bucket; b = (b + 1) & mask_) {
    overflow_[b].fetch_add(1, kRelease);
  }
  entry.key_high.store(who.key.high, kRelaxed);
  entry.refused.store(0, kRelaxed);
  std::array<char, kLabelWords * sizeof(std::uint64_t)> text{};
  who.label.copy(text.data(), text.size());
  for (std::size_t i = 0; i < kLabelWords; ++i) {
    std::uint64_t part = 0;
    std::memcpy(&part, text.data() + i * sizeof part, sizeof part);
    entry.label[i].store(part, kRelaxed);
  }
  tag.store(new_tag, kRelease);
  const std::uint64_t closed = entry.word.load(kRelaxed);
  const std::uint64_t generation = (closed + kGeneration) & ~(kClosed | kHeldMask);
  entry.word.store(generation, kRelease);
}

// Finds or makes an entry for a new identity: an empty one, else one that holds nothing, as near to
// its home bucket as possible.
std::size_t BudgetTable::make_room(const Identity& who) noexcept {
  const std::scoped_lock lock(structure_);
  if (const std::size_t entry = find(who.key); entry != kNotFound) return entry;
  std::size_t bucket = home_of(tag_of(who.key));
  for (std::size_t probed = 0; probed <= mask_; ++probed) {
    for (std::size_t way = 0; way < kWays; ++way) {
      if (buckets_[bucket].tags[way].load(kRelaxed) != 0) continue;
      const std::size_t entry = bucket * kWays + way;
      WEIR_ASSERT(claim(entry));
      install(entry, bucket, who);
      return entry;
    }
    for (std::size_t n = 0; n < kWays; ++n) {
      const std::size_t entry = bucket * kWays + (next_victim_++ % kWays);
      if (!claim(entry)) continue;
      install(entry, bucket, who);
      return entry;
    }
    bucket = (bucket + 1) & mask_;
  }
  return kNotFound;
}

bool BudgetTable::idle() const noexcept {
  for (std::size_t i = 0; i < capacity(); ++i) {
    if ((entries_[i].word.load(kAcquire) & kHeldMask) != 0) return false;
  }
  return true;
}

std::string BudgetTable::read_label(const Entry& entry) const {
  std::array<char, kLabelWords * sizeof(std::uint64_t)> text{};
  for (std::size_t i = 0; i < kLabelWords; ++i) {
    const std::uint64_t part = entry.label[i].load(kRelaxed);
    std::memcpy(text.data() + i * sizeof part, &part, sizeof part);
  }
  return {text.data(), strnlen(text.data(), text.size())};
}

BudgetTable::Look BudgetTable::look(const Identity& who, std::uint64_t bytes,
                                    const BudgetCaps& caps) const noexcept {
  const std::size_t index = find(who.key);
  std::uint64_t word = index == kNotFound ? 0 : entries_[index].word.load(kAcquire);
  if ((word & kClosed) != 0) word = 0;  // being replaced: it held nothing
  return judge(word, bytes, caps);
}

std::vector<BudgetRow> BudgetTable::top(std::size_t count) const {
  std::vector<BudgetRow> rows;
  for (std::size_t i = 0; i < capacity(); ++i) {
    const Entry& entry = entries_[i];
    const std::uint64_t word = entry.word.load(kAcquire);
    if ((word & kClosed) != 0 || (word & kHeldMask) == 0) continue;
    BudgetRow row{.label = read_label(entry),
                  .id = buckets_[i / kWays].tags[i % kWays].load(kRelaxed),
                  .in_flight = count_of(word),
                  .bytes = word & kBytesMask,
                  .refused = entry.refused.load(kRelaxed)};
    // If the generation has changed, the entry was replaced, and the row may mix two holders.
    std::atomic_thread_fence(kAcquire);
    if ((entry.word.load(kRelaxed) ^ word) >= kGeneration) continue;
    rows.push_back(std::move(row));
  }
  const auto heavier = [](const BudgetRow& a, const BudgetRow& b) {
    if (a.in_flight != b.in_flight) return a.in_flight > b.in_flight;
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return a.id < b.id;
  };
  std::sort(rows.begin(), rows.end(), heavier);
  if (rows.size() > count) rows.resize(count);
  return rows;
}

}  // namespace weir::inline v0::inline control
