#include "weir/experimental/client/client_message.h"

#include <algorithm>

#include "weir/experimental/http/field.h"

namespace weir::inline v0::inline client {

std::string_view ClientResponse::header(std::string_view name) const noexcept {
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const ClientHeader& one) {
    return http::equals_ignore_case(one.name, name);
  });
  return found != headers.end() ? std::string_view(found->value) : std::string_view{};
}

}  // namespace weir::inline v0::inline client
