#include "weir/experimental/http/parse_error.h"

#include <array>
#include <cstddef>

namespace weir::inline v0::http {

unsigned status_of(ParseError error) noexcept {
  static constexpr std::array kStatuses = {
#define WEIR_X(enumerator, status, name) status,
      WEIR_PARSE_ERRORS(WEIR_X)
#undef WEIR_X
  };
  return static_cast<unsigned>(kStatuses[static_cast<std::size_t>(error)]);
}

std::string_view to_string(ParseError error) noexcept {
  static constexpr auto kNames = std::to_array<std::string_view>({
#define WEIR_X(enumerator, status, name) name,
      WEIR_PARSE_ERRORS(WEIR_X)
#undef WEIR_X
  });
  return kNames[static_cast<std::size_t>(error)];
}

}  // namespace weir::inline v0::http
