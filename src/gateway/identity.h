#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weir/base/ip_range.h"
#include "weir/control/admission_controller.h"
#include "weir/control/admission_request.h"
#include "weir/experimental/gateway/route_config.h"
#include "weir/experimental/http/field.h"
#include "weir/experimental/http/header_view.h"

#include "trust.h"

namespace weir::inline v0::gateway {

/// The actor that a request is charged to, and how it was found.
struct Actor {
  Identity identity;  // not present: no actor
  IdentityKind kind = IdentityKind::kCertificate;
};

/// Finds the actor and the peer of a request.
///
/// Each kind has its own hash space: the API key "alice" is not the actor "alice" that a trusted
/// peer names. Secrets are hashed; no byte of them is stored.
/// Thread-safety: const after construction. Cost: one keyed hash; no allocation.
class IdentityFinder {
 public:
  IdentityFinder() = default;
  explicit IdentityFinder(std::string api_key_header)
      : api_key_header_(std::move(api_key_header)), api_key_id_(http::field_id(api_key_header_)) {}

  /// The first of `kinds` that the request contains. `scratch` holds the text of an address; it
  /// must outlive the use of the identity.
  [[nodiscard]] Actor actor_of(const http::HeaderList& headers, const Caller& caller,
                               std::span<const IdentityKind> kinds,
                               const AdmissionController& controller, IpText& scratch) const;

  /// The trusted node itself: the name that it sends, or its certificate's subject, or its address.
  [[nodiscard]] static Identity peer_of(const http::HeaderList& headers, const Caller& caller,
                                        const AdmissionController& controller, IpText& scratch);

  bool operator==(const IdentityFinder&) const = default;

 private:
  [[nodiscard]] std::string_view api_key(const http::HeaderList& headers) const noexcept;

  std::string api_key_header_ = "x-api-key";
  http::FieldId api_key_id_ = http::FieldId::kXApiKey;
};

/// The actor that a trusted peer names.
[[nodiscard]] Identity named_actor(std::string_view name, const AdmissionController& controller);

/// The token of "Bearer <token>"; empty for anything else.
[[nodiscard]] std::string_view bearer_token(std::string_view authorization) noexcept;

/// The address that identifies a client; for IPv6 the /64, because one site owns all of it.
[[nodiscard]] IpAddress billing_address(const IpAddress& client) noexcept;

}  // namespace weir::inline v0::gateway
