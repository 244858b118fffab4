#include "peers.h"

#include <chrono>
#include <utility>

namespace valuestore {
namespace {

using std::chrono::milliseconds;

constexpr weir::Duration kHealthEvery = milliseconds(200);
constexpr weir::Duration kHealthWait = milliseconds(500);
constexpr weir::Duration kDeliveryWait = std::chrono::seconds(2);
// With 32 fetches and 8 hints: 64, what a node admits of one peer.
constexpr std::size_t kCopiesMax = 24;
constexpr std::size_t kWaitingCopiesMax = 4096;

}  // namespace

StoredRecord to_message(const ValueKey& key, const Record& record, bool root) {
  StoredRecord message;
  message.set_key(std::string(key.view()));
  message.set_kind(static_cast<std::uint32_t>(record.kind));
  message.set_epoch(record.epoch);
  message.set_payload(record.payload);
  message.set_root(root);
  return message;
}

bool from_message(const StoredRecord& message, ValueKey& key, Record& record) {
  const auto parsed = ValueKey::parse(message.key());
  if (!parsed || message.kind() > 1) return false;
  key = *parsed;
  record = {static_cast<RecordKind>(message.kind()), message.epoch(), message.payload()};
  return record.key() == key;
}

/// What a completion queue gives back.
struct Peers::Tag {
  virtual ~Tag() = default;
  virtual void complete() = 0;
  virtual void cancel() = 0;
};

template <class Reply>
struct Peers::Call : Peers::Tag {
  grpc::ClientContext context;
  ReplicateRequest copy;  // of a call that waits
  weir::Duration at_most{};
  Reply reply;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> reader;
  std::function<void(const grpc::Status&, const Reply&)> done;
  std::function<void()> leave;  // of a copy that has a place in its lane

  void complete() override {
    if (leave) leave();
    done(status, reply);
  }
  void cancel() override {
    done({grpc::StatusCode::UNAVAILABLE, "the node cannot send it"}, reply);
  }
};

Peers::Peers(const NodeOptions& options)
    : options_(options), state_(options.names.size()), lanes_(options.names.size()) {
  for (std::size_t node = 0; node < options.names.size(); ++node) {
    if (node == options.self) {
      stubs_.emplace_back();
      continue;
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 500);
    stubs_.push_back(ValueStore::NewStub(grpc::CreateCustomChannel(
        options.addresses[node], grpc::InsecureChannelCredentials(), arguments)));
  }
  completions_ = std::thread([this] { complete(); });
  health_ = std::thread([this] { check_health(); });
}

Peers::~Peers() {
  stop();
}

void Peers::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
  }
  wake_.notify_all();
  health_.join();
  queue_.Shutdown();
  completions_.join();
}

void Peers::prepare(grpc::ClientContext& context, weir::Duration at_most) const {
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                    gpr_time_from_nanos(at_most.count(), GPR_TIMESPAN)));
  context.AddMetadata("x-weir-peer", options_.name);
}

void Peers::replicate(std::size_t node, const ReplicateRequest& request, weir::Priority priority,
                      weir::Duration at_most, OnStatus done) {
  auto* const call = new Call<ReplicateReply>;
  call->at_most = at_most;
  call->copy = request;
  call->done = [done = std::move(done)](const grpc::Status& status, const ReplicateReply&) {
    done(status);
  };
  const bool in_lane = priority != weir::Priority::kLow;  // low, which it is by the table, is paced
  if (in_lane) call->context.AddMetadata("x-weir-priority", std::string(name_of(priority)));
  std::unique_lock lock(mutex_);
  Lane& lane = lanes_[node];
  if (stopped_ || lane.waiting.size() >= kWaitingCopiesMax) {
    lock.unlock();
    return end_refused(call);
  }
  if (in_lane) call->leave = [this, node] { leave_lane(node); };
  if (in_lane && lane.open == kCopiesMax) {
    lane.waiting.push_back(call);
    return;
  }
  if (in_lane) ++lane.open;
  start_copy(node, call);
}

void Peers::start_copy(std::size_t node, Call<ReplicateReply>* call) {
  prepare(call->context, call->at_most);
  call->reader = stubs_[node]->AsyncReplicateLeaf(&call->context, call->copy, &queue_);
  call->reader->Finish(&call->reply, &call->status, call);
}

void Peers::leave_lane(std::size_t node) {
  const std::lock_guard lock(mutex_);
  Lane& lane = lanes_[node];
  if (lane.waiting.empty()) {
    --lane.open;
    return;
  }
  start_copy(node, lane.waiting.front());  // in the place of the one that leaves
  lane.waiting.pop_front();
}

void Peers::fetch(std::size_t node, const ValueKey& key, weir::Duration at_most, OnRecord done) {
  auto* const call = new Call<StoredRecord>;
  prepare(call->context, at_most);
  call->done = std::move(done);
  FetchValueRequest request;
  request.set_key(std::string(key.view()));
  std::unique_lock lock(mutex_);
  if (stopped_) {
    lock.unlock();
    return end_refused(call);
  }
  call->reader = stubs_[node]->AsyncFetchValue(&call->context, request, &queue_);
  call->reader->Finish(&call->reply, &call->status, call);
}

/// A call that comes after stop(), or for which there is no room.
void Peers::end_refused(Tag* tag) {
  const std::unique_ptr<Tag> call(tag);
  call->cancel();
}

void Peers::send(const Parcel& parcel, const std::function<void(bool)>& done) {
  ReplicateRequest request;
  *request.mutable_record() = to_message(parcel.key, parcel.record, parcel.root);
  replicate(parcel.node, request, weir::Priority::kLow, kDeliveryWait,
            [done](const grpc::Status& status) { done(status.ok()); });
}

grpc::Status Peers::transfer(std::size_t node, RecordKind kind,
                             const std::function<void(const StoredRecord&)>& visit) {
  grpc::ClientContext context;
  prepare(context, std::chrono::minutes(10));
  TransferRequest request;
  request.set_node(options_.name);
  const auto reader = kind == RecordKind::kRecipe
                          ? stubs_[node]->SyncRecipes(&context, request)
                          : stubs_[node]->MigrateTransfer(&context, request);
  StoredRecord record;
  while (reader->Read(&record)) visit(record);
  return reader->Finish();
}

void Peers::complete() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
    const std::unique_ptr<Tag> call(static_cast<Tag*>(tag));
    call->complete();
  }
}

void Peers::check_health() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    for (std::size_t node = 0; node < stubs_.size(); ++node) {
      if (node == options_.self) continue;
      auto* const call = new Call<HealthCheckReply>;
      prepare(call->context, kHealthWait);
      call->done = [this, node](const grpc::Status& status, const HealthCheckReply& reply) {
        // A refusal is an answer: the node is busy, not down.
        if (status.ok() || status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
          state_.answered(node, status.ok() && reply.state() == HealthCheckReply::DRAINING);
        } else {
          state_.did_not_answer(node);
        }
      };
      call->reader = stubs_[node]->AsyncHealthCheck(&call->context, {}, &queue_);
      call->reader->Finish(&call->reply, &call->status, call);
    }
    wake_.wait_for(lock, kHealthEvery, [this] { return stopped_; });
  }
}

}  // namespace valuestore
