#include "action_guard.h"

#include <string_view>
#include <utility>

#include "weir/experimental/http/field.h"

#include "action_token.h"
#include "identity.h"

namespace weir::inline v0::gateway {
namespace {

auto refused(std::uint16_t status, std::string why, std::vector<AdminField> fields = {}) {
  return unexpected(ActionRefusal{status, std::move(why), std::move(fields)});
}

bool is_json(std::string_view content_type) noexcept {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (!type.empty() && type.back() == ' ') type.remove_suffix(1);
  return http::equals_ignore_case(type, "application/json");
}

/// "http://127.0.0.1:9901" for the Host 127.0.0.1:9901.
bool is_own_origin(std::string_view origin, std::string_view host) noexcept {
  const std::size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && !host.empty() &&
         http::equals_ignore_case(origin.substr(scheme + 3), host);
}

Result<std::string, ActionRefusal> by_socket(const AdminPeer& peer, const std::string& path) {
  if (!peer.unix_socket) {
    return refused(403, "actions are taken over the Unix socket " + path + " only");
  }
  if (!peer.process) return refused(403, "the kernel does not say who asks");
  const std::string who = "uid " + std::to_string(peer.process->user);
  if (io::may_use(*peer.process, path)) return who;
  return refused(
      403, who + " is neither root, nor the user of the gateway, nor in the group of " + path);
}

Result<std::string, ActionRefusal> by_token(std::string_view authorization,
                                            const std::string& path) {
  const std::vector<AdminField> scheme = {{.name = "www-authenticate", .value = "Bearer"}};
  const std::string_view given = bearer_token(authorization);
  if (given.empty()) return refused(401, "send Authorization: Bearer TOKEN", scheme);
  const auto token = ActionToken::read(path);
  if (!token) return refused(503, token.error());
  if (!token->is(given)) return refused(401, "this is not the token of admin.token_file", scheme);
  return std::string("token");
}

}  // namespace

Result<std::string, ActionRefusal> who_acts(const AdminRequest& request,
                                            const AdminConfig& config) {
  if (request.method != "POST") {
    return refused(405, "an action is a POST", {{.name = "allow", .value = "POST"}});
  }
  if (!is_json(request.content_type)) return refused(415, "content-type must be application/json");
  if (!request.origin.empty() && !is_own_origin(request.origin, request.host)) {
    return refused(403, "a page of another site (Origin) asks for this action");
  }
  const std::string_view site = request.sec_fetch_site;
  if (!site.empty() && site != "same-origin" && site != "none") {
    return refused(403, "a page of another site (Sec-Fetch-Site) asks for this action");
  }
  if (config.actions == ActionsMode::kSocket) return by_socket(request.peer, config.actions_socket);
  return by_token(request.authorization, config.token_file);
}

}  // namespace weir::inline v0::gateway
