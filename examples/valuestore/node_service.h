#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "weir/experimental/grpc/method_table.h"

#include "coordinator.h"
#include "examples/valuestore/valuestore.grpc.pb.h"
#include "worker_pool.h"

namespace valuestore {

/// The twelve methods of a node: it takes requests from gRPC's callback API and answers them from
/// threads of its own. What may wait for another node runs on the worker pools, reads on one and
/// writes on another; what waits for the own disk only runs on the readers or on the writer's
/// thread. So nodes that wait for each other always come to an end, and reads wait for no write.
///
/// Thread-safety: as gRPC calls it. Lifetime: until the server has shut down.
class NodeService final : public ValueStore::CallbackService {
 public:
  using Numbers = std::map<std::string, std::uint64_t>;

  NodeService(const Coordinator::Parts& parts, Coordinator& coordinator,
              std::function<void(Numbers&)> more_numbers)
      : parts_(parts),
        coordinator_(coordinator),
        more_numbers_(std::move(more_numbers)),
        workers_(parts.options.workers),
        writing_(parts.options.workers) {}

  /// Writes are refused from now on, reads go on.
  void drain() { draining_ = true; }

  /// Class and more of each method: high reads, normal writes, low background work.
  [[nodiscard]] static weir::grpc::MethodTable methods();

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  using Stream = grpc::ServerWriteReactor<StoredRecord>;
  Unary* GetValue(Context*, const GetValueRequest*, GetValueReply*) override;
  Unary* BatchGet(Context*, const BatchGetRequest*, BatchGetReply*) override;
  Unary* PutLeaf(Context*, const PutLeafRequest*, PutReply*) override;
  Unary* BatchPutLeaf(Context*, const BatchPutLeafRequest*, BatchPutLeafReply*) override;
  Unary* PutRecipe(Context*, const PutRecipeRequest*, PutReply*) override;
  Unary* HealthCheck(Context*, const HealthCheckRequest*, HealthCheckReply*) override;
  Unary* FetchValue(Context*, const FetchValueRequest*, StoredRecord*) override;
  Unary* ReplicateLeaf(Context*, const ReplicateRequest*, ReplicateReply*) override;
  Stream* MigrateTransfer(Context*, const TransferRequest*) override;
  Stream* SyncRecipes(Context*, const TransferRequest*) override;
  using Roots = grpc::ServerWriteReactor<GcCollectRootsReply>;
  using Sweep = grpc::ServerReadReactor<GcSweepRequest>;
  Roots* GcCollectRoots(Context*, const GcCollectRootsRequest*) override;
  Sweep* GcSweep(Context*, GcSweepReply*) override;

 private:
  [[nodiscard]] Stream* stream(const TransferRequest& request, RecordKind kind);
  [[nodiscard]] weir::Result<FoundValue, grpc::Status> get(const std::string& text,
                                                           const Caller& caller);
  [[nodiscard]] grpc::Status refused_write() const;

  const Coordinator::Parts parts_;
  Coordinator& coordinator_;
  const std::function<void(Numbers&)> more_numbers_;
  std::atomic<bool> draining_{false};
  WorkerPool workers_;  // reads
  WorkerPool writing_;  // writes, which may wait longer: for the fsyncs of other nodes
};

}  // namespace valuestore
