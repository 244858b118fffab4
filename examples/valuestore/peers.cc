#include "peers.h"

#include <chrono>
#include <utility>

#include "weir/embed/clock.h"

namespace valuestore {
namespace {

using std::chrono::milliseconds;

constexpr weir::Duration kTick = milliseconds(50);  // how late a copy that waits may fail
constexpr int kTicksPerCheck = 4;
constexpr weir::Duration kHealthWait = milliseconds(500);
constexpr weir::Duration kDeliveryWait = std::chrono::seconds(2);
// With 32 fetches and 8 hints: 64, what a node admits of one peer.
constexpr std::size_t kCopiesMax = 24;
constexpr std::size_t kWaitingCopiesMax = 4096;
constexpr std::size_t kWaitingBytesMax = 32 << 20;

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
};

template <class Reply>
struct Peers::Call : Peers::Tag {
  std::shared_ptr<grpc::ClientContext> context = std::make_shared<grpc::ClientContext>();
  weir::TimePoint deadline{};
  ReplicateRequest copy;  // of a call that waits
  Reply reply;
  grpc::Status status{grpc::StatusCode::UNAVAILABLE, "the node cannot send it"};
  std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> reader;
  std::function<void(const grpc::Status&, const Reply&)> done;
  std::function<void()> leave;  // of a copy that has a place in its lane

  void complete() override {
    if (leave) leave();
    done(status, reply);
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
  health_ = std::thread([this] { run_health(); });
}

Peers::~Peers() {
  stop();
}

void Peers::stop() {
  std::vector<Copy> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
    for (Lane& lane : lanes_) {
      while (!lane.waiting.empty()) waiting.push_back(take_first(lane));
    }
  }
  for (const Copy& copy : waiting) copy->done(copy->status, {});
  wake_.notify_all();
  health_.join();
  queue_.Shutdown();
  completions_.join();
}

void Peers::prepare(grpc::ClientContext& context, weir::TimePoint deadline) const {
  const weir::Duration left = deadline - weir::embed::now();
  context.set_deadline(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(left.count(), GPR_TIMESPAN)));
  context.AddMetadata("x-weir-peer", options_.name);
}

void Peers::replicate(std::size_t node, const ReplicateRequest& request, weir::Priority priority,
                      weir::Duration at_most, OnStatus done) {
  auto call = std::make_unique<Call<ReplicateReply>>();
  call->deadline = weir::embed::now() + at_most;
  call->copy = request;
  call->done = [done = std::move(done)](const grpc::Status& status, const ReplicateReply&) {
    done(status);
  };
  const bool in_lane = priority != weir::Priority::kLow;  // low, which it is by the table, is paced
  if (in_lane) call->context->AddMetadata("x-weir-priority", std::string(name_of(priority)));
  std::unique_lock lock(mutex_);
  Lane& lane = lanes_[node];
  const std::size_t bytes = request.record().payload().size();
  if (stopped_ || lane.waiting.size() >= kWaitingCopiesMax ||
      lane.waiting_bytes + bytes > kWaitingBytesMax) {
    lock.unlock();
    return call->done(call->status, {});
  }
  if (in_lane && lane.open == kCopiesMax) {
    lane.waiting_bytes += bytes;
    lane.waiting.push_back(std::move(call));
    return;
  }
  if (in_lane) {
    call->leave = [this, node] { leave_lane(node); };
    ++lane.open;
  }
  start_copy(node, std::move(call));
}

void Peers::start_copy(std::size_t node, Copy call) {
  prepare(*call->context, call->deadline);
  call->reader = stubs_[node]->AsyncReplicateLeaf(call->context.get(), call->copy, &queue_);
  auto* const tag = call.release();
  tag->reader->Finish(&tag->reply, &tag->status, tag);
}

Peers::Copy Peers::take_first(Lane& lane) {
  Copy copy = std::move(lane.waiting.front());
  lane.waiting.pop_front();
  lane.waiting_bytes -= copy->copy.record().payload().size();
  return copy;
}

