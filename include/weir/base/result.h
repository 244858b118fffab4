#pragma once

#include <functional>
#include <type_traits>
#include <utility>
#include <variant>

#include "weir/base/assert.h"

namespace weir::inline v0 {

/// Marks a value as the error of a Result: `return unexpected(Reason::kOverload);`
template <class E>
struct unexpected {
  E value;
  explicit constexpr unexpected(E e) : value(std::move(e)) {}
};
template <class E>
unexpected(E) -> unexpected<E>;

/// Either a T or the reason why there is none. The methods have the names of std::expected, so that
/// Result can become an alias of it.
///
/// Promises: never empty; reading the alternative that is not set aborts. It throws nothing itself.
/// Thread-safety: as T and E. Cost: sizeof(T) + a tag, no allocation.
template <class T, class E>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = E;

  // NOLINTNEXTLINE(google-explicit-constructor): `return value;` is the point.
  constexpr Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  template <class G>
  requires std::is_constructible_v<E, G>
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Result(unexpected<G> e) : state_(std::in_place_index<1>, std::move(e.value)) {}

  /// Builds the value in place, without a move.
  template <class... Args>
  constexpr explicit Result(std::in_place_t /*tag*/, Args&&... args)
      : state_(std::in_place_index<0>, std::forward<Args>(args)...) {}

  [[nodiscard]] constexpr bool has_value() const noexcept { return state_.index() == 0; }
  constexpr explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] constexpr T& value() & { return *checked(std::get_if<0>(&state_)); }
  [[nodiscard]] constexpr const T& value() const& { return *checked(std::get_if<0>(&state_)); }
  [[nodiscard]] constexpr T&& value() && { return std::move(*checked(std::get_if<0>(&state_))); }
  [[nodiscard]] constexpr T& operator*() & { return value(); }
  [[nodiscard]] constexpr const T& operator*() const& { return value(); }
  [[nodiscard]] constexpr T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] constexpr T* operator->() { return &value(); }
  [[nodiscard]] constexpr const T* operator->() const { return &value(); }

  [[nodiscard]] constexpr E& error() & { return *checked(std::get_if<1>(&state_)); }
  [[nodiscard]] constexpr const E& error() const& { return *checked(std::get_if<1>(&state_)); }
  [[nodiscard]] constexpr E&& error() && { return std::move(*checked(std::get_if<1>(&state_))); }

  template <class U>
  [[nodiscard]] constexpr T value_or(U&& fallback) const& {
    return has_value() ? value() : static_cast<T>(std::forward<U>(fallback));
  }
  template <class U>
  [[nodiscard]] constexpr T value_or(U&& fallback) && {
    return has_value() ? std::move(*this).value() : static_cast<T>(std::forward<U>(fallback));
  }

  /// f(T) -> Result<U, E>; an error passes through.
  template <class F>
  constexpr auto and_then(F&& f) && -> std::invoke_result_t<F, T&&> {
    if (has_value()) return std::invoke(std::forward<F>(f), std::move(*this).value());
    return unexpected(std::move(*this).error());
  }
  /// f(T) -> U; an error passes through.
  template <class F>
  constexpr auto transform(F&& f) && -> Result<std::invoke_result_t<F, T&&>, E> {
    if (has_value()) return std::invoke(std::forward<F>(f), std::move(*this).value());
    return unexpected(std::move(*this).error());
  }
  /// f(E) -> Result<T, E>; a value passes through.
  template <class F>
  constexpr Result or_else(F&& f) && {
    if (has_value()) return std::move(*this);
    return std::invoke(std::forward<F>(f), std::move(*this).error());
  }

 private:
  template <class P>
  static constexpr P checked(P pointer) {
    WEIR_ASSERT(pointer != nullptr);
    return pointer;
  }
  std::variant<T, E> state_;
};

/// Success without a value, or an error: `return {};` is success.
template <class E>
class [[nodiscard]] Result<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  constexpr Result() noexcept = default;
  template <class G>
  requires std::is_constructible_v<E, G>
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Result(unexpected<G> e) : state_(std::in_place_index<1>, std::move(e.value)) {}

  [[nodiscard]] constexpr bool has_value() const noexcept { return state_.index() == 0; }
  constexpr explicit operator bool() const noexcept { return has_value(); }
  constexpr void value() const { WEIR_ASSERT(has_value()); }

  [[nodiscard]] constexpr const E& error() const& {
    WEIR_ASSERT(!has_value());
    return *std::get_if<1>(&state_);
  }
  [[nodiscard]] constexpr E&& error() && {
    WEIR_ASSERT(!has_value());
    return std::move(*std::get_if<1>(&state_));
  }

  template <class F>
  constexpr auto and_then(F&& f) && -> std::invoke_result_t<F> {
    if (has_value()) return std::invoke(std::forward<F>(f));
    return unexpected(std::move(*this).error());
  }

 private:
  std::variant<std::monostate, E> state_;
};

}  // namespace weir::inline v0
