#pragma once

#include <cstdint>

#include "weir/base/rng.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/upstream/hash_by_config.h"

#include "identity.h"

namespace weir::inline v0::gateway {

/// The key by which the balance `hash` assigns a request to an endpoint.
///
/// Header and path give the same key on every gateway, so that several gateways agree. An actor's
/// key is that of this process. A request without the header or without an actor goes anywhere: the
/// key is drawn.
/// Thread-safety: pure, but for `rng`. Cost: one hash; for a header a search in the list.
[[nodiscard]] std::uint64_t hash_key(const upstream::HashBy& by, const http::RequestMeta& meta,
                                     const http::HeaderList& headers, const Actor& actor,
                                     Rng& rng) noexcept;

}  // namespace weir::inline v0::gateway
