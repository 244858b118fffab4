#pragma once

#include <cstddef>
#include <iterator>

#include "weir/base/assert.h"

namespace weir::inline v0 {

/// The links of one list membership, a member of the element. An element may have several.
///
/// Promises: knows whether it is linked. Destroying it while linked aborts; it cannot be copied.
template <class T>
class ListHook {
 public:
  ListHook() = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { WEIR_ASSERT(!linked()); }

  [[nodiscard]] bool linked() const noexcept { return owner_ != nullptr; }

 private:
  template <class U, ListHook<U> U::*Hook>
  friend class IntrusiveList;

  T* previous_ = nullptr;
  T* next_ = nullptr;
  const void* owner_ = nullptr;  // the list: removal through another one would break its size
};

/// A doubly linked list through a member of its elements, oldest in front:
/// `struct Conn { ListHook<Conn> idle; }; IntrusiveList<Conn, &Conn::idle> idle_list;`
///
/// Promises: never allocates. Inserting an element that is linked, or removing one that is not in
/// this list, aborts. An element may be removed during iteration once the iterator has passed it.
/// Thread-safety: none; the owner serialises calls. Cost: O(1), except clear() and iteration.
/// Lifetime: the list does not own its elements; it unlinks them when it is destroyed.
template <class T, ListHook<T> T::*Hook>
class IntrusiveList {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = T*;
    using reference = T&;

    Iterator() = default;
    explicit Iterator(T* at) noexcept : at_(at) {}
    T& operator*() const noexcept { return *at_; }
    T* operator->() const noexcept { return at_; }
    Iterator& operator++() noexcept {
      at_ = (at_->*Hook).next_;
      return *this;
    }
    Iterator operator++(int) noexcept {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    T* at_ = nullptr;
  };

  IntrusiveList() = default;
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;
  ~IntrusiveList() { clear(); }

  void push_back(T& element) { link(element, last_, nullptr); }
  void push_front(T& element) { link(element, nullptr, first_); }
  /// Puts `element` in front of `position`, which is in this list.
  void insert_before(T& position, T& element) {
    WEIR_ASSERT(contains(position));
    link(element, (position.*Hook).previous_, &position);
  }

  void remove(T& element) {
    WEIR_ASSERT(contains(element));
    ListHook<T>& hook = element.*Hook;
    (hook.previous_ != nullptr ? (hook.previous_->*Hook).next_ : first_) = hook.next_;
    (hook.next_ != nullptr ? (hook.next_->*Hook).previous_ : last_) = hook.previous_;
    hook.previous_ = nullptr;
    hook.next_ = nullptr;
    hook.owner_ = nullptr;
    --size_;
  }

  /// Unlinks and returns the first element; nullptr if there is none.
  T* pop_front() {
    T* element = first_;
    if (element != nullptr) remove(*element);
    return element;
  }
  T* pop_back() {
    T* element = last_;
    if (element != nullptr) remove(*element);
    return element;
  }

  void clear() noexcept {
    while (pop_front() != nullptr) {
    }
  }

  [[nodiscard]] bool contains(const T& element) const noexcept {
    return (element.*Hook).owner_ == this;
  }
  [[nodiscard]] T* front() const noexcept { return first_; }
  [[nodiscard]] T* back() const noexcept { return last_; }
  /// Neighbours in this list, nullptr at its ends.
  [[nodiscard]] T* next(const T& element) const noexcept { return (element.*Hook).next_; }
  [[nodiscard]] T* previous(const T& element) const noexcept { return (element.*Hook).previous_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] Iterator begin() const noexcept { return Iterator(first_); }
  [[nodiscard]] Iterator end() const noexcept { return Iterator(); }

 private:
  void link(T& element, T* previous, T* next) {
    ListHook<T>& hook = element.*Hook;
    WEIR_ASSERT(!hook.linked());
    hook.previous_ = previous;
    hook.next_ = next;
    hook.owner_ = this;
    (previous != nullptr ? (previous->*Hook).next_ : first_) = &element;
    (next != nullptr ? (next->*Hook).previous_ : last_) = &element;
    ++size_;
  }

  T* first_ = nullptr;
  T* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weir::inline v0
