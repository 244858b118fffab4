#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace valuestore {

/// What this node thinks of the others, from their answers to health checks. Slow is not down: only
/// a node that answers nothing twice in a row is.
///
/// Thread-safety: any thread. A node is up until it is found otherwise.
class PeerState {
 public:
  explicit PeerState(std::size_t nodes) : nodes_(std::make_unique<Node[]>(nodes)) {}

  void answered(std::size_t node, bool draining) noexcept {
    nodes_[node].failures = 0;
    nodes_[node].draining = draining;
  }
  void did_not_answer(std::size_t node) noexcept {
    if (nodes_[node].failures < kDown) ++nodes_[node].failures;
  }
  [[nodiscard]] bool is_up(std::size_t node) const noexcept {
    return nodes_[node].failures < kDown;
  }
  [[nodiscard]] bool takes_writes(std::size_t node) const noexcept {
    return is_up(node) && !nodes_[node].draining;
  }

 private:
  static constexpr int kDown = 2;
  struct Node {
    std::atomic<int> failures{0};
    std::atomic<bool> draining{false};
  };
  std::unique_ptr<Node[]> nodes_;
};

}  // namespace valuestore
