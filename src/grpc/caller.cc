#include "caller.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>

#include "peer_address.h"

namespace weir::inline v0::grpc {
namespace {

struct ReleaseAuthContext {
  void operator()(grpc_auth_context* context) const noexcept { grpc_auth_context_release(context); }
};
struct FreeText {
  void operator()(char* text) const noexcept { gpr_free(text); }
};

}  // namespace

Caller CallerJudge::judge(grpc_call* call) const {
  Caller caller;
  const std::unique_ptr<grpc_auth_context, ReleaseAuthContext> proven(grpc_call_auth_context(call));
  if (proven != nullptr && grpc_auth_context_peer_is_authenticated(proven.get()) != 0) {
    grpc_auth_property_iterator names = grpc_auth_context_peer_identity(proven.get());
    while (const grpc_auth_property* name = grpc_auth_property_iterator_next(&names)) {
      const std::string_view text(name->value, name->value_length);
      const bool listed = std::ranges::find(policy_.identities, text) != policy_.identities.end();
      if (listed || caller.identity.empty()) caller.identity = text;
      caller.trusted = listed;
      if (listed) return caller;
    }
  }
  if (policy_.addresses.empty()) return caller;
  const std::unique_ptr<char, FreeText> peer(grpc_call_get_peer(call));
  const auto address = address_of_peer(peer.get());
  if (!address) return caller;
  const auto has_it = [&](const IpRange& range) { return range.contains(*address); };
  caller.trusted = std::ranges::any_of(policy_.addresses, has_it);
  if (caller.trusted) caller.address = to_string(*address);
  return caller;
}

}  // namespace weir::inline v0::grpc
