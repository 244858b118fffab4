#pragma once

#include <span>
#include <string>

#include "weir/experimental/io/address.h"

#include "served_upstream.h"

namespace weir::inline v0::gateway {

/// The addresses that the gateway listens on.
struct OwnNames {
  std::span<const io::SocketName> own;    // for requests
  std::span<const io::SocketName> admin;  // for operators
};

/// Which endpoint is one of the addresses that the gateway itself listens on: it would forward
/// every request to itself, or show its admin pages to every client. Empty if there is none.
[[nodiscard]] std::string circle_objection(const UpstreamSet& upstreams, const OwnNames& names);

}  // namespace weir::inline v0::gateway
