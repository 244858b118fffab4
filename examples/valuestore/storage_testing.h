#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <rocksdb/env.h>

#include "forgetful_file_system_testing.h"
#include "storage.h"

namespace valuestore {

inline Record leaf(std::string bytes, std::uint64_t epoch = 0) {
  return {RecordKind::kLeaf, epoch, std::move(bytes)};
}

inline Change put(const Record& record, std::string hint_for = {}) {
  Change change;
  change.key = record.key();
  change.record = record;
  change.hint_for = std::move(hint_for);
  return change;
}

/// The owner confirmed a copy of that epoch.
inline Change drop_hint(const ValueKey& key, std::string owner, std::uint64_t epoch = 1) {
  Change change;
  change.epoch = epoch;
  change.kind = Change::Kind::kDropHint;
  change.key = key;
  change.hint_for = std::move(owner);
  return change;
}

inline Change sweep(const ValueKey& key, std::uint64_t epoch) {
  Change change;
  change.kind = Change::Kind::kSweep;
  change.key = key;
  change.epoch = epoch;
  return change;
}

inline Change start_epoch(std::uint64_t epoch) {
  Change change;
  change.kind = Change::Kind::kStartEpoch;
  change.epoch = epoch;
  return change;
}

/// A store in a folder of its own, on a disk whose power can be cut.
class StorageOnDisk {
 public:
  explicit StorageOnDisk(std::uint64_t hints_max = 1000) : hints_max_(hints_max) {
    std::string pattern = (std::filesystem::temp_directory_path() / "valuestore-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    disk = std::make_shared<ForgetfulFileSystem>();
    env_ = rocksdb::NewCompositeEnv(disk);
    open();
  }
  ~StorageOnDisk() {
    storage.reset();
    std::filesystem::remove_all(folder_);
  }

  void open() {
    StorageConfig config;
    config.path = folder_ + "/db";
    config.nodes = {"a", "b", "c"};
    config.env = env_.get();
    config.hints_max = hints_max_;
    auto opened = Storage::open(config);
    if (!opened) throw std::runtime_error(opened.error());
    storage = *std::move(opened);
  }
  /// The power fails (if it has not already), and comes back.
  void cut_power(std::uint64_t torn = 0) {
    disk->cut();
    storage.reset();
    disk->forget(torn);
    open();
  }
  ChangeEnd commit(const Change& change) {
    ChangeEnd end = ChangeEnd::kFailed;
    storage->commit({&change, 1}, {&end, 1});
    return end;
  }
  std::vector<ChangeEnd> commit_all(const std::vector<Change>& changes) {
    std::vector<ChangeEnd> ends(changes.size(), ChangeEnd::kFailed);
    storage->commit(changes, ends);
    return ends;
  }

  std::shared_ptr<ForgetfulFileSystem> disk;
  std::unique_ptr<Storage> storage;

 private:
  std::uint64_t hints_max_;
  std::string folder_;
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace valuestore
