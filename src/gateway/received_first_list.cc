#include "received_first_list.h"

#include <algorithm>

namespace weir::inline v0::gateway {
namespace {

policy::UploadProgress progress_of(const ProxiedRequest& request) noexcept {
  const UploadState state = request.upload_state();
  return {.since = state.since, .received_bytes = state.received_bytes};
}

}  // namespace

void ReceivedFirstList::add(ProxiedRequest& request) noexcept {
  all_.push_back(request);
  bytes_of(request) += request.received_first_bytes();
}

void ReceivedFirstList::remove(ProxiedRequest& request) noexcept {
  if (!request.receive_hook.linked()) return;
  all_.remove(request);
  bytes_of(request) -= request.received_first_bytes();
}

bool ReceivedFirstList::make_room(const ProxiedRequest& newcomer, const SlowUploadRule& slow) {
  return end_slow(slow) || end_largest(newcomer);
}

bool ReceivedFirstList::end_slow(const SlowUploadRule& slow) {
  ProxiedRequest* request = all_.front();
  for (int looks = 0; request != nullptr && looks < kLooks; ++looks) {
    if (request->yield_if_slow(slow)) return true;
    request = all_.next(*request);
  }
  return false;
}

bool ReceivedFirstList::end_largest(const ProxiedRequest& newcomer) {
  std::uint64_t most = 0;
  policy::UsualPace usual;
  for (ProxiedRequest& request : all_) {
    most = std::max(most, bytes_of(request));
    usual.add(progress_of(request));
  }
  const std::uint64_t wanted = bytes_of(newcomer) + newcomer.received_first_bytes();
  ProxiedRequest* victim = nullptr;
  double lowest = 0;
  for (ProxiedRequest& request : all_) {
    if (bytes_of(request) < most || request.priority() == Priority::kCritical) continue;
    const policy::UploadProgress progress = progress_of(request);
    const policy::BodyMemory memory{.of_source = most, .own = request.received_first_bytes()};
    if (!policy::may_take_memory(wanted, memory, progress)) continue;
    const double pace = policy::upload_pace(progress, usual.rate());
    if (victim != nullptr && pace >= lowest) continue;
    victim = &request;
    lowest = pace;
  }
  if (victim != nullptr) victim->yield_place();
  return victim != nullptr;
}

}  // namespace weir::inline v0::gateway
