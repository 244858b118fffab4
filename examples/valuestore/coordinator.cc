#include "coordinator.h"

#include <algorithm>
#include <chrono>
#include <memory>

namespace valuestore {
namespace {

using grpc::Status;
using grpc::StatusCode;

constexpr weir::Duration kCopyWait = std::chrono::seconds(1);
constexpr weir::Duration kSearchWait = std::chrono::seconds(1);

/// The node did not do it and is not there to do it: another one may stand in.
bool is_down(const Status& status) {
  return status.error_code() == StatusCode::UNAVAILABLE ||
         status.error_code() == StatusCode::DEADLINE_EXCEEDED;
}

Status caller_is_gone() {
  return {StatusCode::CANCELLED, "the caller does not wait any more"};
}

weir::Duration time_left(const Caller& caller) {
  const gpr_timespec left = gpr_time_sub(caller.deadline, gpr_now(caller.deadline.clock_type));
  if (std::chrono::seconds(left.tv_sec) >= kSearchWait) return kSearchWait;
  return std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec);
}

/// Nobody waits for the answer, or not for long enough to get one. gRPC tells of a deadline some
/// time after it.
bool is_too_late(const Caller& caller) {
  return caller.is_gone() || time_left(caller) < std::chrono::milliseconds(2);
}

}  // namespace

Status to_status(ChangeEnd end) {
  switch (end) {
    case ChangeEnd::kDone:
    case ChangeEnd::kNothing:
      return Status::OK;
    case ChangeEnd::kBusy:
      return {StatusCode::RESOURCE_EXHAUSTED, "too many writes wait"};
    case ChangeEnd::kHintsFull:
      return {StatusCode::RESOURCE_EXHAUSTED, "as many hints are stored as allowed"};
    case ChangeEnd::kDiskFull:
      return {StatusCode::UNAVAILABLE, "the disk is full"};
    case ChangeEnd::kFailed:
      break;
  }
  return {StatusCode::UNAVAILABLE, "the store cannot write"};
}

weir::Result<FoundValue, Status> Coordinator::get(const ValueKey& key, const Caller& caller) {
  if (auto value = parts_.cache.find(key)) {
    ++counts_.cache;
    return FoundValue{*std::move(value), "cache"};
  }
  const char* source = "";
  Found found = find(key, caller, source);
  if (!found) return weir::unexpected(std::move(found).error());
  FoundValue answer{{}, source};
  if (found->kind == RecordKind::kLeaf) {
    answer.value = std::move(found->payload);
  } else {
    const ReadRecord read = [&](const ValueKey& wanted) -> weir::Result<Record, std::string> {
      if (wanted == key) return *found;
      if (auto value = parts_.cache.find(wanted)) return Record{RecordKind::kLeaf, 0, *value};
      const char* ignored = "";
      Found input = find(wanted, caller, ignored);
      if (!input) return weir::unexpected(input.error().error_message());
      return *std::move(input);
    };
    auto value = evaluate(key, read, bounds_);
    if (!value) {
      return weir::unexpected(Status(StatusCode::FAILED_PRECONDITION, value.error()));
    }
    ++counts_.computed;
    answer = {*std::move(value), "computed"};
  }
  parts_.cache.insert(key, answer.value);
  return answer;
}

Coordinator::Found Coordinator::find(const ValueKey& key, const Caller& caller,
                                     const char*& source) {
  if (is_too_late(caller)) return weir::unexpected(caller_is_gone());
  const std::size_t self = parts_.options.self;
  auto local = parts_.reader.read(key);
  if (local) {
    ++counts_.local;
    source = "local";
    return *std::move(local);
  }
  source = "remote";
  const std::vector<std::size_t> order = parts_.placement.order(key);
  std::vector<std::size_t> owners(order.begin(), order.begin() + Placement::kOwners);
  const bool owns = std::erase(owners, self) != 0;
  std::erase_if(owners, [&](std::size_t node) { return !parts_.peers.state().is_up(node); });
  if (!owners.empty()) {
    StoredRecord message;
    ValueKey its_key;
    Record record;
    if (parts_.remote.fetch(owners, key, caller, message).ok() &&
        from_message(message, its_key, record) && its_key == key) {
      ++counts_.remote;
      if (owns) repair(key, record, self);
      return record;
    }
  }
  return search(key, caller, local.error() != Storage::Miss::kUnreadable);
}

