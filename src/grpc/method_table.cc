#include "weir/experimental/grpc/method_table.h"

#include <algorithm>

#include "weir/base/config_check.h"
#include "weir/policy/class_admission.h"

namespace weir::inline v0::grpc {
namespace {

constexpr MethodRule kUnlisted{};

bool is_full_name(std::string_view name) noexcept {
  const std::size_t slash = name.rfind('/');
  return name.starts_with('/') && slash > 1 && slash + 1 < name.size() &&
         std::count(name.begin(), name.end(), '/') == 2 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

MethodTable::MethodTable(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.method, entry.rule);
}

void MethodTable::set(std::string_view method, const MethodRule& rule) {
  const auto at = std::ranges::lower_bound(entries_, method, {}, &Entry::method);
  if (at != entries_.end() && at->method == method) {
    at->rule = rule;
  } else {
    entries_.insert(at, Entry{std::string(method), rule});
  }
}

const MethodRule& MethodTable::find(std::string_view method) const noexcept {
  const auto at = std::ranges::lower_bound(entries_, method, {}, &Entry::method);
  return at != entries_.end() && at->method == method ? at->rule : kUnlisted;
}

ConfigErrors MethodTable::validate() const {
  ConfigErrors errors;
  for (const Entry& entry : entries_) {
    if (!is_full_name(entry.method)) {
      add_error(errors, "methods", entry.method, "a full name: /package.Service/Method");
    }
    check_range(errors, "methods." + entry.method + ".cost", entry.rule.cost, 1U, kClassUnitsMax);
  }
  return errors;
}

}  // namespace weir::inline v0::grpc
