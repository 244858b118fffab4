#pragma once

#include "weir/experimental/io/error.h"

#include "upstream/failure.h"

namespace weir::inline v0::upstream {

/// The failure of a connect. Descriptors and memory are lacking here, not at the endpoint.
[[nodiscard]] constexpr UpstreamFailure connect_failure(io::IoError error) noexcept {
  switch (error) {
    case io::IoError::kRefused:
      return UpstreamFailure::kConnectRefused;
    case io::IoError::kTimedOut:
      return UpstreamFailure::kConnectTimeout;
    case io::IoError::kNoFds:
    case io::IoError::kNoMemory:
      return UpstreamFailure::kNoConnection;
    default:
      return UpstreamFailure::kConnectFailed;
  }
}

}  // namespace weir::inline v0::upstream
