#include "rebuild.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>
#include <vector>

namespace valuestore {
namespace {

constexpr int kTries = 50;
constexpr weir::Duration kBetween = std::chrono::milliseconds(200);
constexpr std::size_t kPage = 256;
constexpr weir::Duration kFetchWait = std::chrono::seconds(1);

/// Writes what comes in pages, so that each fsync serves many records.
class PagedWrites {
 public:
  explicit PagedWrites(WriterThread& writer) : writer_(writer) {}

  void add(const StoredRecord& message) {
    Change change;
    if (!from_message(message, change.key, change.record)) return;
    change.root = message.root();
    changes_.push_back(std::move(change));
    if (changes_.size() >= kPage) flush();
  }
  bool flush() {
    for (const ChangeEnd end : writer_.apply_all(std::exchange(changes_, {}))) {
      failed_ = failed_ || end != ChangeEnd::kDone;
    }
    return !failed_;
  }

 private:
  WriterThread& writer_;
  std::vector<Change> changes_;
  bool failed_ = false;
};

std::string copy_from(std::size_t node, RecordKind kind, const NodeOptions& options, Peers& peers,
                      WriterThread& writer) {
  grpc::Status status;
  for (int i = 0; i < kTries; ++i) {
    PagedWrites writes(writer);
    status = peers.transfer(node, kind, [&](const StoredRecord& record) { writes.add(record); });
    if (!writes.flush()) return "rebuild: the own store cannot write";
    if (status.ok()) return {};
    std::promise<void> never;
    never.get_future().wait_for(kBetween);
  }
  return "rebuild: " + options.names[node] + ": " + status.error_message();
}

}  // namespace

void fetch_again(const ValueKey& key, std::size_t not_from, const NodeOptions& options,
                 const Placement& placement, Peers& peers, WriterThread& writer) {
  const std::vector<std::size_t> order = placement.order(key);
  for (std::size_t rank = 0; rank < std::min(order.size(), Placement::kOwners); ++rank) {
    const std::size_t node = order[rank];
    if (node == options.self || node == not_from) continue;
    peers.fetch(node, key, kFetchWait,
                [&writer, key](const grpc::Status& status, const StoredRecord& message) {
                  Change change;
                  if (!status.ok() || !from_message(message, change.key, change.record)) return;
                  if (change.key == key) writer.submit(std::move(change), [](ChangeEnd) {});
                });
    return;
  }
}

std::string rebuild(const NodeOptions& options, Peers& peers, WriterThread& writer) {
  for (std::size_t node = 0; node < options.names.size(); ++node) {
    if (node == options.self) continue;
    for (const RecordKind kind : {RecordKind::kLeaf, RecordKind::kRecipe}) {
      std::string error = copy_from(node, kind, options, peers, writer);
      if (!error.empty()) return error;
    }
  }
  return {};
}

}  // namespace valuestore
