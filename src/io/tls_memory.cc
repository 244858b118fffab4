#include "weir/experimental/io/tls_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include <malloc.h>
#include <openssl/crypto.h>
#include <pthread.h>

#include "weir/base/bounded_count.h"

namespace weir::inline v0::io {
namespace {

/// A piece that a thread keeps for reuse; the link is stored in the piece itself.
struct Kept {
  Kept* next;
};
// malloc's overhead per allocation, and its size granularity.
constexpr std::uint64_t kOverhead = 8;
constexpr std::uint64_t kGrain = 16;

/// The memory a piece takes, including malloc's overhead; we add no header of our own.
std::uint64_t cost_of(void* piece) noexcept {
  return malloc_usable_size(piece) + kOverhead;
}

// Pieces that a thread keeps: sizes from 12 KB to 40 KB, rounded so that similar sizes share a
// shelf. These are record and handshake buffers; permanent data is smaller and not rounded.
constexpr std::uint64_t kKeptMin = 12 * 1024;
constexpr std::uint64_t kKeptStep = 2048;
constexpr std::size_t kShelves = 14;
constexpr std::uint32_t kPerShelf = 8;
// Credit moves between a thread and the process in steps of this size.
constexpr std::uint64_t kCreditStep = 64 * 1024;

struct Budget {
  std::atomic<std::uint64_t> limit{0};
  BoundedCount<std::uint64_t> taken;
  std::atomic<std::uint64_t> peak{0};
  std::atomic<std::uint64_t> refused{0};
};
Budget budget;

struct Shelf {
  Kept* first = nullptr;
  std::uint32_t count = 0;
};
/// A thread's own data. Trivial, so that it is valid for OpenSSL's last calls when a thread ends.
struct ThreadPart {
  std::array<Shelf, kShelves> shelves;
  std::uint64_t credit;
  bool known;  // on_thread_end() is registered
  bool over;
};
thread_local constinit ThreadPart own{};

bool take_credit(std::uint64_t bytes) noexcept {
  std::uint64_t taken = 0;
  const std::uint64_t limit = budget.limit.load(std::memory_order_relaxed);
  if (!budget.taken.try_add(bytes, limit, &taken)) return false;
  raise_to(budget.peak, taken);
  return true;
}

void give_credit(std::uint64_t bytes) noexcept {
  budget.taken.sub(bytes);
}

void empty_shelves(ThreadPart& part) noexcept {
  for (Shelf& shelf : part.shelves) {
    while (shelf.first != nullptr) {
      Kept* piece = shelf.first;
      shelf.first = piece->next;
      part.credit += cost_of(piece);
      std::free(piece);
    }
    shelf.count = 0;
  }
}

/// Runs at the end of a thread, before or after OpenSSL's own cleanup.
void on_thread_end(void* part) noexcept {
  auto& ended = *static_cast<ThreadPart*>(part);
  ended.over = true;
  empty_shelves(ended);
  give_credit(ended.credit);
  ended.credit = 0;
}

void notice_end(ThreadPart& part) noexcept {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, on_thread_end);
    return made;
  }();
  part.known = true;
  pthread_setspecific(key, &part);
}

/// Reserves this number of bytes for the thread and subtracts them from its credit.
bool spend(ThreadPart& part, std::uint64_t bytes) noexcept {
  if (part.credit < bytes) {
    const std::uint64_t missing = bytes - part.credit;
    const std::uint64_t wish = part.over ? missing : std::max(missing, kCreditStep);
    if (take_credit(wish)) {
      part.credit += wish;
    } else if (take_credit(missing)) {
      part.credit += missing;
    } else {
      empty_shelves(part);  // memory kept for reuse is needed now
      if (part.credit < bytes) {
        const std::uint64_t still = bytes - part.credit;
        if (!take_credit(still)) return false;
        part.credit += still;
      }
    }
  }
  part.credit -= bytes;
  return true;
}

void earn(ThreadPart& part, std::uint64_t bytes) noexcept {
  part.credit += bytes;
  const std::uint64_t keep = part.over ? 0 : kCreditStep;
  if (part.credit > 2 * keep) {
    give_credit(part.credit - keep);
    part.credit = keep;
  }
}

std::size_t shelf_of(std::uint64_t bytes) noexcept {
  return static_cast<std::size_t>((bytes - kKeptMin) / kKeptStep);
}
bool is_kept_size(std::uint64_t bytes) noexcept {
  return bytes >= kKeptMin && shelf_of(bytes) < kShelves;
}

void* allocate(std::size_t size) noexcept {
  ThreadPart& part = own;
  if (!part.known) notice_end(part);
  if (is_kept_size(size)) {
    size = (size + kKeptStep - 1) / kKeptStep * kKeptStep;
    if (is_kept_size(size)) {
      Shelf& shelf = part.shelves[shelf_of(size)];
      if (Kept* kept = shelf.first; kept != nullptr) {
        shelf.first = kept->next;
        --shelf.count;
        return kept;
      }
    }
  }
  const std::uint64_t guess = (std::uint64_t{size} + kOverhead + kGrain - 1) / kGrain * kGrain;
  if (guess < size || !spend(part, guess)) {
    budget.refused.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  void* piece = std::malloc(size);
  if (piece == nullptr) {
    earn(part, guess);
    return nullptr;
  }
  const std::uint64_t cost = cost_of(piece);
  if (cost > guess && !spend(part, cost - guess)) {
    std::free(piece);
    earn(part, guess);
    budget.refused.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  if (cost < guess) earn(part, guess - cost);
  return piece;
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  ThreadPart& part = own;
  const std::uint64_t size = malloc_usable_size(memory);
  if (!part.over && is_kept_size(size)) {
    Shelf& shelf = part.shelves[shelf_of(size)];
    if (shelf.count < kPerShelf) {
      shelf.first = ::new (memory) Kept{shelf.first};
      ++shelf.count;
      return;
    }
  }
  const std::uint64_t cost = size + kOverhead;
  std::free(memory);
  earn(part, cost);
}

void* openssl_malloc(std::size_t size, const char* /*file*/, int /*line*/) {
  return size == 0 ? nullptr : allocate(size);
}

void openssl_free(void* memory, const char* /*file*/, int /*line*/) {
  release(memory);
}

void* openssl_realloc(void* memory, std::size_t size, const char* /*file*/, int /*line*/) {
  if (memory == nullptr) return size == 0 ? nullptr : allocate(size);
  if (size == 0) {
    release(memory);
    return nullptr;
  }
  const std::size_t had = malloc_usable_size(memory);
  if (size <= had) return memory;
  void* larger = allocate(size);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, memory, had);
  release(memory);
  return larger;
}

}  // namespace

bool install_tls_memory(std::uint64_t budget_bytes) noexcept {
  budget.limit.store(budget_bytes, std::memory_order_relaxed);
  if (CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) == 1) return true;
  budget.limit.store(0, std::memory_order_relaxed);
  return false;
}

void set_tls_memory_budget(std::uint64_t budget_bytes) noexcept {
  budget.limit.store(budget_bytes, std::memory_order_relaxed);
}

TlsMemoryStats tls_memory_stats() noexcept {
  return {.budget_bytes = budget.limit.load(std::memory_order_relaxed),
          .taken_bytes = budget.taken.held(),
          .peak_bytes = budget.peak.load(std::memory_order_relaxed),
          .refused = budget.refused.load(std::memory_order_relaxed)};
}

}  // namespace weir::inline v0::io
