#include "upload_list.h"

#include "served_upstream.h"

namespace weir::inline v0::gateway {
namespace {

constexpr Duration kShortFor = std::chrono::seconds(1);

}  // namespace

void UploadList::add(ProxiedRequest& upload) noexcept {
  all_.push_back(upload);
  ++of_source_[upload.source() % kSources];
  upload.place().uploads.fetch_add(1, std::memory_order_relaxed);
}

void UploadList::remove(ProxiedRequest& upload) noexcept {
  if (!upload.upload_hook.linked()) return;
  all_.remove(upload);
  --of_source_[upload.source() % kSources];
  upload.place().uploads.fetch_sub(1, std::memory_order_relaxed);
}

bool UploadList::over_share(const ProxiedRequest& newcomer, std::uint32_t more) const noexcept {
  const std::uint32_t uploads = newcomer.place().uploads.load(std::memory_order_relaxed);
  return policy::over_upload_share(uploads + more, controller_.limit(newcomer.scope()));
}

bool UploadList::may_begin(const ProxiedRequest& newcomer, TimePoint now) {
  if (newcomer.priority() == Priority::kCritical) return true;
  const bool short_lately = to_ns(now) < newcomer.place().short_until_ns.load();
  return !short_lately || !over_share(newcomer, 1) || end_slowest(newcomer);
}

void UploadList::make_way(const ProxiedRequest& newcomer, const SlowUploadRule& slow,
                          TimePoint now) {
  if (!newcomer.uploads()) newcomer.place().short_until_ns.store(to_ns(now + kShortFor));
  end_stalled(newcomer, slow);
  const bool waited = newcomer.waits_for_a_permit();
  while (over_share(newcomer, 0) && end_slowest(newcomer)) {
    if (!waited || !newcomer.waits_for_a_permit()) return;
  }
}

// Of the uploads that are fast enough, only the kLooks oldest are examined. After the limit fell,
// many places may be missing: it ends uploads until the newcomer gets one.
void UploadList::end_stalled(const ProxiedRequest& newcomer, const SlowUploadRule& slow) {
  constexpr int kLooks = 16;
  ProxiedRequest* upload = all_.front();
  for (int looks = 0; upload != nullptr && looks < kLooks; ++looks) {
    if (upload == &newcomer || upload->scope() != newcomer.scope() ||
        !upload->yield_if_slow(slow)) {
      upload = all_.next(*upload);
      continue;
    }
    if (!newcomer.waits_for_a_permit()) return;
    upload = all_.front();  // ending one may have ended others on its connection
    looks = -1;
  }
}

/// Whether there was one to end.
bool UploadList::end_slowest(const ProxiedRequest& newcomer) {
  policy::UsualPace usual;
  for (ProxiedRequest& upload : all_) {
    if (upload.scope() == newcomer.scope()) usual.add(progress_of(upload));
  }
  ProxiedRequest* victim = slowest(newcomer, usual.rate());
  if (victim != nullptr) victim->yield_place();
  return victim != nullptr;
}

ProxiedRequest* UploadList::slowest(const ProxiedRequest& newcomer, double usual) noexcept {
  ProxiedRequest* worst = nullptr;
  double worst_pace = 0;
  for (ProxiedRequest& upload : all_) {
    if (!may_end(upload, newcomer)) continue;
    const double pace = policy::upload_pace(progress_of(upload), usual);
    if (worst != nullptr && pace >= worst_pace) continue;
    worst = &upload;
    worst_pace = pace;
  }
  return worst;
}

bool UploadList::may_end(ProxiedRequest& upload, const ProxiedRequest& newcomer) const noexcept {
  if (&upload == &newcomer || upload.scope() != newcomer.scope()) return false;
  if (!upload.waits_for_its_client()) return false;
  return !newcomer.uploads() ||
         policy::may_displace(of_source_[newcomer.source() % kSources], progress_of(upload));
}

policy::UploadProgress UploadList::progress_of(ProxiedRequest& upload) const noexcept {
  const UploadState state = upload.upload_state();
  return {.since = state.since,
          .received_bytes = state.received_bytes,
          .of_source = of_source_[upload.source() % kSources]};
}

}  // namespace weir::inline v0::gateway
