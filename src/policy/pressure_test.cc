#include "weir/policy/pressure.h"

#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "odd_numbers_testing.h"

namespace weir::inline v0::inline policy {
namespace {

using namespace std::chrono_literals;

constexpr std::array<double PressureState::*, 4> kUsages = {
    &PressureState::tcp_write_slab_usage, &PressureState::arena_slab_usage,
    &PressureState::pending_stream_usage, &PressureState::handle_slab_usage};

PressureDecision evaluate(const PressureState& state) {
  return evaluate_pressure(state, {});
}

TEST(Pressure, NormalAcceptsAll) {
  for (const double usage : {0.0, 0.3, 0.594}) {
    const PressureDecision decision = evaluate({usage, usage, usage, usage});
    EXPECT_EQ(decision, PressureDecision{}) << usage;
    EXPECT_TRUE(decision.accept_connection);
    EXPECT_TRUE(decision.accept_stream);
    EXPECT_EQ(decision.connection_shed_probability, 0.0);
  }
}

TEST(Pressure, ElevatedGradualShedding) {
  PressureDecision decision = evaluate({.tcp_write_slab_usage = 0.595});
  EXPECT_EQ(decision.level, PressureLevel::kElevated);
  EXPECT_TRUE(decision.accept_connection);
  EXPECT_TRUE(decision.accept_stream);
  EXPECT_EQ(decision.connection_shed_probability, 0.0);
  decision = evaluate({.tcp_write_slab_usage = 0.7225});
  EXPECT_NEAR(decision.connection_shed_probability, 0.15, 1e-12);
  decision = evaluate({.tcp_write_slab_usage = 0.8499999});
  EXPECT_EQ(decision.level, PressureLevel::kElevated);
  EXPECT_NEAR(decision.connection_shed_probability, 0.3, 1e-6);
  EXPECT_LT(decision.connection_shed_probability, 0.3);
}

TEST(Pressure, HighRejectsConnections) {
  for (const double usage : {0.85, 0.9, 0.9499}) {
    const PressureDecision decision = evaluate({.tcp_write_slab_usage = usage});
    EXPECT_EQ(decision.level, PressureLevel::kHigh) << usage;
    EXPECT_FALSE(decision.accept_connection);
    EXPECT_EQ(decision.connection_shed_probability, 1.0);
    EXPECT_FALSE(decision.drop_oldest_backpressure);
    EXPECT_TRUE(decision.accept_stream);  // arenas are free
  }
}

TEST(Pressure, CriticalDropsQueued) {
  for (const double usage : {0.95, 1.0}) {
    const PressureDecision decision = evaluate({.tcp_write_slab_usage = usage});
    EXPECT_EQ(decision.level, PressureLevel::kCritical) << usage;
    EXPECT_FALSE(decision.accept_connection);
    EXPECT_EQ(decision.connection_shed_probability, 1.0);
    EXPECT_TRUE(decision.drop_oldest_backpressure);
    EXPECT_FALSE(decision.drop_oldest_pending_stream);
  }
}

TEST(Pressure, ArenaPressureBlocksStreams) {
  PressureDecision decision = evaluate({.arena_slab_usage = 0.849});
  EXPECT_TRUE(decision.accept_stream);
  EXPECT_FALSE(decision.use_pending_queue);
  decision = evaluate({.arena_slab_usage = 0.85, .pending_stream_usage = 0.85});
  EXPECT_FALSE(decision.accept_stream);
  EXPECT_FALSE(decision.use_pending_queue);
  decision = evaluate({.arena_slab_usage = 0.95});
  EXPECT_FALSE(decision.accept_stream);
  EXPECT_FALSE(decision.use_pending_queue);  // at critical there is no queue either
}

TEST(Pressure, PendingQueueUsedWhenAvailable) {
  const PressureDecision decision =
      evaluate({.arena_slab_usage = 0.90, .pending_stream_usage = 0.84});
  EXPECT_FALSE(decision.accept_stream);
  EXPECT_TRUE(decision.use_pending_queue);
}

TEST(Pressure, TimeoutTriggersDrop) {
  PressureDecision decision =
      evaluate({.oldest_backpressure_age = 30s, .oldest_pending_stream_age = 10s});
  EXPECT_FALSE(decision.drop_oldest_backpressure);
  EXPECT_FALSE(decision.drop_oldest_pending_stream);
  decision =
      evaluate({.oldest_backpressure_age = 30s + 1ns, .oldest_pending_stream_age = 10s + 1ns});
  EXPECT_EQ(decision.level, PressureLevel::kNormal);
  EXPECT_TRUE(decision.drop_oldest_backpressure);
  EXPECT_TRUE(decision.drop_oldest_pending_stream);
}

TEST(Pressure, MultipleResourcesMaxWins) {
  constexpr std::array kSources = {PressureSource::kWriteSlab, PressureSource::kArenas,
                                   PressureSource::kPendingStreams, PressureSource::kHandles};
  for (std::size_t i = 0; i < kUsages.size(); ++i) {
    PressureState state{0.2, 0.3, 0.1, 0.4};
    state.*kUsages[i] = 0.9;
    const PressureDecision decision = evaluate(state);
    EXPECT_EQ(decision.level, PressureLevel::kHigh) << i;
    EXPECT_EQ(decision.source, kSources[i]);
  }
  EXPECT_EQ(evaluate({0.7, 0.96, 0.9, 0.8}).level, PressureLevel::kCritical);
}

TEST(Pressure, ConfigDefaults) {
  const PressureConfig config;
  EXPECT_TRUE(config.validate().empty());
  EXPECT_EQ(config.high_watermark, 0.85);
  EXPECT_EQ(config.critical_watermark, 0.95);
  EXPECT_DOUBLE_EQ(config.elevated_watermark(), 0.595);
  EXPECT_EQ(config.backpressure_list_max, 1000U);
  EXPECT_EQ(config.backpressure_timeout, 30s);
  EXPECT_EQ(config.pending_stream_pool_size, 64U);
  EXPECT_EQ(config.pending_stream_timeout, 10s);
}

TEST(Pressure, ConfigValidation) {
  const auto keys = [](PressureConfig config) {
    std::vector<std::string> out;
    for (const ConfigError& error : config.validate()) out.push_back(error.key);
    return out;
  };
  using Keys = std::vector<std::string>;
  for (const double bad : {0.0, -0.5, 1.0, 1.5, kNaN, kInfinity}) {
    const Keys found = keys({.high_watermark = bad});
    ASSERT_FALSE(found.empty()) << bad;
    EXPECT_EQ(found.front(), "high_watermark") << bad;
  }
  for (const double bad : {0.0, -0.5, 1.01, kNaN, kInfinity}) {
    const Keys found = keys({.critical_watermark = bad});
    ASSERT_FALSE(found.empty()) << bad;
    EXPECT_EQ(found.front(), "critical_watermark") << bad;
  }
  EXPECT_EQ(keys({.high_watermark = 1.0, .critical_watermark = 1.0}), Keys{});
  EXPECT_EQ(keys({.backpressure_list_max = 0}), Keys{"backpressure_list_max"});
  EXPECT_EQ(keys({.backpressure_list_max = 1'000'001}), Keys{"backpressure_list_max"});
  EXPECT_EQ(keys({.pending_stream_pool_size = 0}), Keys{});
  EXPECT_EQ(keys({.pending_stream_pool_size = std::numeric_limits<std::uint32_t>::max()}),
            Keys{"pending_stream_pool_size"});
  for (const Duration bad : {Duration(0), Duration(-1s), Duration(24h + 1ns), Duration::max()}) {
    EXPECT_EQ(keys({.backpressure_timeout = bad}), Keys{"backpressure_timeout_ms"});
    EXPECT_EQ(keys({.pending_stream_timeout = bad}), Keys{"pending_stream_timeout_ms"});
  }
  const ConfigErrors errors = PressureConfig{.critical_watermark = 0.8}.validate();
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].key, "high_watermark");
  EXPECT_EQ(errors[0].value, "0.85");
  EXPECT_EQ(errors[0].allowed, "0.01 to 0.8");
}

