#pragma once

#include <array>
#include <cstddef>

namespace weir::inline v0::gateway {

/// The last N values of a sequence.
///
/// Thread-safety: none. Cost: O(1), no allocation.
template <class T, std::size_t N>
class Latest {
 public:
  static constexpr std::size_t kMost = N;

  void push(const T& value) noexcept {
    values_[next_] = value;
    next_ = (next_ + 1) % N;
    if (size_ < N) ++size_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// 0 is the oldest one.
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept {
    return values_[(next_ + N - size_ + i) % N];
  }
  /// There must be one.
  [[nodiscard]] const T& back() const noexcept { return (*this)[size_ - 1]; }
  /// The index of the first of the last `count` values.
  [[nodiscard]] std::size_t begin_of_last(std::size_t count) const noexcept {
    return size_ > count ? size_ - count : 0;
  }

 private:
  std::array<T, N> values_{};
  std::size_t next_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weir::inline v0::gateway
