#include "value_cache.h"

namespace valuestore {
namespace {

std::size_t entry_bytes(const std::string& value) {
  return value.size() + 128;
}

}  // namespace

std::optional<std::string> ValueCache::find(const ValueKey& key) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(key);
  if (place == places_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, place->second);
  return entries_.front().second;
}

void ValueCache::insert(const ValueKey& key, const std::string& value) {
  const std::size_t bytes = entry_bytes(value);
  const std::lock_guard lock(mutex_);
  if (bytes > bytes_max_ || places_.count(key) != 0) return;
  while (bytes_ + bytes > bytes_max_) {
    bytes_ -= entry_bytes(entries_.back().second);
    places_.erase(entries_.back().first);
    entries_.pop_back();
  }
  entries_.emplace_front(key, value);
  places_[key] = entries_.begin();
  bytes_ += bytes;
}

void ValueCache::clear() {
  const std::lock_guard lock(mutex_);
  places_.clear();
  entries_.clear();
  bytes_ = 0;
}

std::size_t ValueCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace valuestore
