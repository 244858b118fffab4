#include "weir/experimental/http/method.h"

#include <array>
#include <cstddef>

namespace weir::inline v0::http {

Method method_of(std::string_view token) noexcept {
  constexpr auto kTokens = std::to_array<std::string_view>(
      {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"});
  for (std::size_t i = 0; i < kTokens.size(); ++i) {
    if (token == kTokens[i]) return static_cast<Method>(i + 1);  // in the order of Method
  }
  return Method::kOther;
}

}  // namespace weir::inline v0::http
