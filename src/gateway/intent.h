#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "weir/base/time.h"
#include "weir/control/admission_request.h"
#include "weir/experimental/http/header_view.h"
#include "weir/policy/priority.h"

#include "route_table.h"
#include "trust.h"

namespace weir::inline v0::gateway {

/// The class, actor and deadline that a request asks for, as far as its sender is trusted.
struct Intent {
  Priority priority = Priority::kNormal;
  std::optional<Duration> time_left;  // x-weir-deadline-ms
  std::uint32_t attempt = 1;          // x-weir-attempt
  /// A gRPC call with a grpc-timeout: what was left of it when the head arrived. Any client may set
  /// it; the smaller of the two deadlines counts.
  std::optional<Duration> grpc_timeout{};
  bool upgrade = false;  // it is to become a tunnel: judge_upgrade()

  /// The time that its caller gives it.
  [[nodiscard]] std::optional<Duration> allowed() const noexcept {
    if (!time_left || !grpc_timeout) return time_left ? time_left : grpc_timeout;
    return std::min(*time_left, *grpc_timeout);
  }

  /// A second attempt of a read, or a retry: admitted last.
  [[nodiscard]] bool hedge() const noexcept { return attempt > 1; }
};

/// The route's values are used first, then those of a trusted peer; those of other senders are
/// ignored. An unknown class is normal; a deadline that is not a number is ignored; the longest is
/// one day.
[[nodiscard]] Intent read_intent(const http::HeaderList& headers, const Caller& caller,
                                 const Route& route) noexcept;

/// What admission needs in addition to the route and the intent.
struct RequestFacts {
  ScopeId scope = ScopeId::kFirst;
  Identity peer{};
  Identity actor{};
  std::uint64_t source = 0;  // a keyed hash of the client's address
  TimePoint received_at{};
  std::optional<std::uint64_t> body_length = 0;  // nullopt: a body of unknown length
};

/// The admission request for one HTTP request; /explain uses the same. A hedge is not billed to the
/// actor. `bytes` is zero on routes that charge held bytes: those are charged as they arrive.
[[nodiscard]] AdmissionRequest admission_request_for(const Route& route, const Intent& intent,
                                                     const RequestFacts& facts) noexcept;

}  // namespace weir::inline v0::gateway
