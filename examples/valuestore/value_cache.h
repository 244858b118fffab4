#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "value_key.h"

namespace valuestore {

/// The values that were read last, up to a number of bytes. A value never changes, so an entry is
/// never wrong; garbage collection clears the cache.
///
/// Thread-safety: any thread. Cost: O(1) and a copy of the value, under a lock.
class ValueCache {
 public:
  explicit ValueCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  [[nodiscard]] std::optional<std::string> find(const ValueKey& key);
  /// A value larger than the cache is not kept.
  void insert(const ValueKey& key, const std::string& value);
  void clear();
  [[nodiscard]] std::size_t bytes() const;

 private:
  using Entry = std::pair<ValueKey, std::string>;

  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the last one used first
  std::unordered_map<ValueKey, std::list<Entry>::iterator, ValueKeyHash> places_;
  std::size_t bytes_ = 0;
};

}  // namespace valuestore
