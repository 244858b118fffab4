#include "hash_key.h"

#include "weir/base/siphash.h"

namespace weir::inline v0::gateway {
namespace {

// Not a secret: gateways must agree. Clients who make keys collide are held by the bounded load of
// the balance.
constexpr SipKey kSharedKey{};

}  // namespace

std::uint64_t hash_key(const upstream::HashBy& by, const http::RequestMeta& meta,
                       const http::HeaderList& headers, const Actor& actor, Rng& rng) noexcept {
  switch (by.kind) {
    case upstream::HashBy::Kind::kPath:
      return siphash64(kSharedKey, meta.path.substr(0, meta.path.find('?')));
    case upstream::HashBy::Kind::kActor:
      if (actor.identity.present()) return actor.identity.key.low;
      break;
    case upstream::HashBy::Kind::kHeader:
      for (const http::HeaderView& field : headers) {
        if (http::equals_ignore_case(field.name, by.header)) {
          return siphash64(kSharedKey, field.value);
        }
      }
      break;
  }
  return rng.next_u64();
}

}  // namespace weir::inline v0::gateway