// One random state; sometimes with a usage that no server should report.
PressureState random_state(Rng& rng) {
  constexpr std::array kOdd = {kNaN, kInfinity, -kInfinity, -0.5, 1.5, 0.0, 1.0, 0.595, 0.85, 0.95};
  PressureState state;
  for (double PressureState::*usage : kUsages) {
    state.*usage = rng.chance(0.1) ? kOdd[rng.below(kOdd.size())] : rng.unit();
  }
  state.active_connections = static_cast<std::uint32_t>(rng.next_u64() >> rng.between(32, 63));
  state.idle_connections = rng.chance(0.5) ? 0 : static_cast<std::uint32_t>(rng.below(10'000));
  state.backpressure_queue_len = static_cast<std::uint32_t>(rng.below(1001));
  state.pending_stream_count = static_cast<std::uint32_t>(rng.below(65));
  state.oldest_backpressure_age = rng.between(Duration(0), Duration(60s));
  state.oldest_pending_stream_age = rng.between(Duration(-1s), Duration(20s));
  return state;
}

PressureConfig random_config(Rng& rng) {
  PressureConfig config;
  if (rng.chance(0.5)) {
    config.high_watermark = 0.01 + rng.unit() * 0.97;
    config.critical_watermark =
        std::nextafter(config.high_watermark + rng.unit() * (1 - config.high_watermark), 2.0);
  }
  return config;
}

TEST(Pressure, ShedProbabilityInRange) {
  Rng rng(111);
  for (int i = 0; i < 100'000; ++i) {
    const PressureDecision decision = evaluate_pressure(random_state(rng), random_config(rng));
    ASSERT_GE(decision.connection_shed_probability, 0.0);
    ASSERT_LE(decision.connection_shed_probability, 1.0);
    ASSERT_EQ(decision.accept_connection, decision.connection_shed_probability < 1.0);
  }
}

TEST(Pressure, IsTotalEvenForNonsenseConfigurations) {
  Rng rng(112);
  constexpr std::array kOdd = {kNaN, kInfinity, -kInfinity, -0.5, 0.0, 1e-300, 1.0, 2.0};
  for (int i = 0; i < 100'000; ++i) {
    PressureConfig config;
    config.high_watermark = rng.chance(0.7) ? kOdd[rng.below(kOdd.size())] : rng.unit();
    config.critical_watermark = rng.chance(0.7) ? kOdd[rng.below(kOdd.size())] : rng.unit();
    const PressureState state = random_state(rng);
    const PressureDecision decision = evaluate_pressure(state, config);
    ASSERT_LE(decision.level, PressureLevel::kCritical);
    ASSERT_GE(decision.connection_shed_probability, 0.0);
    ASSERT_LE(decision.connection_shed_probability, 1.0);
    ASSERT_LE(decision.connections_to_timeout, state.active_connections);
    ASSERT_FALSE(decision.accept_stream && decision.use_pending_queue);
  }
}

TEST(Pressure, IsMonotoneInEveryUsage) {
  Rng rng(113);
  for (int i = 0; i < 100'000; ++i) {
    const PressureConfig config = random_config(rng);
    PressureState lower = random_state(rng);
    for (double PressureState::*usage : kUsages) {
      PressureState higher = lower;
      if (!(lower.*usage < 1)) continue;  // already full, or unknown and treated as full
      higher.*usage = rng.chance(0.05) ? kNaN : std::max(0.0, lower.*usage) + rng.unit();
      const PressureDecision a = evaluate_pressure(lower, config);
      const PressureDecision b = evaluate_pressure(higher, config);
      ASSERT_LE(a.level, b.level);
      ASSERT_LE(a.connection_shed_probability, b.connection_shed_probability);
      ASSERT_GE(a.accept_connection, b.accept_connection);
      ASSERT_GE(a.accept_stream, b.accept_stream);
      ASSERT_LE(a.drop_oldest_backpressure, b.drop_oldest_backpressure);
      ASSERT_LE(a.connections_to_timeout, b.connections_to_timeout);
    }
  }
}

TEST(Pressure, UnknownUsageCountsAsFullAndOthersAreClamped) {
  for (double PressureState::*usage : kUsages) {
    PressureState state;
    state.*usage = kNaN;
    EXPECT_EQ(evaluate(state).level, PressureLevel::kCritical);
    state.*usage = 17.0;
    EXPECT_EQ(evaluate(state).level, PressureLevel::kCritical);
    state.*usage = -3.0;
    EXPECT_EQ(evaluate(state).level, PressureLevel::kNormal);
  }
}

TEST(Pressure, ConnectionUsageAloneNeverBlocksWhileAnIdleConnectionExists) {
  PressureState state{.handle_slab_usage = 1.0, .active_connections = 100, .idle_connections = 1};
  PressureDecision decision = evaluate(state);
  EXPECT_EQ(decision.level, PressureLevel::kCritical);
  EXPECT_TRUE(decision.accept_connection);
  EXPECT_EQ(decision.connection_shed_probability, 0.0);
  EXPECT_GE(decision.connections_to_timeout, 1U);  // to make room
  state.tcp_write_slab_usage = 0.9;
  EXPECT_FALSE(evaluate(state).accept_connection);
  state.tcp_write_slab_usage = 0;
  state.idle_connections = 0;
  EXPECT_FALSE(evaluate(state).accept_connection);
}

TEST(Pressure, CriticalTimesOutEnoughToComeBelowTheHighWatermark) {
  PressureState state{.handle_slab_usage = 0.95, .active_connections = 95};
  EXPECT_EQ(evaluate(state).connections_to_timeout, 11U);  // 84 of 100 stay
  state = {.handle_slab_usage = 1.0, .active_connections = 1000};
  EXPECT_EQ(evaluate(state).connections_to_timeout, 151U);  // 849 of 1000
}

TEST(Pressure, RoundingOfTheUsageDoesNotMiscountClosures) {
  // 1938 / (1938 / 2018) is slightly above 2018 in floating point.
  const PressureState state{.handle_slab_usage = 1938.0 / 2018.0, .active_connections = 1938};
  EXPECT_EQ(evaluate_pressure(state, {.high_watermark = 0.5}).connections_to_timeout,
            1938U - 1008U);
}

TEST(Pressure, CriticalTimesOutAtLeastOneWhateverPoolIsFull) {
  PressureState state{.arena_slab_usage = 0.99, .handle_slab_usage = 0.1, .active_connections = 10};
  EXPECT_EQ(evaluate(state).connections_to_timeout, 1U);
  state.active_connections = 0;
  EXPECT_EQ(evaluate(state).connections_to_timeout, 0U);  // no connections
}

TEST(Pressure, FromElevatedOnIdleConnectionsAreClosedDownToTheElevatedLine) {
  PressureState state{.handle_slab_usage = 0.70, .active_connections = 700};
  EXPECT_EQ(evaluate(state).connections_to_timeout, 0U);  // none is idle
  state.idle_connections = 50;
  EXPECT_EQ(evaluate(state).connections_to_timeout, 50U);
  state.idle_connections = 600;
  EXPECT_EQ(evaluate(state).connections_to_timeout, 106U);  // 594 of 1000 stay
  state.handle_slab_usage = 0.594;
  state.active_connections = 594;
  EXPECT_EQ(evaluate(state).connections_to_timeout, 0U);
  state.tcp_write_slab_usage = 0.9;  // high, but not because of connections
  EXPECT_EQ(evaluate(state).connections_to_timeout, 0U);
}

TEST(Pressure, ClosuresAreTheFewestThatReachTheLine) {
  Rng rng(114);
  const PressureConfig config;
  for (int i = 0; i < 100'000; ++i) {
    const auto capacity = static_cast<std::uint32_t>(rng.between(1, 1'000'000));
    const auto active = static_cast<std::uint32_t>(rng.between(0, capacity));
    const PressureState state{.handle_slab_usage = static_cast<double>(active) / capacity,
                              .active_connections = active};
    const PressureDecision decision = evaluate_pressure(state, config);
    if (decision.level != PressureLevel::kCritical) continue;
    const std::uint32_t closed = decision.connections_to_timeout;
    ASSERT_GE(closed, 1U);
    const auto below = [&](std::uint32_t count) {
      return static_cast<double>(count) < config.high_watermark * capacity;
    };
    ASSERT_TRUE(below(active - closed) || closed == active) << active << " of " << capacity;
    ASSERT_FALSE(below(active - closed + 1)) << active << " of " << capacity;
  }
}

TEST(Pressure, NamesAreStable) {
  EXPECT_EQ(name_of(PressureLevel::kNormal), "normal");
  EXPECT_EQ(name_of(PressureLevel::kElevated), "elevated");
  EXPECT_EQ(name_of(PressureLevel::kHigh), "high");
  EXPECT_EQ(name_of(PressureLevel::kCritical), "critical");
  EXPECT_EQ(name_of(PressureSource::kNone), "none");
  EXPECT_EQ(name_of(PressureSource::kWriteSlab), "write_slab");
  EXPECT_EQ(name_of(PressureSource::kHandles), "handles");
}

TEST(Pressure, AtCriticalOnlyThoseThatStoodStillAreDropped) {
  const PressureConfig config{.stall_grace = std::chrono::seconds(1)};
  PressureState state{.tcp_write_slab_usage = 1.0};
  state.oldest_backpressure_age = std::chrono::milliseconds(999);
  EXPECT_FALSE(evaluate_pressure(state, config).drop_oldest_backpressure);
  EXPECT_EQ(evaluate_pressure(state, config).stalled_at_least, std::chrono::seconds(1));
  state.oldest_backpressure_age = std::chrono::seconds(1);
  EXPECT_TRUE(evaluate_pressure(state, config).drop_oldest_backpressure);
  state.tcp_write_slab_usage = 0.9;
  EXPECT_FALSE(evaluate_pressure(state, config).drop_oldest_backpressure);
  EXPECT_EQ(evaluate_pressure(state, config).stalled_at_least, Duration::max());
}

TEST(Pressure, AListBeyondItsBoundDropsItsOldest) {
  const PressureConfig config{.backpressure_list_max = 3};
  PressureState state;
  state.backpressure_queue_len = 3;
  EXPECT_FALSE(evaluate_pressure(state, config).drop_oldest_backpressure);
  state.backpressure_queue_len = 4;
  EXPECT_TRUE(evaluate_pressure(state, config).drop_oldest_backpressure);
}

TEST(Pressure, AnIdleConnectionIsSparedLongerWhileThereIsRoom) {
  for (const auto& [usage, least] : {std::pair{0.1, std::chrono::milliseconds(50)},
                                     std::pair{0.7, std::chrono::milliseconds(1000)},
                                     std::pair{0.9, std::chrono::milliseconds(50)},
                                     std::pair{1.0, std::chrono::milliseconds(50)}}) {
    const PressureState state{.handle_slab_usage = usage};
    EXPECT_EQ(evaluate_pressure(state, {}).idle_at_least, least) << usage;
  }
}

}  // namespace
}  // namespace weir::inline v0::inline policy
