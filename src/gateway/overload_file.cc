#include "overload_file.h"

#include <utility>

namespace weir::inline v0::gateway {

Result<OverloadFile, std::errc> OverloadFile::create(Setup setup) {
  const std::string head = policy::encode_header(setup.header);
  auto file = io::RecordFile::create(setup.path, head.size());
  if (!file) return unexpected(file.error());
  if (auto done = file->write(0, head); !done) return unexpected(done.error());
  return OverloadFile(std::move(setup), std::move(*file), head.size());
}

Result<void, std::errc> OverloadFile::take(const policy::RecordedDecision& decision) {
  constexpr std::size_t kWriteFrom = std::size_t{1} << 19U;
  const Duration from_begin = decision.ended_at() - setup_.begin;
  if (from_begin < -kAround || from_begin > kAround || records_ == setup_.records_max) return {};
  policy::append_decision(bytes_, policy::pack(policy::with_tags(decision, setup_.key)));
  ++records_;
  return bytes_.size() < kWriteFrom ? Result<void, std::errc>() : flush();
}

Result<void, std::errc> OverloadFile::flush() {
  auto done = file_.write(offset_, bytes_);
  offset_ += bytes_.size();
  bytes_.clear();
  return done;
}

Result<void, std::errc> OverloadFile::finish() {
  if (auto done = flush(); !done) return done;
  setup_.header.capacity = records_;
  return file_.write(0, policy::encode_header(setup_.header));
}

}  // namespace weir::inline v0::gateway
