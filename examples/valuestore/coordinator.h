#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/support/status.h>

#include "weir/base/result.h"

#include "hint_delivery.h"
#include "local_reader.h"
#include "node_options.h"
#include "peers.h"
#include "placement.h"
#include "recipe.h"
#include "record.h"
#include "remote_fetch.h"
#include "value_cache.h"
#include "writer_thread.h"

namespace valuestore {

/// Where a value came from: cache, local, remote, computed.
struct FoundValue {
  std::string value;
  const char* source = "";
};

/// What a node does for a client: reads and writes over all nodes.
///
/// A read asks the cache, then the own store, then the owners (hedged), and at last every node that
/// may have the value; "not found" needs the answer of both owners and of the hint holder. What an
/// owner turns out to miss is repaired. A caller's deadline goes with its read to other nodes, and
/// a read ends when its caller is gone.
///
/// A write is acknowledged when two nodes have it on their disks: both owners, or one and the third
/// node with a hint for the owner that is down. An owner that refuses because it is busy is not
/// down: the write is refused.
///
/// Thread-safety: any thread that may block.
class Coordinator {
 public:
  struct Parts {
    const NodeOptions& options;
    const Placement& placement;
    Storage& storage;
    LocalReader& reader;
    WriterThread& writer;
    ValueCache& cache;
    Peers& peers;
    RemoteFetch& remote;
    HintDelivery& hints;
  };
  explicit Coordinator(const Parts& parts) : parts_(parts) {}

  [[nodiscard]] weir::Result<FoundValue, grpc::Status> get(const ValueKey& key,
                                                           const Caller& caller);

  /// A put under way: begun for many, then ended for each, their fsyncs are shared.
  struct Put {
    ValueKey key{};
    Record record{};
    bool root = false;
    std::vector<std::size_t> order;
    std::vector<std::future<grpc::Status>> copies;  // at the owners
  };
  [[nodiscard]] Put begin_put(Record record, bool root);
  /// OK: it is acknowledged; `hinted`: one copy is a hint.
  grpc::Status end_put(Put& put, bool& hinted);
  /// A recipe, and its inputs again, so that they are not older than it is.
  grpc::Status put_recipe(const Recipe& recipe, bool root, const Caller& caller, bool& hinted);

  struct Counts {
    std::atomic<std::uint64_t> cache{0};
    std::atomic<std::uint64_t> local{0};
    std::atomic<std::uint64_t> remote{0};
    std::atomic<std::uint64_t> computed{0};
    std::atomic<std::uint64_t> searched{0};  // every node was asked
    std::atomic<std::uint64_t> repairs{0};
    std::atomic<std::uint64_t> puts{0};
    std::atomic<std::uint64_t> hinted{0};
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  using Found = weir::Result<Record, grpc::Status>;

  [[nodiscard]] Found find(const ValueKey& key, const Caller& caller, const char*& source);
  [[nodiscard]] Found search(const ValueKey& key, const Caller& caller, bool local_is_absent);
  void repair(const ValueKey& key, const Record& record, std::size_t node);
  [[nodiscard]] std::future<grpc::Status> copy_to(std::size_t node, const Put& put,
                                                  const std::string& hint_for);
  grpc::Status renew_inputs(const Recipe& recipe, const Caller& caller, std::size_t depth,
                            std::size_t& budget);

  const Parts parts_;
  const RecipeBounds bounds_;
  Counts counts_;
};

/// What a client or another node is told about a change.
[[nodiscard]] grpc::Status to_status(ChangeEnd end);

}  // namespace valuestore
