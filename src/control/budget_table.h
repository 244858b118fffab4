#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/siphash.h"
#include "weir/control/admission_request.h"
#include "weir/control/admission_stats.h"

namespace weir::inline v0::inline control {

/// What one holder may hold at once.
struct BudgetCaps {
  std::uint32_t count_max = 0;
  std::uint64_t bytes_max = 0;
};

/// How much each actor or peer holds: a bounded table from identity to (count, bytes).
///
/// Each holder is one 64-bit word, so count and bytes are checked and charged in one
/// compare-exchange:
///
///   bits 0–41 bytes · 42–55 count · 56–62 generation · 63 closed (being replaced)
///
/// Lookup of a known identity takes no lock: eight tags per cache line, then the holder's word. The
/// generation makes a charge fail if the entry was replaced in between. Only inserting a new
/// identity takes the lock; it may replace any entry that holds nothing, because no state is lost.
/// Entries that hold something are never replaced.
///
/// Promises: caps are never exceeded under any interleaving, unless `force` is used; memory never
/// grows after construction; an insertion succeeds if at most half of the entries hold something.
/// Thread-safety: any member, any thread.
class BudgetTable {
 public:
  /// `entries` is rounded up to a power of two, at least 64.
  explicit BudgetTable(std::size_t entries);

  enum class Charge : std::uint8_t { kOk, kCount, kBytes, kNoRoom };
  static constexpr std::uint32_t kNoEntry = ~std::uint32_t{0};

  struct Charged {
    Charge result = Charge::kNoRoom;
    std::uint32_t entry = kNoEntry;
    Charge over = Charge::kOk;  // charged above this cap: a rule in shadow mode would have refused

    /// The cap that is exceeded, whether the charge was forced or not.
    [[nodiscard]] Charge found() const noexcept { return result != Charge::kOk ? result : over; }
  };
  /// Charges one more request with `bytes` to `who`, or returns the cap that forbids it. `force`:
  /// charges even above the caps, unless the word is full (then entry is kNoEntry).
  [[nodiscard]] Charged charge(const Identity& who, std::uint64_t bytes, const BudgetCaps& caps,
                               bool force) noexcept;
  /// What a holder holds, and which caps one more request with `bytes` would exceed.
  struct Look {
    std::uint32_t count = 0;
    std::uint64_t bytes = 0;
    bool over_count = false;
    bool over_bytes = false;
  };
  /// What charge() would find; charges and counts nothing.
  [[nodiscard]] Look look(const Identity& who, std::uint64_t bytes,
                          const BudgetCaps& caps) const noexcept;
  void give_back(std::uint32_t entry, std::uint64_t bytes) noexcept;
  /// The request of this entry was refused for another reason than its caps: counts that, too.
  /// Call before give_back(), while the entry cannot be replaced.
  void note_refused(std::uint32_t entry) noexcept {
    entries_[entry].refused.fetch_add(1, std::memory_order_relaxed);
  }

  /// Charges more bytes to a request that is already charged.
  [[nodiscard]] bool grow(std::uint32_t entry, std::uint64_t bytes,
                          std::uint64_t bytes_max) noexcept;
  void shrink(std::uint32_t entry, std::uint64_t bytes) noexcept;

  [[nodiscard]] std::vector<BudgetRow> top(std::size_t count) const;
  [[nodiscard]] std::uint32_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return mask_ * kWays + kWays; }
  /// True if no entry holds anything.
  [[nodiscard]] bool idle() const noexcept;
  [[nodiscard]] static std::size_t memory_bytes(std::size_t entries) noexcept;

 private:
  static constexpr std::size_t kWays = 8;
  static constexpr std::size_t kLabelWords = 5;
  static constexpr std::size_t kNotFound = ~std::size_t{0};
  static constexpr std::uint32_t kBytesBits = 42;
  static constexpr std::uint64_t kBytesMask = (std::uint64_t{1} << kBytesBits) - 1;
  static constexpr std::uint64_t kOne = std::uint64_t{1} << kBytesBits;
  static constexpr std::uint64_t kCountMask = (std::uint64_t{1} << 14U) - 1;
  static constexpr std::uint64_t kHeldMask = (std::uint64_t{1} << 56U) - 1;
  static constexpr std::uint64_t kGeneration = std::uint64_t{1} << 56U;
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63U;

