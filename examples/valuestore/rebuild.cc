#include "rebuild.h"

#include <chrono>
#include <future>
#include <utility>
#include <vector>

namespace valuestore {
namespace {

constexpr int kTries = 50;
constexpr weir::Duration kBetween = std::chrono::milliseconds(200);
constexpr std::size_t kPage = 256;

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