/// Asks every node that may have it, at the same time.
Coordinator::Found Coordinator::search(const ValueKey& key, const Caller& caller,
                                       bool local_is_absent) {
  if (is_too_late(caller)) return weir::unexpected(caller_is_gone());
  ++counts_.searched;
  struct Answer {
    std::size_t node;
    std::shared_ptr<grpc::ClientContext> call;
    std::future<std::pair<Status, StoredRecord>> reply;
  };
  const std::vector<std::size_t> order = parts_.placement.order(key);
  std::vector<Answer> answers;
  bool complete = true;
  std::vector<std::size_t> missing;  // owners that do not have it
  for (std::size_t rank = 0; rank < std::min(order.size(), Placement::kOwners + 1); ++rank) {
    const std::size_t node = order[rank];
    if (node == parts_.options.self) {
      complete = complete && local_is_absent;
      if (rank < Placement::kOwners) missing.push_back(node);
      continue;
    }
    auto promise = std::make_shared<std::promise<std::pair<Status, StoredRecord>>>();
    auto reply = promise->get_future();
    auto call = parts_.peers.fetch(node, key, std::min(kSearchWait, time_left(caller)),
                                   [promise](const Status& status, const StoredRecord& record) {
                                     promise->set_value({status, record});
                                   });
    answers.push_back({node, std::move(call), std::move(reply)});
  }
  Record found;
  bool any = false;
  std::string why = "the own store cannot be read";
  for (Answer& answer : answers) {
    if (!wait_for(answer.reply, caller)) {
      for (const Answer& each : answers) each.call->TryCancel();
      return weir::unexpected(caller_is_gone());
    }
    const auto [status, message] = answer.reply.get();
    ValueKey its_key;
    Record record;
    if (status.ok() && from_message(message, its_key, record) && its_key == key) {
      any = true;
      found = std::move(record);
    } else if (status.ok() || status.error_code() == StatusCode::NOT_FOUND) {
      if (parts_.placement.owns(answer.node, key)) missing.push_back(answer.node);
    } else {
      complete = false;
      why = parts_.placement.names()[answer.node] + ": " + status.error_message();
    }
  }
  if (any) {
    for (const std::size_t node : missing) repair(key, found, node);
    return found;
  }
  if (complete) return weir::unexpected(Status(StatusCode::NOT_FOUND, "no node has this value"));
  return weir::unexpected(
      Status(StatusCode::UNAVAILABLE, "a node that may have it does not answer; " + why));
}

void Coordinator::repair(const ValueKey& key, const Record& record, std::size_t node) {
  ++counts_.repairs;
  if (node != parts_.options.self) {
    parts_.hints.repair(node, key, record, false);
    return;
  }
  Change change;
  change.key = key;
  change.record = record;
  parts_.writer.submit(std::move(change), [](ChangeEnd) {});
}

Coordinator::Put Coordinator::begin_put(Record record, bool root) {
  Put put;
  put.key = record.key();
  put.record = std::move(record);
  put.record.epoch = 0;
  put.root = root;
  put.order = parts_.placement.order(put.key);
  for (std::size_t rank = 0; rank < Placement::kOwners; ++rank) {
    put.copies.push_back(copy_to(put.order[rank], put, {}));
  }
  return put;
}

