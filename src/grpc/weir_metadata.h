#pragma once

#include <string_view>

#include <grpc/grpc.h>

namespace weir::inline v0::grpc {

/// The x-weir- metadata of a call, as views into it. Of a key that comes twice, the last counts.
struct WeirMetadata {
  std::string_view priority{};
  std::string_view peer{};
  std::string_view actor{};
  std::string_view attempt{};
};

[[nodiscard]] WeirMetadata read_weir_metadata(const grpc_metadata_array& metadata) noexcept;

}  // namespace weir::inline v0::grpc