/// Sets the status that it fails with.
bool Peers::is_hopeless(std::size_t node, const Copy& copy, weir::TimePoint now) const {
  if (!state_.takes_writes(node)) {
    copy->status = {grpc::StatusCode::UNAVAILABLE, "the node is down or drains"};
    return true;
  }
  if (copy->deadline > now) return false;
  copy->status = {grpc::StatusCode::DEADLINE_EXCEEDED, "too many copies wait for the node"};
  return true;
}

/// A copy has left for good: the first that is not hopeless takes its place.
void Peers::leave_lane(std::size_t node) {
  std::vector<Copy> hopeless;
  {
    const std::lock_guard lock(mutex_);
    Lane& lane = lanes_[node];
    const weir::TimePoint now = weir::embed::now();
    while (!lane.waiting.empty() && is_hopeless(node, lane.waiting.front(), now)) {
      hopeless.push_back(take_first(lane));
    }
    if (lane.waiting.empty()) {
      --lane.open;
    } else {  // nothing waits after stop()
      Copy next = take_first(lane);
      next->leave = [this, node] { leave_lane(node); };
      start_copy(node, std::move(next));
    }
  }
  for (const Copy& copy : hopeless) copy->done(copy->status, {});
}

std::vector<Peers::Copy> Peers::take_hopeless(weir::TimePoint now) {
  std::vector<Copy> hopeless;
  for (std::size_t node = 0; node < lanes_.size(); ++node) {
    Lane& lane = lanes_[node];
    for (std::size_t left = lane.waiting.size(); left > 0; --left) {
      Copy copy = take_first(lane);
      if (is_hopeless(node, copy, now)) {
        hopeless.push_back(std::move(copy));
      } else {
        lane.waiting_bytes += copy->copy.record().payload().size();
        lane.waiting.push_back(std::move(copy));
      }
    }
  }
  return hopeless;
}

std::shared_ptr<grpc::ClientContext> Peers::fetch(std::size_t node, const ValueKey& key,
                                                  weir::Duration at_most, OnRecord done) {
  auto call = std::make_unique<Call<StoredRecord>>();
  const auto context = call->context;
  prepare(*context, weir::embed::now() + at_most);
  call->done = std::move(done);
  FetchValueRequest request;
  request.set_key(std::string(key.view()));
  std::unique_lock lock(mutex_);
  if (stopped_) {
    lock.unlock();
    call->done(call->status, {});
    return context;
  }
  call->reader = stubs_[node]->AsyncFetchValue(context.get(), request, &queue_);
  auto* const tag = call.release();
  tag->reader->Finish(&tag->reply, &tag->status, tag);
  return context;
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
  prepare(context, weir::embed::now() + std::chrono::minutes(10));
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

void Peers::run_health() {
  std::unique_lock lock(mutex_);
  for (int tick = 0; !stopped_; ++tick) {
    if (tick % kTicksPerCheck == 0) check_health();
    const std::vector<Copy> hopeless = take_hopeless(weir::embed::now());
    lock.unlock();
    for (const Copy& copy : hopeless) copy->done(copy->status, {});
    lock.lock();
    wake_.wait_for(lock, kTick, [this] { return stopped_; });
  }
}

void Peers::check_health() {
  for (std::size_t node = 0; node < stubs_.size(); ++node) {
    if (node == options_.self) continue;
    auto* const call = new Call<HealthCheckReply>;
    prepare(*call->context, weir::embed::now() + kHealthWait);
    call->done = [this, node](const grpc::Status& status, const HealthCheckReply& reply) {
      // A refusal is an answer: the node is busy, not down.
      if (status.ok() || status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
        state_.answered(node, status.ok() && reply.state() == HealthCheckReply::DRAINING);
      } else {
        state_.did_not_answer(node);
      }
    };
    call->reader = stubs_[node]->AsyncHealthCheck(call->context.get(), {}, &queue_);
    call->reader->Finish(&call->reply, &call->status, call);
  }
}

}  // namespace valuestore
