#include "upstream/endpoint.h"

#include <chrono>

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

using std::chrono::milliseconds;

struct EndpointTest : ::testing::Test {
  Endpoint endpoint{*io::parse_socket_name("127.0.0.1:1")};
  TimePoint now = TimePoint{} + std::chrono::hours(1);

  /// How long it is ejected from now on.
  Duration pause() const { return endpoint.ejected_until() - now; }
};

TEST_F(EndpointTest, PausesDoubleFromFailureToFailure) {
  for (const int ms : {100, 200, 400, 800, 1600, 3200, 6400, 6400}) {
    endpoint.note_connect_failed(now);
    EXPECT_FALSE(endpoint.available(now));
    EXPECT_EQ(pause(), milliseconds(ms));
    now = endpoint.ejected_until();
    EXPECT_TRUE(endpoint.available(now));
  }
}

TEST_F(EndpointTest, FailuresAtTheSameTimeAreOne) {
  for (int i = 0; i < 64; ++i) endpoint.note_connect_failed(now);
  EXPECT_EQ(pause(), milliseconds(100));
  for (int i = 0; i < 64; ++i) endpoint.note_bad_answer(now);
  EXPECT_EQ(pause(), milliseconds(100));
}

TEST_F(EndpointTest, AnAnswerOpensItAndForgetsTheFailures) {
  endpoint.note_connect_failed(now);
  now = endpoint.ejected_until();
  endpoint.note_connect_failed(now);
  endpoint.note_answered();
  EXPECT_TRUE(endpoint.available(now));
  endpoint.note_connect_failed(now);
  EXPECT_EQ(pause(), milliseconds(100));
}

TEST_F(EndpointTest, OnlyBadAnswersInARowCloseIt) {
  endpoint.note_bad_answer(now);
  endpoint.note_bad_answer(now);
  endpoint.note_answered();
  endpoint.note_bad_answer(now);
  endpoint.note_bad_answer(now);
  EXPECT_TRUE(endpoint.available(now));
  endpoint.note_bad_answer(now);
  EXPECT_FALSE(endpoint.available(now));
}

}  // namespace
}  // namespace weir::upstream
