#include "received_first_list.h"

namespace weir::inline v0::gateway {

bool ReceivedFirstList::end_slow(const SlowUploadRule& slow) {
  ProxiedRequest* request = all_.front();
  for (int looks = 0; request != nullptr && looks < kLooks; ++looks) {
    if (request->yield_if_slow(slow)) return true;
    request = all_.next(*request);
  }
  return false;
}

}  // namespace weir::inline v0::gateway
