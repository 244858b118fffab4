#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "weir/base/intrusive_list.h"
#include "weir/base/slab.h"

namespace weir::inline v0::inline control {

/// A hash table of a fixed number of objects that are found by a 64-bit key. T has a member `key`
/// and a hook `chain`.
///
/// Promises: all memory is reserved at construction; objects never move.
/// Thread-safety: none. Cost: O(1) expected.
template <class T>
class KeyTable {
 public:
  explicit KeyTable(std::uint32_t capacity)
      : bits_(static_cast<std::uint32_t>(std::bit_width(std::max(capacity, 2U) - 1))),
        chains_(std::make_unique<Chain[]>(std::size_t{1} << bits_)),
        objects_(capacity) {}
  ~KeyTable() {
    for (std::size_t i = 0; i < std::size_t{1} << bits_; ++i) chains_[i].clear();
  }

  [[nodiscard]] T* find(std::uint64_t key) const noexcept {
    for (T& object : chain_of(key)) {
      if (object.key == key) return &object;
    }
    return nullptr;
  }
  /// nullptr: the table is full. The key must be new.
  template <class... Args>
  [[nodiscard]] T* add(std::uint64_t key, Args&&... args) {
    T* object = objects_.get(objects_.acquire(key, std::forward<Args>(args)...));
    if (object != nullptr) chain_of(key).push_back(*object);
    return object;
  }
  void remove(T& object) {
    chain_of(object.key).remove(object);
    objects_.release(objects_.handle_of(&object));
  }
  template <class F>
  void for_each(F&& f) {
    objects_.for_each(std::forward<F>(f));
  }
  [[nodiscard]] std::size_t size() const noexcept {
    return static_cast<std::size_t>(objects_.stats().used);
  }
  [[nodiscard]] bool full() const noexcept {
    return objects_.stats().used == objects_.stats().capacity;
  }

 private:
  using Chain = IntrusiveList<T, &T::chain>;

  [[nodiscard]] Chain& chain_of(std::uint64_t key) const noexcept {
    // Fibonacci hashing: keys that follow one another, or share low bits, are spread.
    return chains_[(key * 0x9E3779B97F4A7C15U) >> (64U - bits_)];
  }

  std::uint32_t bits_;
  std::unique_ptr<Chain[]> chains_;
  Slab<T> objects_;
};

}  // namespace weir::inline v0::inline control
