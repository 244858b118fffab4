#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "value_key.h"

namespace valuestore {

/// Which nodes hold a key: rendezvous hashing. Each node has a score for the key, made of its name
/// and eight bytes of the key; the two with the highest scores own it, the third holds hints for
/// them while one is down.
///
/// Promises: every node that knows the same names gives the same answer; a node that joins N
/// others becomes the first owner of 1/(N + 1) of the keys and changes the order of no others.
/// Thread-safety: immutable. Cost: one multiplication or two per node and key.
class Placement {
 public:
  static constexpr std::size_t kOwners = 2;

  explicit Placement(std::vector<std::string> names);

  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  [[nodiscard]] std::size_t size() const noexcept { return names_.size(); }
  /// All nodes, the first owner first: indices into names().
  [[nodiscard]] std::vector<std::size_t> order(const ValueKey& key) const;
  [[nodiscard]] bool owns(std::size_t node, const ValueKey& key) const;
  /// The index of a name; size(): there is none.
  [[nodiscard]] std::size_t find(std::string_view name) const noexcept;

 private:
  std::vector<std::string> names_;
  std::vector<std::uint64_t> seeds_;  // a hash of each name
};

}  // namespace valuestore
