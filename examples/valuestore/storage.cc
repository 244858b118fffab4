#include "storage.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

namespace valuestore {
namespace {

constexpr const char* kEpochName = "e";

std::string value_name(const ValueKey& key) {
  return "v" + std::string(key.view());
}
std::string root_name(const ValueKey& key) {
  return "r" + std::string(key.view());
}
std::string hint_prefix(std::string_view owner) {
  return "h" + std::string(owner) + "/";
}

/// The key at the end of a name with this prefix; none if the name has another one.
std::optional<ValueKey> key_after(std::string_view prefix, const rocksdb::Slice& name) {
  if (!name.starts_with(rocksdb::Slice(prefix.data(), prefix.size()))) return std::nullopt;
  return ValueKey::parse(std::string_view(name.data(), name.size()).substr(prefix.size()));
}

/// Calls `visit` with key and iterator for each name with this prefix, until it returns false.
template <class Visit>
void scan(rocksdb::DB& db, const std::string& prefix, const std::optional<ValueKey>& after,
          const Visit& visit) {
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(rocksdb::ReadOptions()));
  at->Seek(after ? prefix + std::string(after->view()) : prefix);
  for (; at->Valid(); at->Next()) {
    const auto key = key_after(prefix, at->key());
    if (!key) return;
    if (after && *key == *after) continue;
    if (!visit(*key, *at)) return;
  }
}

rocksdb::Options rocksdb_options(const StorageConfig& config) {
  rocksdb::Options options;
  options.create_if_missing = true;
  if (config.env != nullptr) options.env = config.env;
  options.max_open_files = config.open_files_max;
  options.write_buffer_size = 4 << 20;
  options.keep_log_file_num = 2;
  options.max_total_wal_size = 16 << 20;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(config.cache_bytes);
  table.cache_index_and_filter_blocks = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace

/// A batch that is being made: later changes see what earlier ones do.
struct Storage::Batch {
  rocksdb::WriteBatch writes;
  std::unordered_map<std::string, std::optional<Record>> values;  // none: removed
  std::unordered_set<std::string> new_hints;
  std::unordered_set<std::string> old_hints;
  std::unordered_set<std::string> new_roots;
  std::uint64_t epoch = 0;
  bool sync = false;
};

weir::Result<std::unique_ptr<Storage>, std::string> Storage::open(const StorageConfig& config) {
  std::unique_ptr<Storage> storage(new Storage(config));
  std::string error = storage->load();
  if (!error.empty()) return weir::unexpected(std::move(error));
  return storage;
}

Storage::Storage(const StorageConfig& config) : config_(config) {}

Storage::~Storage() = default;

std::string Storage::load() {
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(rocksdb_options(config_), config_.path, &db);
  if (!opened.ok()) return config_.path + ": " + opened.ToString();
  db_.reset(db);
  std::string bytes;
  std::uint64_t epoch = 1;
  if (db_->Get(rocksdb::ReadOptions(), kEpochName, &bytes).ok() && bytes.size() == sizeof epoch) {
    std::memcpy(&epoch, bytes.data(), sizeof epoch);
  }
  epoch_ = epoch;
  for (const std::string& node : config_.nodes) {
    scan(*db_, hint_prefix(node), std::nullopt, [&](const ValueKey&, rocksdb::Iterator&) {
      ++hint_count_;
      return true;
    });
  }
  return {};
}

weir::Result<Record, Storage::Miss> Storage::read(const ValueKey& key) const {
  std::string bytes;
  const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), value_name(key), &bytes);
  if (status.IsNotFound()) return weir::unexpected(Miss::kAbsent);
  if (!status.ok() && !status.IsCorruption()) return weir::unexpected(Miss::kUnreadable);
  auto record = status.ok() ? Record::decode(bytes) : std::nullopt;
  if (!record || record->key() != key) {
    ++corrupt_;
    return weir::unexpected(Miss::kCorrupt);
  }
  return *std::move(record);
}

