#include "identity.h"

#include <algorithm>

namespace weir::inline v0::gateway {
namespace {

/// Moves a hash into a separate space, one per kind of name.
Identity in_space(Identity identity, std::uint64_t space) noexcept {
  identity.key.high ^= space * 0x9E3779B97F4A7C15U;
  return identity;
}

Identity of_kind(Identity identity, IdentityKind kind) noexcept {
  return in_space(identity, std::uint64_t{1} + static_cast<std::uint64_t>(kind));
}

}  // namespace

Identity named_actor(std::string_view name, const AdmissionController& controller) {
  return of_kind(controller.identify(name), IdentityKind::kHeader);
}

std::string_view bearer_token(std::string_view authorization) noexcept {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return {};
  if (!http::equals_ignore_case(authorization.substr(0, kScheme.size()), kScheme)) return {};
  authorization.remove_prefix(kScheme.size());
  const std::size_t start = authorization.find_first_not_of(' ');
  return start == std::string_view::npos ? std::string_view{} : authorization.substr(start);
}

IpAddress billing_address(const IpAddress& client) noexcept {
  IpAddress address = client;
  if (address.v6) std::fill(address.bytes.begin() + 8, address.bytes.end(), std::uint8_t{0});
  return address;
}

std::string_view IdentityFinder::api_key(const http::HeaderList& headers) const noexcept {
  if (api_key_id_ != http::FieldId::kOther) return headers.value(api_key_id_);
  for (const http::HeaderView& field : headers) {
    if (field.id == http::FieldId::kOther &&
        http::equals_ignore_case(field.name, api_key_header_)) {
      return field.value;
    }
  }
  return {};
}

Actor IdentityFinder::actor_of(const http::HeaderList& headers, const Caller& caller,
                               std::span<const IdentityKind> kinds,
                               const AdmissionController& controller, IpText& scratch,
                               const TokenCheck& tokens) const {
  bool throttled = false;
  for (const IdentityKind kind : kinds) {
    std::string_view name;
    bool secret = false;
    switch (kind) {
      case IdentityKind::kCertificate:
        name = caller.certificate;
        break;
      case IdentityKind::kBearer:
        name = bearer_token(headers.value(http::FieldId::kAuthorization));
        secret = true;
        break;
      case IdentityKind::kApiKey:
        name = api_key(headers);
        secret = !files_.keys;
        if (files_.keys) name = files_.keys->owner_of(name);
        break;
      case IdentityKind::kJwt: {
        const Actor actor = by_token(bearer_token(headers.value(http::FieldId::kAuthorization)),
                                     caller, controller, tokens);
        if (actor.identity.present()) return actor;
        throttled |= actor.throttled;
        break;
      }
      case IdentityKind::kHeader:
        if (caller.peer) name = headers.value(http::FieldId::kXWeirActor);
        break;
      case IdentityKind::kAddress:
        if (caller.client) {
          scratch = text_of(billing_address(*caller.client));
          name = scratch.view();
        }
        break;
    }
    if (name.empty()) continue;
    const Identity identity = secret ? controller.identify_secret(name) : controller.identify(name);
    return {.identity = of_kind(identity, kind), .kind = kind};
  }
  return {.identity = {}, .throttled = throttled};
}

Actor IdentityFinder::by_token(std::string_view token, const Caller& caller,
                               const AdmissionController& controller,
                               const TokenCheck& tokens) const {
  if (token.empty() || files_.jwt.keys.empty()) return {};
  const auto found = tokens.verifier.identify({.token = token,
                                               .source = source_of(caller, controller),
                                               .now = tokens.now,
                                               .unix_now = tokens.unix_now},
                                              files_.jwt, verifications_max_, controller);
  if (!found) return {.identity = {}, .throttled = found.error() == JwtFault::kThrottled};
  return {.identity = of_kind(*found, IdentityKind::kJwt), .kind = IdentityKind::kJwt};
}

std::uint64_t source_of(const Caller& caller, const AdmissionController& controller) noexcept {
  if (!caller.client) return 0;
  const IpAddress site = billing_address(*caller.client);
  const std::string_view bytes(reinterpret_cast<const char*>(site.bytes.data()), site.bytes.size());
  return controller.identify(bytes).key.low;
}

Identity IdentityFinder::peer_of(const http::HeaderList& headers, const Caller& caller,
                                 const AdmissionController& controller, IpText& scratch) {
  if (!caller.peer) return {};
  if (const std::string_view name = headers.value(http::FieldId::kXWeirPeer); !name.empty()) {
    return controller.identify(name);
  }
  if (!caller.certificate.empty()) return controller.identify(caller.certificate);
  if (!caller.socket) return {};
  scratch = text_of(*caller.socket);
  return controller.identify(scratch.view());
}

}  // namespace weir::inline v0::gateway
