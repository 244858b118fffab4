// Reloads without a socket: what each consumer of live options holds after a reload is compared
// with what a fresh start gives it.
#include "live_options.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/base/rng.h"
#include "weir/experimental/io/resolve.h"

#include "config/option_table.h"

namespace weir::inline v0::gateway {
namespace {

using ::testing::HasSubstr;

constexpr TimePoint kStart = time_from_ns(1'000'000'000);

/// Two upstreams, the first with its own limits, TLS, one route; small pools.
config::Config base_config() {
  config::Config config;
  config.server.streams_max = 64;
  config.server.reserved_streams = 1;
  config.server.tls.certificate = "chain.pem";
  config.server.tls.private_key = "key.pem";
  config.server.tls.client_ca = "ca.pem";
  for (const char* name : {"app", "other"}) {
    upstream::UpstreamConfig upstream;
    upstream.name = name;
    upstream.endpoints = {*upstream::parse_source("127.0.0.1:1")};
    upstream.max_connections = 8;
    upstream.tls_enabled = true;
    upstream.tls.certificate = "own.pem";
    upstream.tls.private_key = "own.pem";
    config.upstreams.push_back(upstream);
  }
  config.upstreams[0].limit.min_limit = 3;
  config.upstreams[0].limit.initial_limit = 40;
  RouteConfig route;
  route.upstream = "app";
  config.routes = {route};
  EXPECT_EQ(config.validate(), ConfigErrors{});
  return config;
}

/// The values that the consumers of live options hold.
struct Held {
  AdmissionConfig admission;
  std::vector<std::optional<LimitConfig>> limits;
  std::vector<std::uint32_t> limit_bounds;  // and, where it is fixed, the limit itself
  std::vector<upstream::UpstreamTimeouts> timeouts;
  std::vector<std::uint32_t> retries;  // deposit and cap of each upstream
  std::vector<std::vector<upstream::SourceSpec>> sources;
  std::vector<io::TlsClientConfig> dial_tls;
  Rules rules;
  io::TlsConfig tls;
  AdminConfig admin;

  bool operator==(const Held&) const = default;
};

/// A gateway's core and its live options, without loops and sockets.
class Running {
 public:
  explicit Running(const config::Config& config)
      : core_(config, 1, Rng(1), GatewayCore::Parts{}),
        live_(core_,
              {.set_tls = [this](const io::TlsConfig& tls) { return set_tls(tls); },
               .read_dial_tls = [this](const config::Config& next) { return read_dial_tls(next); },
               .set_rules = [this](const auto& rules) { rules_ = rules; },
               .set_endpoints = [this](const config::Config& next) { set_sources(next); }}),
        rules_(std::make_shared<const Rules>(config, core_.names)),
        tls_(config.server.tls) {
    set_sources(config);
    (*read_dial_tls(config))();
  }

  Result<std::vector<RotatedCertificate>, ConfigError> set_tls(const io::TlsConfig& tls) {
    if (refuse_tls) return unexpected(ConfigError{.key = "tls.certificate"});
    tls_ = tls;
    return std::vector<RotatedCertificate>{};
  }
  Result<std::function<void()>, std::string> read_dial_tls(const config::Config& next) {
    if (refuse_dial_tls) return unexpected(std::string("upstream app: ca.pem: no such file"));
    return std::function<void()>([this, next] {
      dial_tls_.clear();
      for (const upstream::UpstreamConfig& one : next.upstreams) dial_tls_.push_back(one.tls);
    });
  }
  void set_sources(const config::Config& next) {
    sources_.clear();
    for (const upstream::UpstreamConfig& one : next.upstreams) sources_.push_back(one.endpoints);
  }
  ReloadReport reload(const config::Config& next) { return live_.reload(next); }
  GatewayCore& core() { return core_; }
  ScopeStats scope(std::size_t i) {
    return core_.controller.scope_stats(core_.scope_of(i), kStart);
  }
  Held held() {
    Held out{.admission = core_.controller.config(),
             .limits = {},
             .limit_bounds = {},
             .timeouts = {},
             .retries = {},
             .sources = sources_,
             .dial_tls = dial_tls_,
             .rules = *rules_,
             .tls = tls_,
             .admin = core_.config_in_force().admin};
    out.admission.actor_table_size = 0;  // sized at start, with room for the waiters allowed then
    for (std::size_t i = 0; i < core_.names.size(); ++i) {
      const auto limit = core_.controller.limit_config(core_.scope_of(i));
      const ScopeStats stats = scope(i);
      out.limits.push_back(limit);
      out.limit_bounds.push_back(stats.limit_min);
      out.limit_bounds.push_back(stats.limit_max);
      if (limit && limit->policy == LimitKind::kFixed) out.limit_bounds.push_back(stats.limit);
      out.timeouts.push_back(core_.upstreams[i]->timeouts());
      out.retries.push_back(core_.upstreams[i]->budget().rules().deposit_millitokens);
      out.retries.push_back(core_.upstreams[i]->budget().rules().cap_millitokens);
    }
    return out;
  }

  bool refuse_tls = false;
  bool refuse_dial_tls = false;

 private:
  GatewayCore core_;
  LiveOptions live_;
  std::shared_ptr<const Rules> rules_;
  io::TlsConfig tls_;
  std::vector<std::vector<upstream::SourceSpec>> sources_;
  std::vector<io::TlsClientConfig> dial_tls_;
};

// ---- other values for any row of the table

std::string text_for(const config::OptionRow& row, Rng& rng) {
  const std::string number = std::to_string(rng.below(9));
  if (row.name == "path" || row.name == "path_prefix") return "/p" + number;
  if (row.name == "upstream") return rng.chance(0.5) ? "app" : "other";
  if (row.name == "hash_by") return rng.chance(0.5) ? "actor" : "header:x-" + number;
  if (row.name == "host") return "h" + number + ".example";
  return "x-" + number;
}

template <class Owner>
config::RawValue value_for(const config::Option<Owner>& option, Rng& rng) {
  const config::OptionRow& row = option.row;
  const config::Words words = option.choices(Owner{});
  const auto word = [&] { return std::string(words[rng.below(words.size())]); };
  switch (row.kind) {
    case config::OptionKind::kFlag:
      return {rng.chance(0.5)};
    case config::OptionKind::kCount:
    case config::OptionKind::kSize:
    case config::OptionKind::kTime: {
      const double high = std::min(row.high, row.low + (rng.chance(0.5) ? 2000 : 100000));
      return {rng.between(static_cast<std::int64_t>(row.low), static_cast<std::int64_t>(high))};
    }
    case config::OptionKind::kRatio:
      return {row.low + rng.unit() * std::min(10.0, row.high - row.low)};
    case config::OptionKind::kText:
      return {text_for(row, rng)};
    case config::OptionKind::kTexts:
      return {config::RawValue::List{{text_for(row, rng)}}};
    case config::OptionKind::kChoice:
      return {word()};
    case config::OptionKind::kChoices:
      return {config::RawValue::List{{word()}}};
    case config::OptionKind::kAddress:
    case config::OptionKind::kAddresses:
      return {"127.0.0.1:" + std::to_string(1 + rng.below(1000))};
    case config::OptionKind::kSources:
      return {config::RawValue::List{
          {"127.0.0.1:" + std::to_string(1 + rng.below(1000)) + " drain=true"}}};
    case config::OptionKind::kRanges:
      return {config::RawValue::List{{"10." + std::to_string(rng.below(9)) + ".0.0/16"}}};
  }
  return {};
}

/// `config` with another valid value of one option of `owner_of(config)`; unchanged without one.
template <class Owner, class OwnerOf>
config::Config with_other_value(const config::Config& config, const config::Option<Owner>& option,
                                OwnerOf owner_of, Rng& rng) {
  for (int draw = 0; draw < 50; ++draw) {
    config::Config next = config;
    Owner& owner = owner_of(next);
    if (rng.chance(0.2)) {
      option.copy(owner, owner_of(static_cast<const config::Config&>(base_config())));
    } else if (option.assign(owner, value_for(option, rng), option.row)) {
      ADD_FAILURE() << option.row.key() << ": the test drew a value that is not allowed";
    }
    const bool other =
        option.print(owner, option.row) != option.print(owner_of(config), option.row);
    if (other && next.validate().empty()) return next;
  }
  return config;
}

/// Calls f(option, owner_of) for every row that a reload may change.
template <class F>
void for_each_live_row(F f) {
  const auto all = [&](auto options, auto owner_of) {
    for (const auto& option : options) {
      if (is_live(option.row.apply)) f(option, owner_of);
    }
  };
  all(
      config::config_options(), [](auto& config) -> auto& { return config; });
  all(
      config::upstream_options(), [](auto& config) -> auto& { return config.upstreams[0]; });
  all(
      config::upstream_options(), [](auto& config) -> auto& { return config.upstreams[1]; });
  all(
      config::route_options(), [](auto& config) -> auto& { return config.routes[0]; });
}

// ---- tests

TEST(LiveOptions, EveryLiveRowIsPutInForceByTheFunctionThatItNames) {
  Rng rng(1);
  const config::Config before = base_config();
  const Held old_state = Running(before).held();
  for_each_live_row([&](const auto& option, auto owner_of) {
    SCOPED_TRACE(option.row.key());
    bool consumed = false;  // what the consumers hold depends on it
    for (int draw = 0; draw < 20 && !consumed; ++draw) {
      const config::Config next = with_other_value(before, option, owner_of, rng);
      if (next == before) continue;
      Running running(before);
      const ReloadReport report = running.reload(next);
      if (!report.ok()) continue;  // it needs larger tables, which are allocated at start
      ASSERT_EQ(report.applied.size(), 1U);
      EXPECT_TRUE(report.deferred.empty());
      EXPECT_EQ(running.held(), Running(next).held()) << report.applied[0].after;
      EXPECT_EQ(running.core().config_in_force(), next);
      consumed = !(running.held() == old_state);
    }
    EXPECT_TRUE(consumed) << "no consumer noticed any change";
  });
}

TEST(LiveOptions, AnySequenceOfReloadsEndsWhereAFreshStartBegins) {
  Rng rng(7);
  for (int sequence = 0; sequence < 40; ++sequence) {
    Running running(base_config());
    config::Config in_force = base_config();
    for (int reloads = 0; reloads < 6; ++reloads) {
      config::Config next = in_force;
      if (rng.chance(0.3)) next.routes.resize(1 + rng.below(3), base_config().routes[0]);
      for_each_live_row([&](const auto& option, auto owner_of) {
        if (rng.chance(0.15)) next = with_other_value(next, option, owner_of, rng);
      });
      ASSERT_TRUE(next.validate().empty());
      running.refuse_tls = rng.chance(0.1);
      if (running.reload(next).ok()) in_force = next;
    }
    ASSERT_EQ(running.core().config_in_force(), in_force);
    EXPECT_EQ(running.held(), Running(in_force).held()) << "sequence " << sequence;
  }
}

TEST(LiveOptions, AChangedCommonLimitLeavesWhatTheFirstUpstreamOverrides) {
  const config::Config before = base_config();
  Running running(before);
  EXPECT_EQ(running.scope(0).limit, 40U);
  config::Config next = before;
  next.admission.limit.initial_limit = 50;
  next.admission.limit.max_limit = 200;
  next.admission.limit.min_limit = 10;
  ASSERT_TRUE(running.reload(next).ok());
  EXPECT_EQ(running.scope(0).limit, 40U);
  EXPECT_EQ(running.scope(0).limit_min, 3U);
  EXPECT_EQ(running.scope(0).limit_max, 200U);
  EXPECT_EQ(running.scope(1).limit_min, 10U);
}

TEST(LiveOptions, TheMinimumShownIsThatOfTheUpstream) {
  config::Config config = base_config();
  config.upstreams[1].limit.min_limit = 5;
  Running running(config);
  EXPECT_EQ(running.scope(0).limit_min, 3U);
  EXPECT_EQ(running.scope(1).limit_min, 5U);
  config::Config next = config;
  next.upstreams[0].limit.policy = LimitKind::kAimd;
  next.upstreams[0].limit.min_limit = 4;
  next.upstreams[1].limit.policy = LimitKind::kVegas;
  next.upstreams[1].limit.min_limit = 6;
  ASSERT_TRUE(running.reload(next).ok());
  EXPECT_EQ(running.scope(0).limit_min, 4U);
  EXPECT_EQ(running.scope(1).limit_min, 6U);
}

/// One window in which the service reported overload to everybody.
void overload(AdmissionController& controller, ScopeId scope, int second) {
  const TimePoint at = kStart + std::chrono::seconds(second);
  controller.expire(at);
  AdmissionRequest request;
  request.scope = scope;
  for (int i = 0; i < 30; ++i) {
    auto permit = controller.try_admit(request, at);
    ASSERT_TRUE(permit.has_value());
    std::move(*permit).finish(Outcome::kOverload, at + std::chrono::milliseconds(10));
  }
  controller.expire(at + std::chrono::seconds(1));
}

TEST(LiveOptions, AChangedPolicyGoesOnFromTheLimitInForce) {
  for (const std::size_t upstream : {0U, 1U}) {
    config::Config config = base_config();
    config.admission.limit.policy = LimitKind::kAimd;
    Running running(config);
    for (int second = 0; second < 6; ++second) {
      overload(running.core().controller, running.core().scope_of(upstream), second);
    }
    const std::uint32_t learned = running.scope(upstream).limit;
    ASSERT_LT(learned, config.limit_of(config.upstreams[upstream]).initial_limit);
    for (const LimitKind kind : {LimitKind::kVegas, LimitKind::kGradient2, LimitKind::kAuto}) {
      config::Config next = config;
      next.upstreams[upstream].limit.policy = kind;
      ASSERT_TRUE(running.reload(next).ok());
      EXPECT_EQ(running.scope(upstream).limit, learned) << name_of(kind);
    }
    config::Config common = config;
    common.admission.limit.policy = LimitKind::kVegas;
    common.admission.limit.window_duration = std::chrono::milliseconds(500);
    ASSERT_TRUE(running.reload(common).ok());
    EXPECT_EQ(running.scope(upstream).limit, learned);
  }
}

TEST(LiveOptions, ARefusedReloadChangesNothing) {
  Running running(base_config());
  const Held before = running.held();
  config::Config next = base_config();
  next.admission.max_concurrent = 77;
  next.admission.limit.max_limit = 300;
  running.refuse_tls = true;
  const ReloadReport report = running.reload(next);
  EXPECT_THAT(report.refused, HasSubstr("tls.certificate"));
  EXPECT_TRUE(report.applied.empty());
  EXPECT_EQ(running.held(), before);
  EXPECT_EQ(running.core().config_in_force(), base_config());
}

TEST(LiveOptions, MoreRequestsThanTheBuffersLaidOutAtStartNeedARestart) {
  config::Config config = base_config();
  config.server.streams_max = 4096;
  config.server.max_connections = 64;
  config.server.tcp_write_buffer_pool_size = 128;
  config.admission.max_concurrent = 64;
  config.admission.waiting_max = 16;
  ASSERT_EQ(config.validate(), ConfigErrors{});
  Running running(config);
  config::Config next = config;
  next.admission.max_concurrent = 512;
  EXPECT_TRUE(running.reload(next).ok()) << "there is room for a small value that grows";
  next.admission.max_concurrent = 2048;
  EXPECT_THAT(running.reload(next).refused, HasSubstr("admission.max_concurrent = 2048"));
  next.admission.max_concurrent = 32;
  EXPECT_TRUE(running.reload(next).ok());
}

}  // namespace
}  // namespace weir::inline v0::gateway
