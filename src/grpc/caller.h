#pragma once

#include <string>
#include <utility>

#include <grpc/grpc.h>

#include "weir/experimental/grpc/server_options.h"

namespace weir::inline v0::grpc {

/// The other end of a call as far as it is proven: never by what the call itself says.
struct Caller {
  bool trusted = false;
  /// A name that it proved in the TLS handshake: of a trusted one the name that made it trusted.
  std::string identity{};
  std::string address{};  // of a caller that is trusted for its address
};

/// Judges callers by the trust policy.
///
/// Thread-safety: const. Cost: without a TLS identity and without trusted addresses, one look at
/// the call's authentication; an address costs an allocation and a comparison per range.
class CallerJudge {
 public:
  explicit CallerJudge(TrustPolicy policy) : policy_(std::move(policy)) {}

  [[nodiscard]] Caller judge(grpc_call* call) const;

 private:
  TrustPolicy policy_;
};

}  // namespace weir::inline v0::grpc
