#pragma once

#include "weir/base/intrusive_list.h"
#include "weir/policy/slow_upload.h"

#include "proxied_request.h"

namespace weir::inline v0::gateway {

/// The requests of one loop whose bodies are received before they ask for a place.
///
/// They hold nothing but memory. When a body finds none, those that are slower than the slow rate
/// for longer than their grace are ended; all others keep theirs, and the new body is forwarded as
/// it comes. Thread-safety: its loop's thread. Cost: O(1).
class ReceivedFirstList {
 public:
  void add(ProxiedRequest& request) noexcept { all_.push_back(request); }
  /// Does nothing if it is not in the list.
  void remove(ProxiedRequest& request) noexcept {
    if (request.receive_hook.linked()) all_.remove(request);
  }
  /// Ends one that is too slow, of the kLooks oldest. False: none of them is.
  [[nodiscard]] bool end_slow(const SlowUploadRule& slow);

 private:
  static constexpr int kLooks = 16;
  IntrusiveList<ProxiedRequest, &ProxiedRequest::receive_hook> all_;  // oldest first
};

}  // namespace weir::inline v0::gateway
