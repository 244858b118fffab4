#pragma once

#include <cstdint>

#include "weir/base/time.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::policy {

/// An upload under way, as it stands when another request finds no place.
struct UploadState {
  Priority priority = Priority::kNormal;
  Duration since{};                  // how long its body has been awaited
  std::uint64_t received_bytes = 0;  // of the body
  std::uint64_t held_bytes = 0;      // of those, the ones that the upstream has not taken yet
  bool response_started = false;
};

struct SlowUploadRule {
  Duration grace = std::chrono::seconds(1);
  std::uint64_t bytes_per_second = 0;  // slower on average than this is slow
};

/// Whether the upload loses its place, and why or why not. Only kTooSlow does.
enum class UploadVerdict : std::uint8_t {
  kTooSlow,
  kCritical,       // critical work keeps its place
  kWithinGrace,    // it began a moment ago
  kUpstreamWaits,  // the upstream does not take the bytes: the client is not to blame
  kAnswering,      // its response has begun
  kFastEnough,
};

/// Clients that send just fast enough for the server's minimum rate could otherwise hold every
/// place of an upstream.
///
/// Thread-safety: pure. Cost: O(1).
[[nodiscard]] constexpr UploadVerdict judge_upload(const UploadState& upload,
                                                   const SlowUploadRule& rule) noexcept {
  if (upload.priority == Priority::kCritical) return UploadVerdict::kCritical;
  if (upload.since < rule.grace) return UploadVerdict::kWithinGrace;
  if (upload.held_bytes > 0) return UploadVerdict::kUpstreamWaits;
  if (upload.response_started) return UploadVerdict::kAnswering;
  const double expected = static_cast<double>(rule.bytes_per_second) * to_seconds(upload.since);
  return static_cast<double>(upload.received_bytes) >= expected ? UploadVerdict::kFastEnough
                                                                : UploadVerdict::kTooSlow;
}

}  // namespace weir::inline v0::policy

namespace weir::inline v0 {
using policy::judge_upload;
using policy::SlowUploadRule;
using policy::UploadState;
using policy::UploadVerdict;
}  // namespace weir::inline v0
