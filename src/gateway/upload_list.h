#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/control/admission_controller.h"

#include "policy/upload_share.h"
#include "proxied_request.h"

namespace weir::inline v0::gateway {

/// The requests of one loop whose bodies are not complete, and which of them end when others find
/// no place.
///
/// | who finds no place        | which upload ends                                               |
/// |---------------------------|-----------------------------------------------------------------|
/// | any request               | one below the slow rate for longer than its grace, oldest first |
/// | one without a body        | while uploads fill more than their share: the one with the      |
/// |                           | lowest policy::upload_pace()                                    |
/// | one with a body           | the same, if policy::may_displace()                             |
///
/// For a second after a request without a body found no place, a request with a body is not
/// admitted beyond the share unless it displaces one. While everybody finds a place, uploads may
/// fill the whole limit. Thread-safety: its loop's thread. Cost: O(1); O(uploads of the loop) when
/// somebody finds no place.
class UploadList {
 public:
  explicit UploadList(const AdmissionController& controller) noexcept : controller_(controller) {}

  void add(ProxiedRequest& upload) noexcept;
  /// Does nothing if it is not in the list.
  void remove(ProxiedRequest& upload) noexcept;

  /// Whether a request with a body may ask for admission now. May end another upload.
  [[nodiscard]] bool may_begin(const ProxiedRequest& newcomer, TimePoint now);
  /// `newcomer` waits or was refused for the limit: ends uploads until it has a place, or one.
  void make_way(const ProxiedRequest& newcomer, const SlowUploadRule& slow, TimePoint now);

 private:
  using List = IntrusiveList<ProxiedRequest, &ProxiedRequest::upload_hook>;
  static constexpr std::size_t kSources = 1024;  // sources whose hashes are alike count as one

  void end_stalled(const ProxiedRequest& newcomer, const SlowUploadRule& slow);
  [[nodiscard]] bool over_share(const ProxiedRequest& newcomer, std::uint32_t more) const noexcept;
  [[nodiscard]] bool end_slowest(const ProxiedRequest& newcomer);
  [[nodiscard]] ProxiedRequest* slowest(const ProxiedRequest& newcomer, double usual) noexcept;
  [[nodiscard]] bool may_end(ProxiedRequest& upload, const ProxiedRequest& newcomer) const noexcept;
  [[nodiscard]] policy::UploadProgress progress_of(ProxiedRequest& upload) const noexcept;

  const AdmissionController& controller_;
  List all_;  // oldest first
  std::array<std::uint32_t, kSources> of_source_{};
};

}  // namespace weir::inline v0::gateway
