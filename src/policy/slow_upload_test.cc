#include "weir/policy/slow_upload.h"

#include <gtest/gtest.h>

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SlowUploadRule kRule{.grace = seconds(1), .bytes_per_second = 4096};

TEST(SlowUpload, VerdictsFollowTheTable) {
  struct Row {
    UploadState upload;
    UploadVerdict verdict;
  };
  const Row rows[] = {
      {{.since = seconds(2), .received_bytes = 8191}, UploadVerdict::kTooSlow},
      {{.since = seconds(2), .received_bytes = 8192}, UploadVerdict::kFastEnough},
      {{.since = milliseconds(999)}, UploadVerdict::kWithinGrace},
      {{.since = seconds(1)}, UploadVerdict::kTooSlow},
      {{.since = seconds(9), .received_bytes = 9, .held_bytes = 1}, UploadVerdict::kUpstreamWaits},
      {{.since = seconds(9), .response_started = true}, UploadVerdict::kAnswering},
      {{.priority = Priority::kHigh, .since = seconds(9)}, UploadVerdict::kTooSlow},
      {{.priority = Priority::kLow, .since = seconds(9)}, UploadVerdict::kTooSlow},
      {{.priority = Priority::kCritical, .since = seconds(9)}, UploadVerdict::kCritical},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(judge_upload(row.upload, kRule), row.verdict) << "row " << &row - rows;
  }
}

TEST(SlowUpload, CriticalKeepsItsPlaceHoweverSlowItIs) {
  for (int s = 0; s < 100; ++s) {
    const UploadState upload{.priority = Priority::kCritical, .since = seconds(s)};
    EXPECT_NE(judge_upload(upload, kRule), UploadVerdict::kTooSlow);
  }
}

TEST(SlowUpload, WithoutARateNobodyIsSlow) {
  const UploadState upload{.since = seconds(9)};
  EXPECT_EQ(judge_upload(upload, {.grace = seconds(1), .bytes_per_second = 0}),
            UploadVerdict::kFastEnough);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
