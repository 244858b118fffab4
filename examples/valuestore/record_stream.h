#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>

#include "examples/valuestore/valuestore.grpc.pb.h"
#include "local_reader.h"
#include "peers.h"
#include "placement.h"
#include "record.h"
#include "storage.h"

namespace valuestore {

/// Streams the records of one kind that a node owns, in order of their keys: a page is read, sent
/// record by record as the receiver takes them, then the next page is read.
///
/// Promises: holds at most one page of records. Lifetime: its own; it ends with the call.
class RecordStream final : public grpc::ServerWriteReactor<StoredRecord> {
 public:
  struct Source {
    const Placement& placement;
    const Storage& storage;
    LocalReader& reader;
  };

  RecordStream(const Source& source, std::size_t node, RecordKind kind)
      : source_(source), node_(node), kind_(kind) {
    read_page();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish({grpc::StatusCode::CANCELLED, "the receiver is gone"});
    page_.pop_front();
    send_next();
  }
  void OnDone() override { delete this; }

 private:
  static constexpr std::size_t kPage = 64;

  void read_page() {
    source_.reader.run([this] {
      do {
        after_ = source_.storage.visit_records(
            after_, kPage, [this](const ValueKey& key, const Record& record) {
              if (record.kind != kind_ || !source_.placement.owns(node_, key)) return;
              page_.push_back(to_message(key, record, source_.storage.is_root(key)));
            });
      } while (after_ && page_.empty());
      send_next();
    });
  }
  void send_next() {
    if (!page_.empty()) {
      StartWrite(&page_.front());
    } else if (after_) {
      read_page();
    } else {
      Finish(grpc::Status::OK);
    }
  }

  const Source source_;
  const std::size_t node_;
  const RecordKind kind_;
  std::optional<ValueKey> after_;
  std::deque<StoredRecord> page_;
};

}  // namespace valuestore
