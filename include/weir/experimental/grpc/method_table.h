#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/config_error.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::grpc {

/// What one gRPC method is to admission and to hedging.
struct MethodRule {
  std::optional<Priority> priority{};  // none: normal
  std::uint32_t cost = 1;              // units of the limit
  bool idempotent = false;             // may be sent twice: see hedged_methods(), for clients
  /// A stream keeps its units in the limit until it ends. For streams that are work of bounded
  /// length, such as an upload. Others move to streams_max when they are admitted, or stay in the
  /// limit while streams_max is reached.
  bool holds_limit = false;

  bool operator==(const MethodRule&) const = default;
};

/// The rules of the methods of a service, by full name: "/package.Service/Method".
///
/// Promises: a method that is not listed has MethodRule{}; of two entries of one name the later one
/// counts. Thread-safety: const members from any thread. Cost of find(): a binary search.
class MethodTable {
 public:
  struct Entry {
    std::string method;
    MethodRule rule{};

    bool operator==(const Entry&) const = default;
  };

  MethodTable() = default;
  MethodTable(std::initializer_list<Entry> entries);

  void set(std::string_view method, const MethodRule& rule);
  [[nodiscard]] const MethodRule& find(std::string_view method) const noexcept;
  /// Sorted by name.
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }
  /// Names that are not "/package.Service/Method", and costs outside of their range.
  [[nodiscard]] ConfigErrors validate() const;

  bool operator==(const MethodTable&) const = default;

 private:
  std::vector<Entry> entries_;
};

}  // namespace weir::inline v0::grpc
