#include "weir/experimental/grpc/server_options.h"

#include <algorithm>

#include "weir/base/config_check.h"

namespace weir::inline v0::grpc {

ConfigErrors ServerOptions::validate() const {
  using std::chrono::milliseconds;
  ConfigErrors errors = methods.validate();
  if (std::ranges::find(trust.identities, std::string()) != trust.identities.end()) {
    add_error(errors, "trust.identities", "", "names that are not empty");
  }
  if (heartbeat != Duration::zero()) {
    check_range(errors, "heartbeat", heartbeat, Duration(milliseconds(10)),
                Duration(milliseconds(900)));
  }
  return errors;
}

}  // namespace weir::inline v0::grpc