std::future<Status> Coordinator::copy_to(std::size_t node, const Put& put,
                                         const std::string& hint_for) {
  auto promise = std::make_shared<std::promise<Status>>();
  std::future<Status> copy = promise->get_future();
  if (node == parts_.options.self) {
    Change change;
    change.key = put.key;
    change.record = put.record;
    change.root = put.root;
    change.hint_for = hint_for;
    parts_.writer.submit(std::move(change),
                         [promise](ChangeEnd end) { promise->set_value(to_status(end)); });
  } else if (!parts_.peers.state().takes_writes(node)) {
    promise->set_value({StatusCode::UNAVAILABLE, "the node is down or drains"});
  } else {
    ReplicateRequest request;
    *request.mutable_record() = to_message(put.key, put.record, put.root);
    request.set_hint_for(hint_for);
    parts_.peers.replicate(node, request, weir::Priority::kNormal, kCopyWait,
                           [promise](const Status& status) { promise->set_value(status); });
  }
  return copy;
}

Status Coordinator::end_put(Put& put, bool& hinted) {
  ++counts_.puts;
  hinted = false;
  std::vector<std::size_t> absent;
  Status last;
  for (std::size_t rank = 0; rank < put.copies.size(); ++rank) {
    const Status status = put.copies[rank].get();
    if (status.ok()) continue;
    last = {status.error_code(),
            parts_.placement.names()[put.order[rank]] + ": " + status.error_message()};
    if (!is_down(status)) return last;
    absent.push_back(put.order[rank]);
  }
  if (absent.empty()) return Status::OK;
  if (absent.size() > 1 || put.order.size() <= Placement::kOwners) {
    return {StatusCode::UNAVAILABLE, "fewer than two nodes can store it; " + last.error_message()};
  }
  const Status hint =
      copy_to(put.order[Placement::kOwners], put, parts_.placement.names()[absent[0]]).get();
  if (!hint.ok()) {
    return {hint.error_code() == StatusCode::RESOURCE_EXHAUSTED ? StatusCode::RESOURCE_EXHAUSTED
                                                                : StatusCode::UNAVAILABLE,
            "the hint holder: " + hint.error_message() + "; " + last.error_message()};
  }
  ++counts_.hinted;
  hinted = true;
  return Status::OK;
}

Status Coordinator::put_recipe(const Recipe& recipe, bool root, const Caller& caller,
                               bool& hinted) {
  std::size_t budget = bounds_.reads_max;
  Status renewed = renew_inputs(recipe, caller, 1, budget);
  if (!renewed.ok()) return renewed;
  Put put = begin_put(recipe.record(), root);
  return end_put(put, hinted);
}

Status Coordinator::renew_inputs(const Recipe& recipe, const Caller& caller, std::size_t depth,
                                 std::size_t& budget) {
  if (depth > bounds_.depth_max) {
    return {StatusCode::INVALID_ARGUMENT,
            "recipes are nested deeper than " + std::to_string(bounds_.depth_max)};
  }
  for (const ValueKey& input : recipe.inputs) {
    if (budget-- == 0) {
      return {StatusCode::INVALID_ARGUMENT,
              "the recipe needs more than " + std::to_string(bounds_.reads_max) + " values"};
    }
    const char* source = "";
    Found found = find(input, caller, source);
    if (!found) {
      const bool absent = found.error().error_code() == StatusCode::NOT_FOUND;
      return {absent ? StatusCode::FAILED_PRECONDITION : found.error().error_code(),
              "inputs: " + input.hex() + ": " + found.error().error_message()};
    }
    if (found->kind == RecordKind::kRecipe) {
      const auto inner = Recipe::decode(found->payload);
      if (!inner) return {StatusCode::FAILED_PRECONDITION, "inputs: " + inner.error()};
      Status renewed = renew_inputs(*inner, caller, depth + 1, budget);
      if (!renewed.ok()) return renewed;
    }
    if (found->epoch >= parts_.storage.epoch()) continue;
    Put put = begin_put(*std::move(found), false);
    bool hinted = false;
    Status renewed = end_put(put, hinted);
    if (!renewed.ok()) return renewed;
  }
  return Status::OK;
}

}  // namespace valuestore
