#include "weir_metadata.h"

#include <grpc/slice.h>

namespace weir::inline v0::grpc {
namespace {

std::string_view text_of_slice(const grpc_slice& slice) noexcept {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): a slice is bytes.
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

}  // namespace

WeirMetadata read_weir_metadata(const grpc_metadata_array& metadata) noexcept {
  constexpr std::string_view kPrefix = "x-weir-";
  WeirMetadata found;
  for (std::size_t i = 0; i < metadata.count; ++i) {
    const grpc_metadata& field = metadata.metadata[i];
    std::string_view key = text_of_slice(field.key);
    if (!key.starts_with(kPrefix)) continue;
    key.remove_prefix(kPrefix.size());
    const std::string_view value = text_of_slice(field.value);
    if (key == "priority") found.priority = value;
    if (key == "peer") found.peer = value;
    if (key == "actor") found.actor = value;
    if (key == "attempt") found.attempt = value;
  }
  return found;
}

}  // namespace weir::inline v0::grpc
