#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/rng.h"

namespace fuzz {

/// FNV-1a: the cuts are computed from the bytes, so a finding can be replayed.
inline std::uint64_t seed_of(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

/// Passes the bytes to `feed` in pieces of mostly a few bytes.
template <class Feed>
void in_pieces(std::string_view bytes, Feed&& feed) {
  weir::Rng rng(seed_of(bytes));
  while (!bytes.empty()) {
    const std::size_t size = 1 + rng.below(rng.below(4) == 0 ? 64 : 6);
    feed(bytes.substr(0, size));
    bytes.remove_prefix(size < bytes.size() ? size : bytes.size());
  }
}

}  // namespace fuzz
