#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/base/time.h"
#include "weir/policy/class_admission.h"

namespace weir::inline v0::inline policy {

/// The part of a limit that requests with incomplete bodies may fill while others find no place.
inline constexpr std::uint32_t kUploadSharePermille = 500;
/// For how long an upload counts as usual until its own bytes show how fast it is.
inline constexpr Duration kUploadGrace = std::chrono::seconds(1);

[[nodiscard]] constexpr bool over_upload_share(std::uint32_t uploads,
                                               std::uint32_t limit) noexcept {
  return uploads > share_bound(limit, kUploadSharePermille);
}

/// One upload as it is compared with others.
struct UploadProgress {
  Duration since{};
  std::uint64_t received_bytes = 0;
  std::uint32_t of_source = 1;  // uploads that its source has
};

/// The usual rate of some uploads: all their bytes by all their time.
///
/// Thread-safety: none; a value. Cost: O(1).
class UsualPace {
 public:
  void add(const UploadProgress& upload) noexcept {
    bytes_ += static_cast<double>(upload.received_bytes);
    seconds_ += to_seconds(std::max(upload.since, Duration(0)));
  }
  /// Bytes per second; zero if nothing is known.
  [[nodiscard]] double rate() const noexcept { return seconds_ > 0 ? bytes_ / seconds_ : 0; }

 private:
  double bytes_ = 0;
  double seconds_ = 0;
};

/// How fast an upload is, in comparison with others: the lowest goes first.
///
///   pace = (received + (rate + 1) × grace) / (since + grace) / of_source
///
/// With only its own bytes, one that has just begun would be the slowest of all. So it begins with
/// the usual rate and falls while nothing comes. A fixed threshold could be exceeded a little. What
/// a source has is shared by its uploads, so that the source with most loses first.
/// Thread-safety: pure. Cost: O(1).
[[nodiscard]] inline double upload_pace(const UploadProgress& upload, double rate) noexcept {
  const double grace = to_seconds(kUploadGrace);
  const double bytes = static_cast<double>(upload.received_bytes) + (rate + 1) * grace;
  const double time = to_seconds(std::max(upload.since, Duration(0))) + grace;
  return bytes / time / static_cast<double>(std::max(upload.of_source, 1U));
}

/// Whether an upload that begins may take the place of this one. Within the grace only if its
/// source has fewer: otherwise clients that come again and again would end each other's requests,
/// and each would cost the service a connection.
[[nodiscard]] constexpr bool may_displace(std::uint32_t newcomers_of_source,
                                          const UploadProgress& upload) noexcept {
  return upload.since >= kUploadGrace || newcomers_of_source + 1 < upload.of_source;
}

/// Memory that bodies hold which are received before they ask for a place.
struct BodyMemory {
  std::uint64_t of_source = 0;  // of all bodies of a source
  std::uint64_t own = 0;        // of this one
};

/// Whether a body may end for another one whose source would hold `wanted` bytes with it. Only if
/// its source then still holds as much: so two sources never end each other's bodies in turns. Not
/// within the grace: whoever finds no memory is served all the same.
[[nodiscard]] constexpr bool may_take_memory(std::uint64_t wanted, const BodyMemory& body,
                                             const UploadProgress& progress) noexcept {
  return progress.since >= kUploadGrace && wanted <= body.of_source - body.own;
}

}  // namespace weir::inline v0::inline policy