  struct alignas(64) Bucket {
    std::array<std::atomic<std::uint64_t>, kWays> tags{};  // 0: empty
  };
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> word{0};
    std::atomic<std::uint64_t> key_high{0};
    std::atomic<std::uint64_t> refused{0};
    std::array<std::atomic<std::uint64_t>, kLabelWords> label{};
  };

  [[nodiscard]] static std::uint32_t count_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>((word >> kBytesBits) & kCountMask);
  }
  // Neither sum overflows: both terms are below 2^42, or are refused here.
  [[nodiscard]] static Look judge(std::uint64_t word, std::uint64_t bytes,
                                  const BudgetCaps& caps) noexcept {
    const std::uint64_t held = word & kBytesMask;
    return {.count = count_of(word),
            .bytes = held,
            .over_count = count_of(word) >= caps.count_max,
            .over_bytes = bytes > caps.bytes_max || held + bytes > caps.bytes_max};
  }
  [[nodiscard]] static std::uint64_t tag_of(const Hash128& key) noexcept {
    return key.low != 0 ? key.low : 1;
  }
  [[nodiscard]] std::size_t home_of(std::uint64_t tag) const noexcept { return tag & mask_; }
  [[nodiscard]] std::size_t find(const Hash128& key) const noexcept;
  [[nodiscard]] Charged charge_known(std::size_t index, const Identity& who, std::uint64_t bytes,
                                     const BudgetCaps& caps, bool force, bool& moved) noexcept;
  [[nodiscard]] std::size_t make_room(const Identity& who) noexcept;
  [[nodiscard]] bool claim(std::size_t index) noexcept;
  void install(std::size_t index, std::size_t bucket, const Identity& who) noexcept;
  void forget_overflow(std::uint64_t tag, std::size_t bucket) noexcept;
  [[nodiscard]] std::string read_label(const Entry& entry) const;

  std::size_t mask_;  // buckets - 1
  std::unique_ptr<Bucket[]> buckets_;
  std::unique_ptr<Entry[]> entries_;
  // The number of entries whose home is this bucket or an earlier one and that are stored in a
  // later one. A search that finds nothing here continues only if this is not 0.
  std::unique_ptr<std::atomic<std::uint32_t>[]> overflow_;
  std::atomic<std::uint32_t> used_{0};
  std::mutex structure_;         // guards insertion and replacement
  std::size_t next_victim_ = 0;  // guarded by structure_
};

// Always inline: returning a struct through memory costs more than the charge itself.

inline std::size_t BudgetTable::find(const Hash128& key) const noexcept {
  const std::uint64_t tag = tag_of(key);
  std::size_t bucket = home_of(tag);
  for (std::size_t probed = 0; probed <= mask_; ++probed) {
    for (std::size_t way = 0; way < kWays; ++way) {
      if (buckets_[bucket].tags[way].load(std::memory_order_acquire) != tag) continue;
      const std::size_t entry = bucket * kWays + way;
      if (entries_[entry].key_high.load(std::memory_order_relaxed) == key.high) return entry;
    }
    if (overflow_[bucket].load(std::memory_order_acquire) == 0) return kNotFound;
    bucket = (bucket + 1) & mask_;
  }
  return kNotFound;
}

// Charges an entry that belonged to `who` at lookup; `moved`: it has been replaced since.
[[gnu::always_inline]] inline BudgetTable::Charged BudgetTable::charge_known(
    std::size_t index, const Identity& who, std::uint64_t bytes, const BudgetCaps& caps, bool force,
    bool& moved) noexcept {
  Entry& entry = entries_[index];
  const auto& tag = buckets_[index / kWays].tags[index % kWays];
  const auto is_ours = [&] {
    return tag.load(std::memory_order_acquire) == tag_of(who.key) &&
           entry.key_high.load(std::memory_order_relaxed) == who.key.high;
  };
  std::uint64_t word = entry.word.load(std::memory_order_acquire);
  for (;;) {
    moved = (word & kClosed) != 0 || !is_ours();
    if (moved) return {};
    const Look found = judge(word, bytes, caps);
    Charge over = Charge::kOk;
    if (found.over_count || found.over_bytes) [[unlikely]] {
      over = found.over_count ? Charge::kCount : Charge::kBytes;
      if (!force) {
        entry.refused.fetch_add(1, std::memory_order_relaxed);
        return {.result = over};
      }
      // A forced charge exceeds the caps, up to what the word can hold.
      if (count_of(word) == kCountMask || bytes > kBytesMask - (word & kBytesMask)) {
        return {.result = over, .over = over};
      }
    }
    if (entry.word.compare_exchange_weak(word, word + kOne + bytes, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
      // The generation has only 7 bits: check that it did not wrap around between lookup and
      // charge.
      if (is_ours()) {
        return {.result = Charge::kOk, .entry = static_cast<std::uint32_t>(index), .over = over};
      }
      give_back(static_cast<std::uint32_t>(index), bytes);
      moved = true;
      return {};
    }
  }
}

[[gnu::always_inline]] inline BudgetTable::Charged BudgetTable::charge(const Identity& who,
                                                                       std::uint64_t bytes,
                                                                       const BudgetCaps& caps,
                                                                       bool force) noexcept {
  for (;;) {
    std::size_t entry = find(who.key);
    if (entry == kNotFound) entry = make_room(who);
    if (entry == kNotFound) return {.result = Charge::kNoRoom, .over = Charge::kNoRoom};
    bool moved = false;
    const Charged charged = charge_known(entry, who, bytes, caps, force, moved);
    if (!moved) return charged;
  }
}

inline void BudgetTable::give_back(std::uint32_t entry, std::uint64_t bytes) noexcept {
  const std::uint64_t before =
      entries_[entry].word.fetch_sub(kOne + bytes, std::memory_order_acq_rel);
  WEIR_ASSERT(count_of(before) > 0 && (before & kBytesMask) >= bytes);
}

}  // namespace weir::inline v0::inline control
