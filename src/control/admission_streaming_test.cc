// From the response headers to the last byte.
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {
namespace {

using std::chrono::milliseconds;

TEST(AdmissionStreaming, ASecondCallChangesNothing) {
  AdmissionController controller(small_config(), Rng(1));
  Permit permit = controller.try_admit(request_of(Priority::kNormal), kStart).value();
  EXPECT_TRUE(permit.to_streaming(kStart));
  EXPECT_TRUE(permit.to_streaming(kStart));
  EXPECT_EQ(controller.stats().streaming, 1U);
  EXPECT_EQ(controller.stats().in_flight, 0U);
}

TEST(AdmissionStreaming, WhenStreamsMaxIsReachedTheUnitStaysInTheLimit) {
  AdmissionConfig config = small_config();
  config.streams_max = 2;
  AdmissionController controller(config, Rng(1));
  std::vector<Permit> permits = admit_all(controller, request_of(Priority::kNormal), 3);
  EXPECT_TRUE(permits[0].to_streaming(kStart));
  EXPECT_TRUE(permits[1].to_streaming(kStart));
  EXPECT_FALSE(permits[2].to_streaming(kStart));
  EXPECT_EQ(controller.stats().streaming, 2U);
  EXPECT_EQ(controller.stats().in_flight, 1U);
  permits.erase(permits.begin());
  EXPECT_TRUE(permits[1].to_streaming(kStart));
  permits.clear();
  EXPECT_TRUE(all_is_given_back(controller));
}

TEST(AdmissionStreaming, ASampleMayBeginAfterTheGrantOrNotBeTaken) {
  AdmissionConfig config = plain_config(8);
  config.limit.window_duration = std::chrono::milliseconds(100);
  AdmissionController controller(config, Rng(1));
  const auto latency = [&](int second, auto set) {
    const TimePoint from = after_ms(1000 * second);
    Permit permit = controller.try_admit(request_of(Priority::kNormal), from).value();
    set(permit, from);
    std::move(permit).finish(Outcome::kOk, from + std::chrono::milliseconds(50));
    controller.expire(from + std::chrono::milliseconds(500));
    return controller.scope_stats(ScopeId::kFirst, from + std::chrono::milliseconds(500))
        .latency_avg;
  };
  latency(1, [](Permit&, TimePoint) {});  // opens the first window
  const Duration whole = latency(2, [](Permit&, TimePoint) {});
  const Duration later = latency(3, [](Permit& permit, TimePoint from) {
    permit.start_sample_at(from + std::chrono::milliseconds(40));
  });
  EXPECT_EQ(whole, Duration(std::chrono::milliseconds(50)));
  EXPECT_EQ(later, Duration(std::chrono::milliseconds(10)));
  const Duration earlier = latency(4, [](Permit& permit, TimePoint from) {
    permit.start_sample_at(from - std::chrono::milliseconds(40));
  });
  EXPECT_EQ(earlier, whole) << "never before the grant";
  const Duration none = latency(5, [](Permit& permit, TimePoint) { permit.skip_sample(); });
  EXPECT_EQ(none, earlier) << "that of the last window with samples";
}

TEST(AdmissionStreaming, CriticalStreamsPastStreamsMax) {
  AdmissionConfig config = small_config();
  config.streams_max = 0;
  AdmissionController controller(config, Rng(1));
  Permit normal = controller.try_admit(request_of(Priority::kNormal), kStart).value();
  Permit critical = controller.try_admit(request_of(Priority::kCritical), kStart).value();
  EXPECT_FALSE(normal.to_streaming(kStart));
  EXPECT_TRUE(critical.to_streaming(kStart));
  EXPECT_EQ(controller.stats().streaming, 1U);
}

TEST(AdmissionStreaming, AWaiterGetsTheUnitAtTheHeaders) {
  AdmissionController controller(plain_config(1), Rng(1));
  Permit stream = controller.try_admit(request_of(Priority::kNormal), kStart).value();
  Waiter waiter;
  ASSERT_EQ(controller.enter(request_of(Priority::kNormal), waiter, kStart).kind,
            Entered::Kind::kWaiting);
  EXPECT_TRUE(stream.to_streaming(after_ms(5)));
  EXPECT_TRUE(controller.collect(waiter, after_ms(5)).has_value());
}

TEST(AdmissionStreaming, ItsWeightMovesWithIt) {
  AdmissionController controller(plain_config(10), Rng(1));
  AdmissionRequest dear = request_of(Priority::kNormal);
  dear.cost = 4;
  Permit permit = controller.try_admit(dear, kStart).value();
  EXPECT_EQ(controller.stats().in_flight, 4U);
  EXPECT_TRUE(permit.to_streaming(kStart));
  EXPECT_EQ(controller.stats().in_flight, 0U);
  EXPECT_EQ(controller.stats().streaming, 4U);
}

// The unit of the limit is freed once, so a stream must not count twice in the drain rate from
// which waits are estimated.
TEST(AdmissionStreaming, AStreamedRequestDrainsOnce) {
  AdmissionController controller(plain_config(10), Rng(1));
  controller.expire(kStart);
  for (int i = 0; i < 10; ++i) {
    Permit permit = controller.try_admit(request_of(Priority::kNormal), kStart).value();
    EXPECT_TRUE(permit.to_streaming(after_ms(10 * i)));
    if (i % 2 == 0) std::move(permit).finish(Outcome::kOk, after_ms(10 * i + 5));
  }
  controller.expire(after_ms(100));
  EXPECT_DOUBLE_EQ(controller.scope_stats(ScopeId::kFirst, after_ms(100)).drain_per_second, 100.0);
}

// Headers after 3 ms, body for a minute: the limiter gets one sample of 3 ms.
TEST(AdmissionStreaming, TheLatencySampleIsTakenAtTheHeaders) {
  AdmissionConfig config = plain_config(10);
  config.limit.policy = LimitKind::kVegas;
  AdmissionController controller(config, Rng(1));
  controller.expire(kStart);  // opens the window
  Permit permit = controller.try_admit(request_of(Priority::kNormal), kStart).value();
  EXPECT_TRUE(permit.to_streaming(after_ms(3)));
  controller.expire(after_ms(1000));
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).latency_avg, milliseconds(3));
  std::move(permit).finish(Outcome::kOverload, after_ms(60'000));
  controller.expire(after_ms(61'000));
  EXPECT_EQ(controller.scope_stats(ScopeId::kFirst, kStart).latency_avg, milliseconds(3));
}

// The status of a gRPC call comes in its trailers, after the headers of its response.
TEST(AdmissionStreaming, OverloadThatIsReportedAtTheEndPullsTheLimitDown) {
  const auto limit_after = [](Outcome outcome) {
    AdmissionConfig config;
    config.limit.initial_limit = 100;
    AdmissionController controller(config, Rng(1));
    for (int ms = 0; ms < 5000; ms += 2) {
      Permit permit = controller.try_admit(request_of(Priority::kHigh), after_ms(ms)).value();
      EXPECT_TRUE(permit.to_streaming(after_ms(ms + 1)));
      std::move(permit).finish(outcome, after_ms(ms + 1));
      controller.expire(after_ms(ms + 1));
    }
    return controller.scope_stats(ScopeId::kFirst, after_ms(5000)).limit;
  };
  EXPECT_GE(limit_after(Outcome::kOk), 100U);
  EXPECT_LT(limit_after(Outcome::kOverload), 50U);
}

}  // namespace
}  // namespace weir::inline v0::inline control
