#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "weir/base/assert.h"

namespace weir::inline v0 {

/// A first-in-first-out queue with a capacity fixed at construction.
///
/// Promises: one allocation, at construction. A push onto a full ring changes nothing, does not
/// touch its argument and returns false. Elements are destroyed when popped. A ring of capacity 0
/// is always full.
/// Thread-safety: none; the owner serialises calls. Cost: O(1), except clear() and destruction.
/// Lifetime: a reference is valid until its element is popped.
template <class T>
class Ring {
 public:
  explicit Ring(std::size_t capacity)
      : slots_(capacity == 0 ? nullptr : std::allocator<T>().allocate(capacity)),
        capacity_(capacity) {}
  Ring(Ring&& other) noexcept
      : slots_(std::exchange(other.slots_, nullptr)),
        capacity_(std::exchange(other.capacity_, 0)),
        head_(std::exchange(other.head_, 0)),
        size_(std::exchange(other.size_, 0)) {}
  Ring& operator=(Ring&& other) noexcept {
    Ring moved(std::move(other));
    std::swap(slots_, moved.slots_);
    std::swap(capacity_, moved.capacity_);
    std::swap(head_, moved.head_);
    std::swap(size_, moved.size_);
    return *this;
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    clear();
    if (slots_ != nullptr) std::allocator<T>().deallocate(slots_, capacity_);
  }

  [[nodiscard]] bool push_back(const T& value) { return emplace_back(value); }
  [[nodiscard]] bool push_back(T&& value) { return emplace_back(std::move(value)); }
  template <class... Args>
  [[nodiscard]] bool emplace_back(Args&&... args) {
    if (full()) return false;
    std::construct_at(slots_ + wrapped(size_), std::forward<Args>(args)...);
    ++size_;
    return true;
  }

  /// Removes and returns the oldest element. The ring must not be empty.
  T pop_front() {
    T* slot = &front();
    T value = std::move(*slot);
    std::destroy_at(slot);
    head_ = wrapped(1);
    --size_;
    return value;
  }

  [[nodiscard]] T& front() { return at(0); }
  [[nodiscard]] const T& front() const { return at(0); }
  [[nodiscard]] T& back() { return at(size_ - 1); }
  [[nodiscard]] const T& back() const { return at(size_ - 1); }
  /// The i-th oldest element.
  [[nodiscard]] T& at(std::size_t i) {
    WEIR_ASSERT(i < size_);
    return slots_[wrapped(i)];
  }
  [[nodiscard]] const T& at(std::size_t i) const {
    WEIR_ASSERT(i < size_);
    return slots_[wrapped(i)];
  }

  void clear() noexcept {
    for (; size_ > 0; --size_) {
      std::destroy_at(slots_ + head_);
      head_ = wrapped(1);
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] bool full() const noexcept { return size_ == capacity_; }

 private:
  [[nodiscard]] std::size_t wrapped(std::size_t i) const noexcept {
    const std::size_t position = head_ + i;
    return position >= capacity_ ? position - capacity_ : position;
  }

  T* slots_;
  std::size_t capacity_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weir::inline v0
