#include "hedged_methods.h"

#include <algorithm>

#include "weir/experimental/grpc/method_table.h"

namespace weir::inline v0::grpc {

std::vector<HedgedMethod> hedged_methods(const MethodTable& table) {
  std::vector<HedgedMethod> methods;
  for (const MethodTable::Entry& entry : table.entries()) {
    if (entry.rule.idempotent) methods.push_back({.path = entry.method, .kind = MethodKind::kRead});
  }
  return methods;
}

HedgedMethods::HedgedMethods(const std::vector<HedgedMethod>& methods) {
  std::uint32_t reads = 0;
  for (const HedgedMethod& method : methods) {
    Entry entry{.kind = method.kind, .reads = 0};
    if (method.kind == MethodKind::kRead) {
      entry.reads = static_cast<ReadClass>(std::min(reads++, kReadClassesMax - 1));
    }
    entries_.emplace(method.path, entry);
  }
  read_classes_ = std::clamp(reads, 1U, kReadClassesMax);
}

HedgedMethods::Entry HedgedMethods::of(std::string_view method) const {
  if (const auto own = entries_.find(method); own != entries_.end()) return own->second;
  const std::size_t slash = method.rfind('/');
  if (slash == std::string_view::npos) return {};
  std::string service(method.substr(0, slash + 1));
  service += '*';
  const auto all = entries_.find(service);
  return all != entries_.end() ? all->second : Entry{};
}

}  // namespace weir::inline v0::grpc
