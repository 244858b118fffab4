#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "coordinator.h"
#include "examples/valuestore/valuestore.grpc.pb.h"
#include "garbage.h"
#include "local_reader.h"
#include "recipe.h"
#include "storage.h"
#include "value_cache.h"
#include "writer_thread.h"

namespace valuestore {

/// What a round of garbage collection works with on a node.
struct GarbageParts {
  Storage& storage;
  WriterThread& writer;
  LocalReader& reader;
};

/// The first half of a round: starts the epoch, then streams the roots and what recipes are made
/// of, in pages of at most 2 MB.
///
/// Lifetime: its own; it ends with the call.
class RootsStream final : public grpc::ServerWriteReactor<GcCollectRootsReply> {
 public:
  RootsStream(const GarbageParts& parts, const GcCollectRootsRequest& request)
      : parts_(parts), request_(request) {
    parts_.reader.run([this] { start(); });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish({grpc::StatusCode::CANCELLED, "the receiver is gone"});
    parts_.reader.run([this] { send_page(); });
  }
  void OnDone() override { delete this; }

 private:
  static constexpr std::size_t kRootsPerPage = 16384;
  static constexpr std::size_t kRecordsPerPage = 512;

  void start() {
    const grpc::Status started = start_epoch();
    if (!started.ok()) return Finish(started);
    roots_ = parts_.storage.roots();
    send_page();
  }

  grpc::Status start_epoch() {
    std::vector<Change> changes;
    for (const std::string& text : request_.unroot()) {
      const auto key = ValueKey::parse(text);
      if (!key) return {grpc::StatusCode::INVALID_ARGUMENT, "unroot: a key has 32 bytes"};
      changes.emplace_back().kind = Change::Kind::kUnroot;
      changes.back().key = *key;
    }
    changes.emplace_back().kind = Change::Kind::kStartEpoch;
    changes.back().epoch = request_.epoch();
    const std::vector<ChangeEnd> ends = parts_.writer.apply_all(std::move(changes));
    for (const ChangeEnd end : ends) {
      grpc::Status written = to_status(end);
      if (!written.ok()) return written;
    }
    if (ends.back() != ChangeEnd::kNothing) return grpc::Status::OK;
    return {grpc::StatusCode::FAILED_PRECONDITION,
            "epoch: must be above " + std::to_string(parts_.storage.epoch())};
  }

  void send_page() {
    page_.Clear();
    if (!roots_.empty()) {
      const std::size_t count = std::min(roots_.size(), kRootsPerPage);
      for (std::size_t i = 0; i < count; ++i) {
        page_.add_roots(std::string(roots_.back().view()));
        roots_.pop_back();
      }
      return StartWrite(&page_);
    }
    while (!at_end_ && page_.edges_size() == 0) add_edges();
    if (page_.edges_size() == 0) return Finish(grpc::Status::OK);
    StartWrite(&page_);
  }

  void add_edges() {
    const auto add = [this](const ValueKey& key, const Record& record) {
      if (record.kind != RecordKind::kRecipe) return;
      const auto recipe = Recipe::decode(record.payload);
      if (!recipe) return;
      auto* const edge = page_.add_edges();
      edge->set_recipe(std::string(key.view()));
      for (const ValueKey& input : recipe->inputs) edge->add_inputs(std::string(input.view()));
    };
    after_ = parts_.storage.visit_records(after_, kRecordsPerPage, add);
    at_end_ = !after_.has_value();
  }

  const GarbageParts parts_;
  const GcCollectRootsRequest request_;
  std::vector<ValueKey> roots_;  // that are left
  std::optional<ValueKey> after_;
  bool at_end_ = false;
  GcCollectRootsReply page_;
};

/// The second half: takes the keys that are needed, in parts, and sweeps when the last has come. A
/// stream that ends before sweeps nothing.
///
/// Lifetime: its own; it ends with the call.
class SweepStream final : public grpc::ServerReadReactor<GcSweepRequest> {
 public:
  SweepStream(const GarbageParts& parts, ValueCache& cache, GcSweepReply& reply)
      : parts_(parts), cache_(cache), reply_(reply) {
    StartRead(&part_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      return Finish({grpc::StatusCode::INVALID_ARGUMENT, "last: the last part has not come"});
    }
    parts_.reader.run([this] { take_part(); });
  }
  void OnDone() override { delete this; }

 private:
  void take_part() {
    if (part_.epoch() != parts_.storage.epoch()) {
      return Finish({grpc::StatusCode::FAILED_PRECONDITION,
                     "epoch: the roots of this epoch were not collected here; it is " +
                         std::to_string(parts_.storage.epoch())});
    }
    for (const std::string& text : part_.live()) {
      const auto key = ValueKey::parse(text);
      if (!key) {
        return Finish({grpc::StatusCode::INVALID_ARGUMENT, "live: a key has 32 bytes"});
      }
      live_.insert(*key);
    }
    if (!part_.last()) return StartRead(&part_);
    const Swept swept = sweep_garbage(parts_.storage, parts_.writer, live_, part_.epoch());
    cache_.clear();
    reply_.set_removed(swept.removed);
    reply_.set_kept(swept.kept);
    Finish(swept.failed
               ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "the store cannot write; sweep again")
               : grpc::Status::OK);
  }

  const GarbageParts parts_;
  ValueCache& cache_;
  GcSweepReply& reply_;
  GcSweepRequest part_;
  KeySet live_;
};

}  // namespace valuestore
