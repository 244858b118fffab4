#include "node_service.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "garbage_streams.h"
#include "record_stream.h"

namespace valuestore {
namespace {

using grpc::Status;
using grpc::StatusCode;

constexpr int kBatchMax = 128;
constexpr std::size_t kValueMax = 1 << 20;

Status wrong_key() {
  return {StatusCode::INVALID_ARGUMENT, "key: must have 32 bytes"};
}

Status check_batch(int size) {
  if (size >= 1 && size <= kBatchMax) return Status::OK;
  return {StatusCode::INVALID_ARGUMENT, "a batch has 1 to " + std::to_string(kBatchMax) + " items"};
}

Status check_value(const std::string& value) {
  if (value.size() <= kValueMax) return Status::OK;
  return {StatusCode::INVALID_ARGUMENT,
          "value: must have at most " + std::to_string(kValueMax) + " bytes"};
}

grpc::ServerUnaryReactor* finished(grpc::CallbackServerContext* context, const Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

weir::Result<FoundValue, Status> full_reply() {
  return weir::unexpected(
      Status(StatusCode::RESOURCE_EXHAUSTED,
             "the reply is full: it has at most " + std::to_string(kReplyBytesMax) +
                 " bytes of values; ask for this one and those after it in another call"));
}

/// The context is there until the call has been answered.
Caller caller_of(const grpc::CallbackServerContext& context) {
  return {context.raw_deadline(), [&context] { return context.IsCancelled(); }};
}

std::uint64_t replicas_away(const weir::grpc::HedgedStats& remote) {
  return static_cast<std::uint64_t>(
      std::count_if(remote.replicas.begin(), remote.replicas.end(),
                    [](const auto& replica) { return !replica.connected; }));
}

}  // namespace

weir::grpc::MethodTable NodeService::methods() {
  using weir::Priority;
  const std::string service = "/valuestore.ValueStore/";
  return {
      {service + "GetValue", {.priority = Priority::kHigh, .idempotent = true}},
      {service + "FetchValue", {.priority = Priority::kHigh, .idempotent = true}},
      {service + "HealthCheck", {.priority = Priority::kHigh, .idempotent = true}},
      {service + "PutLeaf", {.priority = Priority::kNormal}},
      {service + "PutRecipe", {.priority = Priority::kNormal}},
      {service + "BatchGet", {.priority = Priority::kNormal, .idempotent = true}},
      {service + "BatchPutLeaf", {.priority = Priority::kNormal}},
      {service + "GcCollectRoots", {.priority = Priority::kLow, .holds_limit = true}},
      {service + "GcSweep", {.priority = Priority::kLow, .holds_limit = true}},
      {service + "MigrateTransfer", {.priority = Priority::kLow, .holds_limit = true}},
      {service + "SyncRecipes", {.priority = Priority::kLow, .holds_limit = true}},
      {service + "ReplicateLeaf", {.priority = Priority::kLow}},
  };
}

Status NodeService::refused_write() const {
  if (!draining_) return Status::OK;
  return {StatusCode::UNAVAILABLE, "the node drains: it takes no writes"};
}

// ---- what clients call

NodeService::Unary* NodeService::GetValue(Context* context, const GetValueRequest* request,
                                          GetValueReply* reply) {
  const auto key = ValueKey::parse(request->key());
  if (!key) return finished(context, wrong_key());
  Unary* const reactor = context->DefaultReactor();
  workers_.run([this, reactor, reply, key = *key, caller = caller_of(*context)] {
    auto found = coordinator_.get(key, caller);
    if (!found) return reactor->Finish(found.error());
    reply->set_source(found->source);
    reply->set_value(std::move(found->value));
    reactor->Finish(Status::OK);
  });
  return reactor;
}

weir::Result<FoundValue, Status> NodeService::get(const std::string& text, const Caller& caller) {
  const auto key = ValueKey::parse(text);
  if (!key) return weir::unexpected(wrong_key());
  return coordinator_.get(*key, caller);
}

NodeService::Unary* NodeService::BatchGet(Context* context, const BatchGetRequest* request,
                                          BatchGetReply* reply) {
  const Status size = check_batch(request->keys_size());
  if (!size.ok()) return finished(context, size);
  Unary* const reactor = context->DefaultReactor();
  workers_.run([this, reactor, request, reply, caller = caller_of(*context)] {
    std::size_t room = kReplyBytesMax;
    for (const std::string& text : request->keys()) {
      auto* const item = reply->add_items();
      auto found = room == 0 ? full_reply() : get(text, caller);
      if (found && found->value.size() > room) {
        found = full_reply();
        room = 0;
      }
      if (found) room -= found->value.size();
      item->set_found(found.has_value());
      if (found) {
        item->set_value(std::move(found->value));
      } else {
        item->set_error(found.error().error_message());
      }
    }
    reactor->Finish(Status::OK);
  });
  return reactor;
}

NodeService::Unary* NodeService::PutLeaf(Context* context, const PutLeafRequest* request,
                                         PutReply* reply) {
  Status may = refused_write();
  if (may.ok()) may = check_value(request->value());
  if (!may.ok()) return finished(context, may);
  Unary* const reactor = context->DefaultReactor();
  writing_.run([this, reactor, request, reply] {
    Coordinator::Put put =
        coordinator_.begin_put({RecordKind::kLeaf, 0, request->value()}, request->root());
    bool hinted = false;
    const Status status = coordinator_.end_put(put, hinted);
    reply->set_key(std::string(put.key.view()));
    reply->set_hinted(hinted);
    reactor->Finish(status);
  });
  return reactor;
}

NodeService::Unary* NodeService::BatchPutLeaf(Context* context, const BatchPutLeafRequest* request,
                                              BatchPutLeafReply* reply) {
  Status may = refused_write();
  if (may.ok()) may = check_batch(request->values_size());
  for (const std::string& value : request->values()) {
    if (may.ok()) may = check_value(value);
  }
  if (!may.ok()) return finished(context, may);
  Unary* const reactor = context->DefaultReactor();
  writing_.run([this, reactor, request, reply] {
    std::vector<Coordinator::Put> puts;
    for (const std::string& value : request->values()) {
      puts.push_back(coordinator_.begin_put({RecordKind::kLeaf, 0, value}, request->root()));
    }
    for (Coordinator::Put& put : puts) {
      bool hinted = false;
      const Status status = coordinator_.end_put(put, hinted);
      auto* const item = reply->add_items();
      item->set_key(std::string(put.key.view()));
      if (!status.ok()) item->set_error(status.error_message());
    }
    reactor->Finish(Status::OK);
  });
  return reactor;
}

NodeService::Unary* NodeService::PutRecipe(Context* context, const PutRecipeRequest* request,
                                           PutReply* reply) {
  const Status may = refused_write();
  if (!may.ok()) return finished(context, may);
  const std::vector<std::string> inputs(request->inputs().begin(), request->inputs().end());
  const auto recipe = Recipe::make(request->function(), inputs, {});
  if (!recipe) return finished(context, {StatusCode::INVALID_ARGUMENT, recipe.error()});
  Unary* const reactor = context->DefaultReactor();
  writing_.run([this, reactor, reply, recipe = *recipe, root = request->root(),
                caller = caller_of(*context)] {
    bool hinted = false;
    const Status status = coordinator_.put_recipe(recipe, root, caller, hinted);
    reply->set_key(std::string(recipe.record().key().view()));
    reply->set_hinted(hinted);
    reactor->Finish(status);
  });
  return reactor;
}

NodeService::Unary* NodeService::HealthCheck(Context* context,
                                             const HealthCheckRequest* /*request*/,
                                             HealthCheckReply* reply) {
  reply->set_node(parts_.options.name);
  reply->set_state(draining_ ? HealthCheckReply::DRAINING : HealthCheckReply::SERVING);
  const Coordinator::Counts& counts = coordinator_.counts();
  const HintDelivery::Counts hints = parts_.hints.counts();
  const WriterThread::Counts writes = parts_.writer.counts();
  const weir::grpc::HedgedStats remote = parts_.remote.stats();
  Numbers numbers = {
      {"epoch", parts_.storage.epoch()},
      {"hints", parts_.storage.hint_count()},
      {"hints_delivered", hints.delivered},
      {"hints_unreadable", hints.unreadable},
      {"repairs_sent", hints.repaired},
      {"corrupt_reads", parts_.storage.corrupt_reads()},
      {"repairs", counts.repairs},
      {"from_cache", counts.cache},
      {"from_local", counts.local},
      {"from_remote", counts.remote},
      {"computed", counts.computed},
      {"searched", counts.searched},
      {"puts", counts.puts},
      {"puts_hinted", counts.hinted},
      {"changes", writes.changes},
      {"batches", writes.batches},
      {"cache_bytes", parts_.cache.bytes()},
      {"fetches", remote.calls},
      {"fetch_attempts", remote.attempts},
      {"hedges", remote.hedges},
      {"hedges_won", remote.hedges_won},
      {"replicas_away", replicas_away(remote)},
  };
  for (const auto& [reason, calls] : remote.no_hedge) numbers["no_hedge_" + reason] = calls;
  more_numbers_(numbers);
  reply->mutable_numbers()->insert(numbers.begin(), numbers.end());
  return finished(context, Status::OK);
}

// ---- what nodes call on each other

NodeService::Unary* NodeService::FetchValue(Context* context, const FetchValueRequest* request,
                                            StoredRecord* reply) {
  const auto key = ValueKey::parse(request->key());
  if (!key) return finished(context, wrong_key());
  Unary* const reactor = context->DefaultReactor();
  parts_.reader.start(*key, [reactor, reply, key = *key](const LocalReader::Read& read) {
    if (read) {
      *reply = to_message(key, *read, false);
      return reactor->Finish(Status::OK);
    }
    const bool unreadable = read.error() == Storage::Miss::kUnreadable;
    reactor->Finish(unreadable ? Status(StatusCode::UNAVAILABLE, "the store cannot be read")
                               : Status(StatusCode::NOT_FOUND, "not on this node"));
  });
  return reactor;
}

NodeService::Unary* NodeService::ReplicateLeaf(Context* context, const ReplicateRequest* request,
                                               ReplicateReply* /*reply*/) {
  Status may = refused_write();
  Change change;
  if (may.ok() && !from_message(request->record(), change.key, change.record)) {
    may = {StatusCode::INVALID_ARGUMENT, "record: its bytes do not have the hash of its key"};
  }
  if (may.ok() && !request->hint_for().empty() &&
      parts_.placement.find(request->hint_for()) == parts_.placement.size()) {
    may = {StatusCode::INVALID_ARGUMENT, "hint_for: no node has this name"};
  }
  if (!may.ok()) return finished(context, may);
  change.root = request->record().root();
  change.hint_for = request->hint_for();
  Unary* const reactor = context->DefaultReactor();
  parts_.writer.submit(std::move(change),
                       [reactor](ChangeEnd end) { reactor->Finish(to_status(end)); });
  return reactor;
}

NodeService::Stream* NodeService::MigrateTransfer(Context* /*context*/,
                                                  const TransferRequest* request) {
  return stream(*request, RecordKind::kLeaf);
}

NodeService::Stream* NodeService::SyncRecipes(Context* /*context*/,
                                              const TransferRequest* request) {
  return stream(*request, RecordKind::kRecipe);
}

NodeService::Stream* NodeService::stream(const TransferRequest& request, RecordKind kind) {
  /// Ends at once, with a status.
  class Refusal final : public Stream {
   public:
    explicit Refusal(const Status& status) { Finish(status); }
    void OnDone() override { delete this; }
  };
  const std::size_t node = parts_.placement.find(request.node());
  if (node == parts_.placement.size()) {
    return new Refusal({StatusCode::INVALID_ARGUMENT, "node: no node has this name"});
  }
  return new RecordStream({parts_.placement, parts_.storage, parts_.reader}, node, kind);
}

// ---- garbage collection

NodeService::Roots* NodeService::GcCollectRoots(Context* /*context*/,
                                                const GcCollectRootsRequest* request) {
  return new RootsStream({parts_.storage, parts_.writer, parts_.reader}, *request);
}

NodeService::Sweep* NodeService::GcSweep(Context* /*context*/, GcSweepReply* reply) {
  return new SweepStream({parts_.storage, parts_.writer, parts_.reader}, parts_.cache, *reply);
}

}  // namespace valuestore
