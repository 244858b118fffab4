#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "weir/base/result.h"
#include "weir/experimental/io/address.h"

namespace weir::inline v0::io {

/// Storage for every supported address family, with the size in use.
struct RawAddress {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
    sockaddr_un local;
  };
  socklen_t size = sizeof(sockaddr_un);

  RawAddress() noexcept : local{} {}
};

[[nodiscard]] Result<RawAddress, IoError> to_raw(const SocketName& name) noexcept;
[[nodiscard]] Address from_raw(const RawAddress& raw) noexcept;

}  // namespace weir::inline v0::io
