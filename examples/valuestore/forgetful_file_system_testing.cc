#include "forgetful_file_system_testing.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <utility>

namespace valuestore {

using rocksdb::FileOptions;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

/// A file that knows how much of it was synced.
class ForgetfulFileSystem::WatchedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WatchedFile(std::unique_ptr<FSWritableFile> file, std::string name, ForgetfulFileSystem& disk)
      : FSWritableFileOwnerWrapper(std::move(file)), name_(std::move(name)), disk_(disk) {}

  IOStatus Append(const Slice& bytes, const IOOptions& options, IODebugContext* debug) override {
    const std::shared_lock power(disk_.power_);
    IOStatus may = disk_.before_append();
    return may.ok() ? FSWritableFileOwnerWrapper::Append(bytes, options, debug) : may;
  }
  IOStatus Append(const Slice& bytes, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*check*/, IODebugContext* debug) override {
    return Append(bytes, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    const std::shared_lock power(disk_.power_);
    IOStatus may = disk_.before_sync();
    if (may.ok()) may = FSWritableFileOwnerWrapper::Sync(options, debug);
    if (may.ok()) disk_.synced(name_, GetFileSize(options, debug));
    return may;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  std::string name_;
  ForgetfulFileSystem& disk_;
};

IOStatus ForgetfulFileSystem::before_append() const {
  if (cut_) return IOStatus::IOError("the power is off");
  if (full_) return IOStatus::NoSpace("the disk is full");
  return IOStatus::OK();
}

IOStatus ForgetfulFileSystem::before_sync() {
  ++syncs_;
  if (syncs_left_ > 0 && --syncs_left_ == 0) cut_ = true;
  if (cut_) return IOStatus::IOError("the power is off");
  return IOStatus::OK();
}

void ForgetfulFileSystem::synced(const std::string& name, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  synced_[name] = size;
}

IOStatus ForgetfulFileSystem::NewWritableFile(const std::string& name, const FileOptions& options,
                                              std::unique_ptr<FSWritableFile>* file,
                                              IODebugContext* debug) {
  const std::shared_lock power(power_);
  if (IOStatus may = before_append(); !may.ok()) return may;
  IOStatus status = FileSystemWrapper::NewWritableFile(name, options, file, debug);
  if (!status.ok()) return status;
  synced(name, 0);
  *file = std::make_unique<WatchedFile>(std::move(*file), name, *this);
  return status;
}

IOStatus ForgetfulFileSystem::ReopenWritableFile(const std::string& /*name*/,
                                                 const FileOptions& /*options*/,
                                                 std::unique_ptr<FSWritableFile>* /*file*/,
                                                 IODebugContext* /*debug*/) {
  return IOStatus::NotSupported("the store does not reopen files");
}

IOStatus ForgetfulFileSystem::ReuseWritableFile(const std::string& /*name*/,
                                                const std::string& /*old_name*/,
                                                const FileOptions& /*options*/,
                                                std::unique_ptr<FSWritableFile>* /*file*/,
                                                IODebugContext* /*debug*/) {
  return IOStatus::NotSupported("the store does not reuse files");
}

IOStatus ForgetfulFileSystem::RenameFile(const std::string& from, const std::string& to,
                                         const IOOptions& options, IODebugContext* debug) {
  const std::shared_lock power(power_);
  if (cut_) return IOStatus::IOError("the power is off");
  const std::lock_guard lock(mutex_);
  if (const auto known = synced_.find(from); known != synced_.end()) {
    synced_[to] = known->second;
    synced_.erase(from);
  }
  return FileSystemWrapper::RenameFile(from, to, options, debug);
}

IOStatus ForgetfulFileSystem::GetFreeSpace(const std::string& path, const IOOptions& options,
                                           std::uint64_t* bytes, IODebugContext* debug) {
  IOStatus status = FileSystemWrapper::GetFreeSpace(path, options, bytes, debug);
  if (full_ && !hidden_) *bytes = 0;
  return status;
}

IOStatus ForgetfulFileSystem::DeleteFile(const std::string& name, const IOOptions& options,
                                         IODebugContext* debug) {
  const std::shared_lock power(power_);
  if (cut_) return IOStatus::IOError("the power is off");
  const std::lock_guard lock(mutex_);
  synced_.erase(name);
  return FileSystemWrapper::DeleteFile(name, options, debug);
}

void ForgetfulFileSystem::truncate_files(std::uint64_t torn) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, safe] : synced_) {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(name, error);
    if (!error && size > safe) std::filesystem::resize_file(name, std::min(size, safe + torn));
  }
}

void ForgetfulFileSystem::forget(std::uint64_t torn) {
  truncate_files(torn);
  cut_ = false;
  syncs_left_ = 0;
}

void ForgetfulFileSystem::lose_power(std::uint64_t torn) {
  const std::unique_lock power(power_);
  cut();
  truncate_files(torn);
}

}  // namespace valuestore
