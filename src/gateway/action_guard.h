#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weir/base/result.h"
#include "weir/experimental/gateway/gateway_config.h"

#include "admin_request.h"

namespace weir::inline v0::gateway {

/// Why an action is refused.
struct ActionRefusal {
  std::uint16_t status = 400;
  std::string error;
  std::vector<AdminField> fields{};
};

/// Who asks for an action, for the log ("uid 1000", "token"), or why nobody is believed. In order:
///
///   the method is POST (405) and the body JSON (415): a form of another site can be neither
///   Origin, if sent, is this Host (403), and Sec-Fetch-Site, if sent, is this site or none (403)
///   socket: the request came over admin.actions_socket, from a process that may use it (403)
///   token: Authorization is the token of admin.token_file (401); a cookie is never asked for
///
/// The Host itself was checked before (admin_host.h). Without a token in a cookie and with these, a
/// page of another site can make a browser send a request, but not one that is believed.
/// Thread-safety: any; reads the file of the token.
[[nodiscard]] Result<std::string, ActionRefusal> who_acts(const AdminRequest& request,
                                                          const AdminConfig& config);

}  // namespace weir::inline v0::gateway
