#include "recorder_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <sys/stat.h>

#include "weir/base/errno_text.h"
#include "weir/base/number_text.h"

namespace weir::inline v0::gateway {
namespace {

constexpr std::string_view kSuffix = ".weirrec";
constexpr std::string_view kRunning = "running.weirrec";
constexpr std::string_view kOverload = "overload-";
constexpr std::string_view kEnded = "ended-";
constexpr Duration kTryAgain = std::chrono::seconds(60);

/// The seconds and the number in the name of a file of that kind, "overload-1790000000.2.weirrec";
/// nothing for other files.
using Age = std::pair<std::int64_t, std::int64_t>;
std::optional<Age> age_of(std::string_view name, std::string_view kind) {
  if (!name.starts_with(kind) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  name.remove_prefix(kind.size());
  const std::size_t dot = std::min(name.find('.'), name.size());
  const auto seconds = parse_number<std::int64_t>(name.substr(0, dot));
  if (!seconds) return std::nullopt;
  std::optional<std::int64_t> number = 1;
  if (dot < name.size()) number = parse_number<std::int64_t>(name.substr(dot + 1));
  return number ? std::optional(Age{*seconds, *number}) : std::nullopt;
}

/// The files of that kind, the oldest first.
std::vector<std::pair<Age, std::string>> files_of(const std::string& folder,
                                                  std::string_view kind) {
  std::vector<std::pair<Age, std::string>> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (const auto age = age_of(name, kind)) found.emplace_back(*age, name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::string RecorderFiles::path(const std::string& name) const {
  return setup_.config.folder + "/" + name;
}

void RecorderFiles::write(std::span<const policy::DecisionWords> decisions, std::uint64_t lost,
                          Duration now) {
  lost_ += lost;
  if (!ready(now)) {
    lost_ += decisions.size();
    return;
  }
  if (const auto done = put(decisions); !done) {
    lost_ += decisions.size();
    return failed(done.error(), now);
  }
  written_ += decisions.size();
}

bool RecorderFiles::ready(Duration now) {
  if (file_) return true;
  if (failing_ && now < try_again_) return false;
  if (const auto opened = open(); !opened) {
    failed(opened.error(), now);
    return false;
  }
  if (failing_.exchange(false)) setup_.say("the decision recorder writes its file again");
  return true;
}

Result<void, std::errc> RecorderFiles::open() {
  constexpr mode_t kOwnerOnly = 0700;
  static_cast<void>(::mkdir(setup_.config.folder.c_str(), kOwnerOnly));  // if it is not there
  const std::string running = path(std::string(kRunning));
  std::error_code ignored;
  if (std::filesystem::exists(running, ignored)) {
    std::filesystem::rename(running, new_path(kEnded), ignored);
    remove_oldest(kEnded, kEndedMax);
  }
  policy::RecordingHeader header = setup_.header(0);
  const std::uint64_t bytes = setup_.config.file_bytes;
  first_ = policy::encode_header(header).size();
  header.capacity = places_ = (bytes - std::min(bytes, first_)) / policy::kDecisionBytes;
  if (places_ == 0) return unexpected(std::errc::file_too_large);
  auto file = io::RecordFile::create(running, bytes);
  if (!file) return unexpected(file.error());
  if (auto done = file->write(0, policy::encode_header(header)); !done) return done;
  file_ = std::move(*file);
  next_ = 0;
  key_ = new_key();
  return {};
}

/// In pieces that are consecutive in the file.
Result<void, std::errc> RecorderFiles::put(std::span<const policy::DecisionWords> decisions) {
  while (!decisions.empty()) {
    const std::size_t count =
        std::min<std::size_t>({decisions.size(), static_cast<std::size_t>(places_ - next_),
                               kChunkBytes / policy::kDecisionBytes});
    std::string bytes;
    bytes.reserve(count * policy::kDecisionBytes);
    for (const policy::DecisionWords& words : decisions.first(count)) {
      auto decision = policy::unpack(words);
      if (decision) decision = policy::with_tags(*decision, key_);
      policy::append_decision(bytes, decision ? policy::pack(*decision) : words);
      if (!decision || !overload_) continue;
      if (const auto taken = overload_->take(*decision); !taken) freeze_failed(taken.error());
    }
    auto done = file_->write(first_ + next_ * policy::kDecisionBytes, bytes);
    if (!done) return done;
    next_ = (next_ + count) % places_;
    decisions = decisions.subspan(count);
  }
  return {};
}

void RecorderFiles::failed(std::errc why, Duration now) {
  file_.reset();
  overload_.reset();  // its tags are made of those of the running file
  try_again_ = now + kTryAgain;
  if (failing_.exchange(true)) return;
  setup_.say("the decision recorder cannot write in " + setup_.config.folder + ": " +
             errno_text(why) + "; decisions are kept in memory only; check recorder.folder");
}

void RecorderFiles::watch_overload(bool overloaded, Duration now) {
  const bool begins = !std::exchange(overloaded_, overloaded) && overloaded;
  const bool over = began_ && now >= *began_ + OverloadFile::kAround;
  if (overload_) {
    const auto done = over ? overload_->finish() : overload_->flush();
    if (!done) freeze_failed(done.error());
  }
  if (over) {
    overload_.reset();
    began_.reset();
  }
  if (begins && !began_) {
    began_ = now;
    if (file_) freeze(now);
  }
}

void RecorderFiles::freeze(Duration begin) {
  const std::uint64_t most = 2 * places_;
  auto made = OverloadFile::create({.path = new_path(kOverload),
                                    .header = setup_.header(0),
                                    .key = new_key(),
                                    .begin = begin,
                                    .records_max = most});
  if (!made) return freeze_failed(made.error());
  overload_ = std::move(*made);
  ++frozen_;
  remove_oldest(kOverload, setup_.config.files_max);
  if (const auto done = copy_running(); !done) freeze_failed(done.error());
}

/// Gives the decisions of the running file to that of the overload.
Result<void, std::errc> RecorderFiles::copy_running() {
  constexpr std::uint64_t kPerChunk = kChunkBytes / policy::kDecisionBytes;
  std::string chunk;
  for (std::uint64_t at = 0; at < places_; at += kPerChunk) {
    chunk.resize(static_cast<std::size_t>(std::min(kPerChunk, places_ - at)) *
                 policy::kDecisionBytes);
    const auto got = file_->read(first_ + at * policy::kDecisionBytes, chunk);
    if (!got) return unexpected(got.error());
    const std::span<const std::byte> bytes = std::as_bytes(std::span(chunk.data(), *got));
    for (std::size_t i = 0; i + policy::kDecisionBytes <= bytes.size();
         i += policy::kDecisionBytes) {
      const auto one = policy::unpack(policy::words_at(bytes.subspan(i, policy::kDecisionBytes)));
      if (!one) continue;
      if (auto taken = overload_->take(*one); !taken) return taken;
    }
  }
  return overload_->flush();
}

void RecorderFiles::freeze_failed(std::errc why) {
  overload_.reset();
  setup_.say("the decision recorder cannot keep this overload in " + setup_.config.folder + ": " +
             errno_text(why) + "; check the space on that disk");
}

/// A name that no other file has; of one second, a later file has a higher number.
std::string RecorderFiles::new_path(std::string_view kind) const {
  const std::int64_t now = setup_.unix_seconds();
  std::int64_t number = 1;
  for (const auto& [age, name] : files_of(setup_.config.folder, kind)) {
    if (age.first == now) number = age.second + 1;
  }
  const std::string stem = path(std::string(kind) + std::to_string(now));
  return stem + (number > 1 ? "." + std::to_string(number) : "") + std::string(kSuffix);
}

void RecorderFiles::remove_oldest(std::string_view kind, std::size_t most) {
  const auto kept = files_of(setup_.config.folder, kind);
  std::error_code ignored;
  for (std::size_t i = 0; i + most < kept.size(); ++i) {
    std::filesystem::remove(path(kept[i].second), ignored);
  }
}

RecorderFiles::Stats RecorderFiles::stats() const noexcept {
  return {.written = written_, .lost = lost_, .frozen = frozen_, .failing = failing_};
}

}  // namespace weir::inline v0::gateway