bool Storage::exists(const std::string& name) const {
  std::string ignored;
  return db_->Get(rocksdb::ReadOptions(), name, &ignored).ok();
}

bool Storage::is_root(const ValueKey& key) const {
  return exists(root_name(key));
}

std::optional<Record> Storage::stored(const ValueKey& key, const Batch& batch) const {
  const std::string name = value_name(key);
  if (const auto here = batch.values.find(name); here != batch.values.end()) return here->second;
  std::string bytes;
  if (!db_->Get(rocksdb::ReadOptions(), name, &bytes).ok()) return std::nullopt;
  return Record::decode(bytes);
}

void Storage::commit(std::span<const Change> changes, std::span<ChangeEnd> ends) {
  Batch batch;
  for (std::size_t i = 0; i < changes.size(); ++i) ends[i] = add(changes[i], batch);
  if (batch.writes.Count() == 0) return;
  const ChangeEnd end = write(batch);
  if (end == ChangeEnd::kDone) {
    hint_count_ += batch.new_hints.size();
    hint_count_ -= batch.old_hints.size();
    if (batch.epoch != 0) epoch_ = batch.epoch;
    return;
  }
  for (ChangeEnd& each : ends) {
    if (each == ChangeEnd::kDone) each = end;
  }
}

ChangeEnd Storage::add(const Change& change, Batch& batch) {
  switch (change.kind) {
    case Change::Kind::kPut:
      return add_put(change, batch);
    case Change::Kind::kDropHint:
      return add_drop_hint(change, batch);
    case Change::Kind::kSweep:
      return add_sweep(change, batch);
    case Change::Kind::kUnroot:
      batch.writes.Delete(root_name(change.key));
      break;
    case Change::Kind::kStartEpoch:
      // It may come twice, or late: epochs only rise.
      if (change.epoch <= std::max(epoch(), batch.epoch)) return ChangeEnd::kNothing;
      batch.epoch = change.epoch;
      const rocksdb::Slice bytes(reinterpret_cast<const char*>(&change.epoch), sizeof change.epoch);
      batch.writes.Put(kEpochName, bytes);
      break;
  }
  batch.sync = true;
  return ChangeEnd::kDone;
}

ChangeEnd Storage::add_put(const Change& change, Batch& batch) {
  if (!change.hint_for.empty()) {
    const std::string hint = hint_prefix(change.hint_for) + std::string(change.key.view());
    const bool known =
        batch.new_hints.count(hint) != 0 || (exists(hint) && batch.old_hints.count(hint) == 0);
    if (!known && hint_count() + batch.new_hints.size() >= config_.hints_max) {
      return ChangeEnd::kHintsFull;
    }
    batch.writes.Put(hint, rocksdb::Slice());
    if (!known && batch.old_hints.erase(hint) == 0) batch.new_hints.insert(hint);
  }
  Record record = change.record;
  if (record.epoch == 0) {
    record.epoch = std::max(epoch(), batch.epoch);
  } else if (const auto old = stored(change.key, batch); old) {
    // A copy of an older put does not take back what a newer one promised.
    record.epoch = std::max(record.epoch, old->epoch);
  }
  const std::string name = value_name(change.key);
  batch.writes.Put(name, record.encoded());
  batch.values[name] = std::move(record);
  if (change.root) {
    batch.writes.Put(root_name(change.key), rocksdb::Slice());
    batch.new_roots.insert(root_name(change.key));
  }
  batch.sync = true;
  return ChangeEnd::kDone;
}

