#pragma once

#include <cstdint>

#include "weir/base/time.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::inline policy {

/// The state of an upload when another request finds no free place.
struct UploadState {
  Priority priority = Priority::kNormal;
  Duration since{};                  // time since the upload started
  std::uint64_t received_bytes = 0;  // of the body
  std::uint64_t held_bytes = 0;      // of those, the bytes that the upstream has not accepted yet
  bool response_started = false;
};

struct SlowUploadRule {
  Duration grace = std::chrono::seconds(1);
  std::uint64_t bytes_per_second = 0;  // an upload is slow if its average is below this
};

/// Whether the upload loses its place, and the reason. Only kTooSlow loses it.
enum class UploadVerdict : std::uint8_t {
  kTooSlow,
  kCritical,       // critical requests keep their place
  kWithinGrace,    // it started less than `grace` ago
  kUpstreamWaits,  // blocked on the upstream, not on the client
  kAnswering,      // its response has started
  kFastEnough,
};

/// Without this rule, clients that send just above the server's minimum rate could hold every place
/// of an upstream.
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

}  // namespace weir::inline v0::inline policy
