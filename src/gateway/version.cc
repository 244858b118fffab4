#include "weir/experimental/gateway/version.h"

namespace weir::inline v0::gateway {

std::string_view version() noexcept {
  return WEIR_VERSION;
}

}  // namespace weir::inline v0::gateway
