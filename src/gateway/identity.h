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

#include "identity_files.h"
#include "jwt.h"
#include "token_verifier.h"
#include "trust.h"

namespace weir::inline v0::gateway {

/// The actor that a request is charged to, and how it was found.
struct Actor {
  Identity identity;  // not present: no actor
  IdentityKind kind = IdentityKind::kCertificate;
  bool throttled = false;  // a token was not verified, because its source sends too many
};

/// What the verification of a token needs.
struct TokenCheck {
  TokenVerifier& verifier;
  TimePoint now;
  std::int64_t unix_now;
};

/// Finds the actor and the peer of a request.
///
/// Each kind has its own hash space: the API key "alice" is not the actor "alice" that a trusted
/// peer names. Secrets are hashed; no byte of them is stored.
/// Thread-safety: const after construction. Cost: one keyed hash, for keys of a file a SHA-256; no
/// allocation. A token that its verifier does not remember: see there.
class IdentityFinder {
 public:
  IdentityFinder() = default;
  explicit IdentityFinder(const ActorsConfig& config, IdentityFiles files = {})
      : api_key_header_(config.api_key_header),
        api_key_id_(http::field_id(api_key_header_)),
        verifications_max_(config.jwt.verifications_max),
        files_(std::move(files)) {}

  /// The first of `kinds` that the request contains. `scratch` holds the text of an address; it
  /// must outlive the use of the identity.
  [[nodiscard]] Actor actor_of(const http::HeaderList& headers, const Caller& caller,
                               std::span<const IdentityKind> kinds,
                               const AdmissionController& controller, IpText& scratch,
                               const TokenCheck& tokens) const;
  [[nodiscard]] const JwtRules& jwt() const noexcept { return files_.jwt; }

  /// The trusted node itself: the name that it sends, or its certificate's subject, or its address.
  [[nodiscard]] static Identity peer_of(const http::HeaderList& headers, const Caller& caller,
                                        const AdmissionController& controller, IpText& scratch);

  bool operator==(const IdentityFinder&) const = default;

 private:
  [[nodiscard]] std::string_view api_key(const http::HeaderList& headers) const noexcept;
  [[nodiscard]] Actor by_token(std::string_view token, const Caller& caller,
                               const AdmissionController& controller,
                               const TokenCheck& tokens) const;

  std::string api_key_header_ = "x-api-key";
  http::FieldId api_key_id_ = http::FieldId::kXApiKey;
  std::uint32_t verifications_max_ = 0;
  IdentityFiles files_;
};

/// The actor that a trusted peer names.
[[nodiscard]] Identity named_actor(std::string_view name, const AdmissionController& controller);

/// The token of "Bearer <token>"; empty for anything else.
[[nodiscard]] std::string_view bearer_token(std::string_view authorization) noexcept;

/// A keyed hash of the address that identifies a client; zero without an address.
[[nodiscard]] std::uint64_t source_of(const Caller& caller,
                                      const AdmissionController& controller) noexcept;

/// The address that identifies a client; for IPv6 the /64, because one site owns all of it.
[[nodiscard]] IpAddress billing_address(const IpAddress& client) noexcept;

}  // namespace weir::inline v0::gateway
