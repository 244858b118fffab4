#pragma once

#include <utility>

namespace weir::inline v0::io {

/// A function and the object it is called on, in two words: `Callback<int>::to<&Conn::on_x>(conn)`.
///
/// Promises: never allocates; an unset callback does nothing when called.
/// Lifetime: the object must outlive the use of the callback.
template <class... Args>
class Callback {
 public:
  using Thunk = void (*)(void*, Args...);

  constexpr Callback() = default;
  constexpr Callback(Thunk thunk, void* object) noexcept : thunk_(thunk), object_(object) {}

  template <auto Method, class T>
  [[nodiscard]] static constexpr Callback to(T& object) noexcept {
    return {[](void* self, Args... args) {
              (static_cast<T*>(self)->*Method)(std::forward<Args>(args)...);
            },
            &object};
  }

  void operator()(Args... args) const {
    if (thunk_ != nullptr) thunk_(object_, std::forward<Args>(args)...);
  }
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return thunk_ != nullptr; }

 private:
  Thunk thunk_ = nullptr;
  void* object_ = nullptr;
};

}  // namespace weir::inline v0::io
