#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include <rocksdb/file_system.h>

namespace valuestore {

/// A disk that loses power: cut() ends all writing, forget() takes from each file what was not
/// synced. Killing a process cannot show a missing fsync, because the kernel keeps the pages.
///
/// Also a disk that is full: while set_full(true), appending fails with NoSpace; with
/// hide_free_space() that comes as a surprise.
/// Thread-safety: any thread; forget() after the store is closed.
class ForgetfulFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  ForgetfulFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  [[nodiscard]] const char* Name() const override { return "ForgetfulFileSystem"; }

  /// The power fails at this sync from now, 1 being the next; before the sync has any effect.
  void cut_at_sync(int number) { syncs_left_ = number; }
  void cut() { cut_ = true; }
  [[nodiscard]] bool is_cut() const { return cut_; }
  void set_full(bool full) { full_ = full; }
  void hide_free_space() { hidden_ = true; }
  [[nodiscard]] std::uint64_t syncs() const { return syncs_; }
  /// Truncates each file to what was synced, and to at most `torn` more bytes; then the power is on
  /// again.
  void forget(std::uint64_t torn = 0);
  /// cut() and forget() while the store is in use; the power stays off. What a sync has begun to
  /// write before is safe, and nothing is written after.
  void lose_power(std::uint64_t torn);

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& name, const std::string& old_name,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetFreeSpace(const std::string& path, const rocksdb::IOOptions& options,
                                 std::uint64_t* bytes, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  class WatchedFile;

  [[nodiscard]] rocksdb::IOStatus before_append() const;
  [[nodiscard]] rocksdb::IOStatus before_sync();
  void synced(const std::string& name, std::uint64_t size);
  void truncate_files(std::uint64_t torn);

  std::atomic<bool> cut_{false};
  std::atomic<bool> full_{false};
  std::atomic<bool> hidden_{false};
  std::atomic<int> syncs_left_{0};
  std::atomic<std::uint64_t> syncs_{0};
  std::shared_mutex power_;  // held shared by each operation that writes
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> synced_;  // of each file that was written: the safe bytes
};

}  // namespace valuestore
