#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "weir/base/time.h"
#include "weir/policy/priority.h"

#include "examples/valuestore/valuestore.grpc.pb.h"
#include "hint_delivery.h"
#include "node_options.h"
#include "peer_state.h"
#include "record.h"
#include "value_key.h"

namespace valuestore {

[[nodiscard]] StoredRecord to_message(const ValueKey& key, const Record& record, bool root);
/// False: the bytes do not have the hash that the key says.
[[nodiscard]] bool from_message(const StoredRecord& message, ValueKey& key, Record& record);

/// The other nodes, as this one calls them.
///
/// One thread and one completion queue for all calls: no call blocks a thread, and callbacks run on
/// that thread. A second thread checks the health of each node.
/// A node admits a number of calls of one peer at once. Copies of writes beyond their part of it
/// wait here, in order of arrival, up to a number and a sum of bytes. They fail when their time is
/// over, and all at once when their node is found to be down or to drain.
///
/// Promises: `done` is called once for each call, at its time limit (and 50 ms) at the latest; it
/// counts from the call of this class.
/// Thread-safety: any thread. Lifetime: stop() first, or the destructor does it: copies that wait
/// fail, calls under way are waited for, later ones fail at once.
class Peers {
 public:
  explicit Peers(const NodeOptions& options);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  void stop();

  using OnStatus = std::function<void(const grpc::Status&)>;
  using OnRecord = std::function<void(const grpc::Status&, const StoredRecord&)>;

  /// The class of the call is that of the work it is a part of.
  void replicate(std::size_t node, const ReplicateRequest& request, weir::Priority priority,
                 weir::Duration at_most, OnStatus done);
  /// Returns what TryCancel() ends the call with.
  std::shared_ptr<grpc::ClientContext> fetch(std::size_t node, const ValueKey& key,
                                             weir::Duration at_most, OnRecord done);
  /// A parcel of HintDelivery.
  void send(const Parcel& parcel, const std::function<void(bool)>& done);

  /// All records of a kind that this node owns, from one other; blocks.
  grpc::Status transfer(std::size_t node, RecordKind kind,
                        const std::function<void(const StoredRecord&)>& visit);

  [[nodiscard]] PeerState& state() noexcept { return state_; }

 private:
  template <class Reply>
  struct Call;
  struct Tag;
  /// The copies of writes on their way to one node.
  using Copy = std::unique_ptr<Call<ReplicateReply>>;
  struct Lane {
    std::size_t open = 0;  // that have left
    std::deque<Copy> waiting;
    std::size_t waiting_bytes = 0;
  };

  void complete();
  void run_health();
  void check_health();
  void prepare(grpc::ClientContext& context, weir::TimePoint deadline) const;
  void start_copy(std::size_t node, Copy call);
  void leave_lane(std::size_t node);
  [[nodiscard]] static Copy take_first(Lane& lane);
  [[nodiscard]] bool is_hopeless(std::size_t node, const Copy& copy, weir::TimePoint now) const;
  [[nodiscard]] std::vector<Copy> take_hopeless(weir::TimePoint now);

  const NodeOptions& options_;
  PeerState state_;
  std::vector<std::unique_ptr<ValueStore::Stub>> stubs_;  // none for this node
  grpc::CompletionQueue queue_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Lane> lanes_;
  bool stopped_ = false;
  std::thread completions_;
  std::thread health_;
};

}  // namespace valuestore
