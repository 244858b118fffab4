#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "weir/base/intrusive_list.h"
#include "weir/policy/slow_upload.h"

#include "policy/upload_share.h"
#include "proxied_request.h"

namespace weir::inline v0::gateway {

/// The requests of one loop whose bodies are received before they ask for a place.
///
/// They hold nothing but memory, and one client may have all of it while nobody else wants any. A
/// body that finds none ends one of these, in this order:
///   1. one that is slower than the slow rate for longer than its grace;
///   2. of the source that holds most, the one with the lowest policy::upload_pace(), if
///      policy::may_take_memory(): otherwise a client just above the slow rate could keep all
///      others' bodies out.
/// If neither exists, the new body is forwarded as it comes.
/// Thread-safety: its loop's thread. Cost: O(1); O(bodies of the loop) when one finds no memory.
class ReceivedFirstList {
 public:
  void add(ProxiedRequest& request) noexcept;
  /// Does nothing if it is not in the list.
  void remove(ProxiedRequest& request) noexcept;
  /// Ends one for the body of `newcomer`, which is not in the list. False: none has to end.
  [[nodiscard]] bool make_room(const ProxiedRequest& newcomer, const SlowUploadRule& slow);

 private:
  static constexpr int kLooks = 16;
  static constexpr std::size_t kSources = 1024;  // sources whose hashes are alike count as one

  [[nodiscard]] bool end_slow(const SlowUploadRule& slow);
  [[nodiscard]] bool end_largest(const ProxiedRequest& newcomer);
  [[nodiscard]] std::uint64_t& bytes_of(const ProxiedRequest& request) noexcept {
    return bytes_of_source_[request.source() % kSources];
  }

  IntrusiveList<ProxiedRequest, &ProxiedRequest::receive_hook> all_;  // oldest first
  std::array<std::uint64_t, kSources> bytes_of_source_{};
};

}  // namespace weir::inline v0::gateway
