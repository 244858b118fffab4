#pragma once

#include <cstdint>
#include <string_view>

namespace weir::inline v0::http {

/// A request method whose meaning Weir knows; the token itself is in RequestMeta.
enum class Method : std::uint8_t {
  kOther,
  kGet,
  kHead,
  kPost,
  kPut,
  kDelete,
  kConnect,
  kOptions,
  kTrace,
  kPatch,
};

/// Exact match: methods are case-sensitive, so "get" is kOther.
[[nodiscard]] Method method_of(std::string_view token) noexcept;

/// Safe methods change nothing at the origin, so they may be sent twice (RFC 9110 §9.2.1).
[[nodiscard]] constexpr bool is_safe(Method m) noexcept {
  return m == Method::kGet || m == Method::kHead || m == Method::kOptions || m == Method::kTrace;
}

/// Safe methods, and those that have the same effect when repeated (RFC 9110 §9.2.2).
[[nodiscard]] constexpr bool is_idempotent(Method m) noexcept {
  return is_safe(m) || m == Method::kPut || m == Method::kDelete;
}

}  // namespace weir::inline v0::http
