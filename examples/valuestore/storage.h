#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/enum_names.h"
#include "weir/base/result.h"

#include "record.h"
#include "value_key.h"

namespace rocksdb {
class DB;
class Env;
class WriteBatch;
}  // namespace rocksdb

namespace valuestore {

/// A change of the store. Changes are applied by one thread, in order (WriterThread).
struct Change {
  enum class Kind : std::uint8_t {
    kPut,       // the record; with `hint_for` also a hint
    kDropHint,  // its owner confirmed the copy of `epoch` and `root`; the value goes as well unless
                // `keep_value`; nothing goes if it was put again since
    kSweep,     // remove the value if its epoch is at most `epoch`
    kStartEpoch,  // `epoch` is the current one from now on
    kUnroot,      // the key is no longer a root
  };
  Kind kind = Kind::kPut;
  ValueKey key{};
  Record record{};
  std::string hint_for;     // the owner that is down
  bool root = false;        // kPut: garbage collection keeps it; kDropHint: so said the copy
  bool keep_value = false;  // kDropHint
  std::uint64_t epoch = 0;
};

enum class ChangeEnd : std::uint8_t {
  kDone,       // it is on the disk
  kNothing,    // kSweep, kDropHint: it was put again, or was not there
  kBusy,       // too many changes wait
  kHintsFull,  // as many hints are stored as allowed
  kDiskFull,
  kFailed,
};
WEIR_ENUM_NAMES(ChangeEnd, "done", "nothing", "busy", "hints_full", "disk_full", "failed")

struct StorageConfig {
  std::string path;
  std::vector<std::string> nodes;  // names: hints are for one of them
  rocksdb::Env* env = nullptr;     // tests bring their own
  std::size_t cache_bytes = 32 << 20;
  int open_files_max = 256;
  std::uint64_t hints_max = 100000;
  std::uint64_t free_bytes_min = 8 << 20;  // of the disk: below, nothing is written
};

/// What a node has on its disk: records, hints, roots, and the epoch; in RocksDB.
///
/// Keys: 'v' + key → record; 'h' + owner + '/' + key → nothing: the value is the record beside it;
/// 'r' + key → nothing; 'e' → the epoch. A value and its hint are written in one batch, so neither
/// is ever there alone. A batch that acknowledges anything is synced before commit() returns.
///
/// Promises: what commit() reports as done survives a loss of power. A change that fails changes
/// nothing that was acknowledged; reading goes on while the disk is full, and writing works again
/// by itself once it is not. Hints are never more than hints_max: a change beyond is refused.
/// Thread-safety: reading from any thread; commit() from one thread.
/// Cost: a read is a lookup in RocksDB and one hash of the value; a commit is one fsync.
class Storage {
 public:
  [[nodiscard]] static weir::Result<std::unique_ptr<Storage>, std::string> open(
      const StorageConfig& config);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  enum class Miss : std::uint8_t { kAbsent, kCorrupt, kUnreadable };
  /// The record, if its bytes have the hash that its key says.
  [[nodiscard]] weir::Result<Record, Miss> read(const ValueKey& key) const;
  [[nodiscard]] bool is_root(const ValueKey& key) const;

  /// Applies the changes as one batch; `ends[i]` is that of `changes[i]`.
  void commit(std::span<const Change> changes, std::span<ChangeEnd> ends);

  /// Calls `visit` for up to `count` records after `after` (none: from the first), in order of
  /// keys. Returns the last key it came to; none: there was nothing after `after`.
  using VisitRecord = std::function<void(const ValueKey&, const Record&)>;
  std::optional<ValueKey> visit_records(const std::optional<ValueKey>& after, std::size_t count,
                                        const VisitRecord& visit) const;
  /// Up to `count` keys of hints for this owner, after `after`.
  [[nodiscard]] std::vector<ValueKey> hints(std::string_view owner,
                                            const std::optional<ValueKey>& after,
                                            std::size_t count) const;
  [[nodiscard]] std::vector<ValueKey> roots() const;

  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_.load(); }
  [[nodiscard]] std::uint64_t hint_count() const noexcept { return hint_count_.load(); }
  [[nodiscard]] std::uint64_t corrupt_reads() const noexcept { return corrupt_.load(); }
  /// RocksDB takes no writes now.
  [[nodiscard]] bool is_write_stopped() const;

 private:
  struct Batch;

  explicit Storage(const StorageConfig& config);
  [[nodiscard]] std::string load();
  [[nodiscard]] bool exists(const std::string& name) const;
  [[nodiscard]] std::optional<Record> stored(const ValueKey& key, const Batch& batch) const;
  [[nodiscard]] ChangeEnd add(const Change& change, Batch& batch);
  [[nodiscard]] ChangeEnd add_put(const Change& change, Batch& batch);
  [[nodiscard]] ChangeEnd add_drop_hint(const Change& change, Batch& batch);
  [[nodiscard]] ChangeEnd add_sweep(const Change& change, Batch& batch);
  void remove_hint(const std::string& name, Batch& batch) const;
  [[nodiscard]] bool is_disk_full() const;
  [[nodiscard]] ChangeEnd write(Batch& batch);

  const StorageConfig config_;
  std::unique_ptr<rocksdb::DB> db_;
  std::atomic<std::uint64_t> epoch_{1};
  std::atomic<std::uint64_t> hint_count_{0};
  mutable std::atomic<std::uint64_t> corrupt_{0};
};

}  // namespace valuestore