/// Not synced: a hint that comes back after a crash is delivered again, which changes nothing.
ChangeEnd Storage::add_drop_hint(const Change& change, Batch& batch) {
  // A put that came after the copy has left promised a later epoch, or a root: the owner does not
  // know of it, so the hint stays and is delivered again.
  const auto now = stored(change.key, batch);
  const bool rooted = batch.new_roots.count(root_name(change.key)) != 0 || is_root(change.key);
  if (now && (now->epoch > change.epoch || (rooted && !change.root))) return ChangeEnd::kNothing;
  remove_hint(hint_prefix(change.hint_for) + std::string(change.key.view()), batch);
  if (change.keep_value) return ChangeEnd::kDone;
  for (const std::string& node : config_.nodes) {
    const std::string other = hint_prefix(node) + std::string(change.key.view());
    if (batch.old_hints.count(other) != 0) continue;
    if (batch.new_hints.count(other) != 0 || exists(other)) {
      return ChangeEnd::kDone;  // one that still needs it
    }
  }
  batch.writes.Delete(value_name(change.key));
  batch.writes.Delete(root_name(change.key));
  batch.new_roots.erase(root_name(change.key));
  batch.values[value_name(change.key)] = std::nullopt;
  return ChangeEnd::kDone;
}

ChangeEnd Storage::add_sweep(const Change& change, Batch& batch) {
  const auto record = stored(change.key, batch);
  if (!record || record->epoch > change.epoch) return ChangeEnd::kNothing;
  batch.writes.Delete(value_name(change.key));
  batch.values[value_name(change.key)] = std::nullopt;
  for (const std::string& node : config_.nodes) {
    remove_hint(hint_prefix(node) + std::string(change.key.view()), batch);
  }
  return ChangeEnd::kDone;
}

void Storage::remove_hint(const std::string& name, Batch& batch) const {
  if (batch.new_hints.erase(name) == 0) {
    if (batch.old_hints.count(name) != 0 || !exists(name)) return;
    batch.old_hints.insert(name);
  }
  batch.writes.Delete(name);
}

bool Storage::is_disk_full() const {
  std::uint64_t bytes = 0;
  const auto& disk = db_->GetEnv()->GetFileSystem();
  return disk->GetFreeSpace(config_.path, rocksdb::IOOptions(), &bytes, nullptr).ok() &&
         bytes < config_.free_bytes_min;
}

/// After a failed write RocksDB takes no others until it has recovered. From a full disk it
/// recovers by itself: it looks every five seconds whether there is room. Asking it to resume while
/// there is none would turn that into an error that only a restart ends.
ChangeEnd Storage::write(Batch& batch) {
  if (is_disk_full()) return ChangeEnd::kDiskFull;
  rocksdb::WriteOptions options;
  options.sync = batch.sync;
  const rocksdb::Status status = db_->Write(options, &batch.writes);
  if (status.ok()) return ChangeEnd::kDone;
  return status.IsNoSpace() || status.subcode() == rocksdb::Status::kNoSpace ? ChangeEnd::kDiskFull
                                                                             : ChangeEnd::kFailed;
}

std::optional<ValueKey> Storage::visit_records(const std::optional<ValueKey>& after,
                                               std::size_t count, const VisitRecord& visit) const {
  std::optional<ValueKey> last;
  std::size_t left = count;
  scan(*db_, "v", after, [&](const ValueKey& key, rocksdb::Iterator& at) {
    if (left-- == 0) return false;
    last = key;
    const auto record = Record::decode(at.value().ToStringView());
    if (record && record->key() == key) visit(key, *record);
    return true;
  });
  return last;
}

std::vector<ValueKey> Storage::hints(std::string_view owner, const std::optional<ValueKey>& after,
                                     std::size_t count) const {
  std::vector<ValueKey> keys;
  if (count == 0) return keys;
  scan(*db_, hint_prefix(owner), after, [&](const ValueKey& key, rocksdb::Iterator&) {
    keys.push_back(key);
    return keys.size() < count;
  });
  return keys;
}

std::vector<ValueKey> Storage::roots() const {
  std::vector<ValueKey> keys;
  scan(*db_, "r", std::nullopt, [&](const ValueKey& key, rocksdb::Iterator&) {
    keys.push_back(key);
    return true;
  });
  return keys;
}

bool Storage::is_write_stopped() const {
  std::uint64_t stopped = 0;
  return db_->GetIntProperty(rocksdb::DB::Properties::kIsWriteStopped, &stopped) && stopped != 0;
}

}  // namespace valuestore
