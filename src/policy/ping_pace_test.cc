#include "policy/ping_pace.h"

#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const TimePoint kQuietSince = TimePoint{} + hours(1);

/// The times, in seconds, of the PINGs of a connection on which nothing but their answers comes.
std::vector<long> pings_in_silence(PingPace pace, Duration span, const PingPaceRules& rules = {}) {
  std::vector<long> times;
  pace.note_heard(kQuietSince);
  for (TimePoint now = pace.due_at(rules); now <= kQuietSince + span; now = pace.due_at(rules)) {
    times.push_back(std::chrono::duration_cast<seconds>(now - kQuietSince).count());
    pace.note_ping(now);
    pace.note_heard(now);  // it is answered
  }
  return times;
}

TEST(PingPace, ASilentConnectionOfGrpcIsAskedOnceAndThenEvery5Minutes) {
  PingPace pace;
  pace.note_grpc();
  EXPECT_EQ(pings_in_silence(pace, minutes(16)), (std::vector<long>{10, 310, 610, 910}));
}

TEST(PingPace, OtherConnectionsAreAskedEvery10Seconds) {
  EXPECT_EQ(pings_in_silence({}, seconds(35)), (std::vector<long>{10, 20, 30}));
}

TEST(PingPace, AfterAPartOfAnAnswerTheNextSilenceIsAskedAbout) {
  PingPace pace;
  pace.note_grpc();
  pace.note_heard(kQuietSince);
  pace.note_ping(kQuietSince + seconds(10));
  EXPECT_EQ(pace.due_at({}), kQuietSince + seconds(10) + minutes(5));
  pace.note_heard(kQuietSince + seconds(20));
  pace.note_answer();
  EXPECT_EQ(pace.due_at({}), kQuietSince + seconds(30));
  EXPECT_EQ(pace.allowed_at({}), TimePoint{});
}

TEST(PingPace, APauseThatIsTooShortDoubles) {
  EXPECT_EQ(longer_ping_pause(minutes(5)), minutes(10));
  EXPECT_EQ(longer_ping_pause(hours(2)), hours(2));
}

/// As gRPC servers count: a PING within 5 minutes of the one before is a strike, the third strike
/// ends the connection, and sending a part of an answer forgives all.
TEST(PingPace, AGrpcServerNeverCountsAStrike) {
  Rng rng(7);
  const PingPaceRules rules;
  PingPace pace;
  pace.note_grpc();
  TimePoint now = kQuietSince;
  TimePoint last_ping{};
  pace.note_heard(now);
  int pings = 0;
  for (int i = 0; i < 100'000; ++i) {
    now += rng.between(seconds(0), seconds(40));
    if (rng.chance(0.05)) {
      pace.note_heard(now);
      pace.note_answer();
      last_ping = {};
    }
    const bool suspect = rng.chance(0.3);  // somebody else wants to know
    if (now < (suspect ? pace.allowed_at(rules) : pace.due_at(rules))) continue;
    ASSERT_TRUE(last_ping == TimePoint{} || now - last_ping >= minutes(5));
    last_ping = now;
    pace.note_ping(now);
    pace.note_heard(now);
    ++pings;
  }
  EXPECT_GT(pings, 1000);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
