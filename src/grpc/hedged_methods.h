#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weir/experimental/grpc/hedged_channel_config.h"

namespace weir::inline v0::grpc {

/// Methods whose latencies are comparable: each read of the table is a class of its own, and
/// further ones share the last.
using ReadClass = std::uint8_t;
inline constexpr std::uint32_t kReadClassesMax = 8;

/// The table of methods, as calls ask it.
///
/// Thread-safety: any thread; it does not change. Cost: a search by name.
class HedgedMethods {
 public:
  struct Entry {
    MethodKind kind = MethodKind::kOther;
    ReadClass reads = 0;  // of a kRead
  };
  explicit HedgedMethods(const std::vector<HedgedMethod>& methods);

  /// `method`: "/package.Service/Method". Its own line, that of its service, or kOther.
  [[nodiscard]] Entry of(std::string_view method) const;
  [[nodiscard]] std::uint32_t read_classes() const noexcept { return read_classes_; }

 private:
  std::map<std::string, Entry, std::less<>> entries_;
  std::uint32_t read_classes_ = 1;
};

}  // namespace weir::inline v0::grpc
