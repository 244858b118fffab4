#include "placement.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace valuestore {
namespace {

/// The finisher of splitmix64: each bit of the input changes half of the output.
std::uint64_t mixed(std::uint64_t x) noexcept {
  x ^= x >> 30U;
  x *= 0xBF58476D1CE4E5B9U;
  x ^= x >> 27U;
  x *= 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

}  // namespace

Placement::Placement(std::vector<std::string> names) : names_(std::move(names)) {
  for (const std::string& name : names_) seeds_.push_back(ValueKey::of("node ", name).mix());
}

std::vector<std::size_t> Placement::order(const ValueKey& key) const {
  const std::uint64_t number = key.mix();
  std::vector<std::size_t> nodes(names_.size());
  std::iota(nodes.begin(), nodes.end(), std::size_t{0});
  const auto score = [&](std::size_t node) { return mixed(seeds_[node] ^ number); };
  // Names break a tie, so that the order of the list never matters.
  std::sort(nodes.begin(), nodes.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(score(a), names_[a]) > std::pair(score(b), names_[b]);
  });
  return nodes;
}

bool Placement::owns(std::size_t node, const ValueKey& key) const {
  const std::vector<std::size_t> nodes = order(key);
  const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(std::min(kOwners, nodes.size()));
  return std::find(nodes.begin(), end, node) != end;
}

std::size_t Placement::find(std::string_view name) const noexcept {
  return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
}

}  // namespace valuestore
