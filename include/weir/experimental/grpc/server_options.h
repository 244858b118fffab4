#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "weir/base/config_error.h"
#include "weir/base/ip_range.h"
#include "weir/base/time.h"
#include "weir/control/admission_request.h"
#include "weir/experimental/grpc/method_table.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace weir::inline v0::grpc {

/// Whose metadata is believed. x-weir-priority, x-weir-peer, x-weir-actor and x-weir-attempt of a
/// caller count only if one of these proves it trusted; those of others have no effect.
struct TrustPolicy {
  /// Names that a caller proved in its TLS handshake: what gRPC calls its peer identity, the
  /// subject alternative names of its certificate, or the common name if it has none.
  std::vector<std::string> identities{};
  /// Addresses that connections come from.
  std::vector<IpRange> addresses{};
};

/// How admission sees the calls of a gRPC server.
struct ServerOptions {
  /// Class, cost and more of each method.
  MethodTable methods{};
  TrustPolicy trust{};
  /// Whom a call is billed to, by name; an empty name: nobody. Called before admission, on the
  /// thread that received the call: it must be fast and must not block. Not called for trusted
  /// callers, which name the actor by x-weir-actor. Without a function it is the caller's identity
  /// from its TLS handshake.
  std::function<std::string(const ::grpc::ServerContextBase&)> actor{};
  ScopeId scope = ScopeId::kFirst;
  /// A refusal for `overload` is UNAVAILABLE instead of RESOURCE_EXHAUSTED: for clients whose retry
  /// policy cannot be changed.
  bool unavailable_on_overload = false;
  /// How often the threads of gRPC's callback API are kept awake, 10 to 900 ms: after a second
  /// without a completion they begin to sleep for 100 ms at a time, and a new call waits as long.
  /// Zero: never. One heartbeat serves the whole process.
  Duration heartbeat = std::chrono::milliseconds(250);

  [[nodiscard]] ConfigErrors validate() const;
};

}  // namespace weir::inline v0::grpc
