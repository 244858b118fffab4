#include "weir/embed/thread_parker.h"

#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"
#include "weir/embed/clock.h"

namespace weir::inline v0::embed {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(EmbedThreadParker, UnparkBeforeParkIsNotLostAndCountsOnce) {
  ThreadParker parker;
  parker.unpark();
  parker.unpark();
  const TimePoint far = now() + hours(1);
  EXPECT_LT(parker.park_until(far), far);
  const TimePoint soon = now() + milliseconds(2);
  EXPECT_GE(parker.park_until(soon), soon);
}

TEST(EmbedThreadParker, AThreadWaitsForAPermitUntilOneIsGivenBack) {
  AdmissionConfig config;
  config.limit.policy = LimitKind::kFixed;
  config.limit.initial_limit = 1;
  config.limit.min_limit = 1;
  config.high_wait_max = std::chrono::seconds(60);
  AdmissionController admission(config, Rng(1));
  AdmissionRequest request;
  request.priority = Priority::kHigh;
  auto first = admission.try_admit(request, now());
  ASSERT_TRUE(first);
  bool admitted = false;
  std::thread second([&] {
    ThreadParker parker;
    admitted = admission.admit(request, parker, now()).has_value();
  });
  while (admission.scope_stats(ScopeId::kFirst, now()).waiting == 0) std::this_thread::yield();
  std::move(*first).finish(Outcome::kOk, now());
  second.join();
  EXPECT_TRUE(admitted);
}

}  // namespace
}  // namespace weir::inline v0::embed
