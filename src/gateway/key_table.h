#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"

#include "io/sha256.h"

namespace weir::inline v0::gateway {

/// API keys and the names of their owners. The keys themselves are not known: the file has their
/// SHA-256, as sha256sum prints it.
///
///   # comment
///   <64 hexadecimal digits>  <name>
///
/// Several keys may have one owner: they share a budget.
/// Thread-safety: const after construction. Cost: find() is one SHA-256 and a binary search; no
/// allocation after the first call of a thread.
class KeyTable {
 public:
  static constexpr std::size_t kKeysMax = 100'000;
  static constexpr std::size_t kNameMax = 128;

  KeyTable() = default;
  /// The error is a sentence with the line and what is wrong with it.
  [[nodiscard]] static Result<KeyTable, std::string> parse(std::string_view text);

  /// The owner of a key; empty if there is none. Lifetime: that of the table.
  [[nodiscard]] std::string_view owner_of(std::string_view key) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  bool operator==(const KeyTable&) const = default;

 private:
  struct Entry {
    io::Sha256Digest digest;
    std::string owner;
    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> entries_;  // by digest
};

}  // namespace weir::inline v0::gateway
