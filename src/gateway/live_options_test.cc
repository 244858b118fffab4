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
  config.reload.connections_spare = 1000000;
  config.reload.tls_connections_spare = 1000000;
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
  std::vector<policy::HedgeConfig> hedge;
  std::vector<std::string> names;
  std::vector<upstream::UpstreamConfig> fixed;  // what is fixed while an upstream exists
  std::vector<std::vector<upstream::SourceSpec>> sources;
  std::vector<io::TlsClientConfig> dial_tls;
  Rules rules;
  io::TlsConfig tls;
  AdminConfig admin;

  bool operator==(const Held&) const = default;
};

/// An upstream's configuration without what may change while it exists.
upstream::UpstreamConfig fixed_part(const upstream::UpstreamConfig& config) {
  upstream::UpstreamConfig out;
  for (const auto& option : config::upstream_options()) {
    if (option.row.apply == config::OptionApply::kReplace) option.copy(out, config);
  }
  return out;
}

/// A gateway's core and its live options, without loops and sockets.
class Running {
 public:
  explicit Running(const config::Config& config)
      : core_(config, 1, Rng(1), GatewayCore::Parts{}),
        table_{.upstreams = core_.upstreams.in_force(),
               .rules = std::make_shared<const Rules>(config, core_.upstreams.in_force()->names(),
                                                      *read_identity_files(config.actors))},
        live_(core_,
              {.set_tls = [this](const io::TlsConfig& tls) { return set_tls(tls); },
               .read_dial_tls = [this](const config::Config& next) { return read_dial_tls(next); },
               .find_endpoints =
                   [this](const UpstreamSet& upstreams, const config::Config& next) {
                     add_sources(upstreams, next, Known::kStay);
                     return endpoints_objection;
                   },
               .keep_endpoints = [this](const UpstreamSet& upstreams) { keep(upstreams); },
               .set_endpoints =
                   [this](const UpstreamSet& upstreams, const config::Config& next) {
                     add_sources(upstreams, next, Known::kChange);
                   },
               .take = [this](const GatewayLoop::Table& table) { table_ = table; },
               .wait_briefly = [this](const auto& reached) { waited = !reached(); }},
              table_.rules),
        tls_(config.server.tls) {
    add_sources(*table_.upstreams, config, Known::kStay);
    static_cast<void>(read_dial_tls(config));
    dial_tls_ = read_;
  }

  ReloadReport reload(const config::Config& next) {
    ReloadReport report = live_.reload(next);
    if (report.ok()) dial_tls_ = read_;
    return report;
  }
  void change(const std::function<void(OverrideTable&)>& work) {
    EXPECT_TRUE(live_.change_overrides(work, kStart));
  }
  void put(const Override& one) {
    change([&](OverrideTable& table) { EXPECT_NE(table.put(one), nullptr); });
  }
  void remove_all() {
    change([](OverrideTable& table) {
      const std::vector<Override> all = table.all();
      for (const Override& one : all) static_cast<void>(table.remove(one.id()));
    });
  }
  [[nodiscard]] policy::EndpointState state(std::size_t i) const {
    return upstream(i)->upstream.endpoints()->members[0].endpoint->health().state();
  }
  GatewayCore& core() { return core_; }
  [[nodiscard]] std::shared_ptr<ServedUpstream> upstream(std::size_t i) const {
    return core_.upstreams.in_force()->all[i];
  }
  ScopeStats scope(std::size_t i) {
    return core_.controller.scope_stats(upstream(i)->scope(), kStart);
  }
  Held held() {
    EXPECT_EQ(table_.upstreams, core_.upstreams.in_force()) << "the loops use what is in force";
    Held out{.admission = core_.controller.config(),
             .limits = {},
             .limit_bounds = {},
             .timeouts = {},
             .retries = {},
             .hedge = {},
             .names = table_.upstreams->names(),
             .fixed = {},
             .sources = {},
             .dial_tls = dial_tls_,
             .rules = *table_.rules,
             .tls = tls_,
             .admin = core_.config_in_force().admin};
    out.admission.actor_table_size = 0;  // sized at start, with room for the waiters allowed then
    out.admission.scopes_max = 0;        // the same
    out.admission.limit = {};            // of whoever has the first scope: see `limits`
    for (std::size_t i = 0; i < table_.upstreams->all.size(); ++i) {
      const std::shared_ptr<ServedUpstream> one = upstream(i);
      const auto limit = core_.controller.limit_config(one->scope());
      const ScopeStats stats = scope(i);
      EXPECT_EQ(stats.name, one->name());
      out.limits.push_back(limit);
      out.limit_bounds.push_back(stats.limit_min);
      out.limit_bounds.push_back(stats.limit_max);
      if (limit && limit->policy == LimitKind::kFixed) out.limit_bounds.push_back(stats.limit);
      out.timeouts.push_back(one->upstream.timeouts());
      out.hedge.push_back(one->upstream.hedge());
      out.retries.push_back(one->upstream.budget().rules().deposit_millitokens);
      out.retries.push_back(one->upstream.budget().rules().cap_millitokens);
      out.fixed.push_back(fixed_part(one->upstream.config()));
      out.sources.push_back(sources_of(one.get()));
    }
    EXPECT_EQ(sources_.size(), table_.upstreams->all.size()) << "no source without its upstream";
    EXPECT_EQ(core_.controller.scope_count(), table_.upstreams->all.size());
    return out;
  }

  bool refuse_tls = false;
  bool refuse_dial_tls = false;
  bool waited = false;
  std::string endpoints_objection;

 private:
  enum class Known : std::uint8_t { kStay, kChange };
  struct Source {
    const ServedUpstream* upstream;
    std::vector<upstream::SourceSpec> specs;
  };
  Result<std::vector<RotatedCertificate>, ConfigError> set_tls(const io::TlsConfig& tls) {
    if (refuse_tls) return unexpected(ConfigError{.key = "tls.certificate"});
    tls_ = tls;
    return std::vector<RotatedCertificate>{};
  }
  Result<std::vector<io::TlsContext::Ptr>, std::string> read_dial_tls(const config::Config& next) {
    if (refuse_dial_tls) return unexpected(std::string("upstream app: ca.pem: no such file"));
    read_.clear();
    for (const upstream::UpstreamConfig& one : next.upstreams) read_.push_back(one.tls);
    return std::vector<io::TlsContext::Ptr>(next.upstreams.size());
  }
  void add_sources(const UpstreamSet& upstreams, const config::Config& next, Known known) {
    for (std::size_t i = 0; i < upstreams.all.size(); ++i) {
      const ServedUpstream* one = upstreams.all[i].get();
      const auto found = std::find_if(sources_.begin(), sources_.end(),
                                      [&](const Source& source) { return source.upstream == one; });
      if (found == sources_.end()) sources_.push_back({one, next.upstreams[i].endpoints});
      if (found != sources_.end() && known == Known::kChange) {
        found->specs = next.upstreams[i].endpoints;
      }
    }
  }
  void keep(const UpstreamSet& upstreams) {
    std::erase_if(sources_, [&](const Source& one) { return !upstreams.has(*one.upstream); });
  }
  [[nodiscard]] std::vector<upstream::SourceSpec> sources_of(const ServedUpstream* upstream) const {
    for (const Source& one : sources_) {
      if (one.upstream == upstream) return one.specs;
    }
    ADD_FAILURE() << "no source";
    return {};
  }

  GatewayCore core_;
  GatewayLoop::Table table_;
  LiveOptions live_;
  io::TlsConfig tls_;
  std::vector<Source> sources_;
  std::vector<io::TlsClientConfig> read_;
  std::vector<io::TlsClientConfig> dial_tls_;
};

// ---- other values for any row of the table

std::string text_for(const config::OptionRow& row, Rng& rng) {
  const std::string number = std::to_string(rng.below(9));
  if (row.name.starts_with("path")) return "/p" + number;
  if (row.name.ends_with("_add")) return "x-" + number + ": v";
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
      // Another name is another upstream, without TLS the other keys of [upstream.tls] are wrong,
      // and a route with an answer has no upstream: they have tests of their own.
      const std::string key = option.row.key();
      if (key == "upstream.name" || key == "upstream.tls.enabled") continue;
      if (key == "route.redirect" || key.starts_with("route.respond")) continue;
      if (key == "actors.keys_file" || key == "actors.jwt.keys") continue;  // need files
      if (key == "route.grpc") continue;  // its upstream needs another protocol than this one
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

/// Removes, adds, renames or reorders upstreams; routes lead only to those that are there.
void shuffle_upstreams(config::Config& config, Rng& rng) {
  auto& upstreams = config.upstreams;
  const auto pick = [&] { return static_cast<std::ptrdiff_t>(rng.below(upstreams.size())); };
  if (rng.chance(0.4)) {
    upstream::UpstreamConfig added = upstreams[static_cast<std::size_t>(pick())];
    added.name = "u" + std::to_string(rng.below(6));
    const auto same = [&](const auto& one) { return one.name == added.name; };
    if (std::none_of(upstreams.begin(), upstreams.end(), same)) {
      upstreams.insert(upstreams.begin() + pick(), added);
    }
  }
  // for_each_live_row() changes the first two.
  if (upstreams.size() > 2 && rng.chance(0.4)) upstreams.erase(upstreams.begin() + pick());
  if (rng.chance(0.2)) std::swap(upstreams.front(), upstreams.back());
  for (RouteConfig& route : config.routes) {
    const auto leads = [&](const auto& one) { return one.name == route.upstream; };
    if (rng.chance(0.3) || std::none_of(upstreams.begin(), upstreams.end(), leads)) {
      route.upstream = upstreams[static_cast<std::size_t>(pick())].name;
    }
  }
}

TEST(LiveOptions, AnySequenceOfReloadsEndsWhereAFreshStartBegins) {
  Rng rng(7);
  int came_and_went = 0;
  int refused = 0;
  for (int sequence = 0; sequence < 40; ++sequence) {
    Running running(base_config());
    config::Config in_force = base_config();
    for (int reloads = 0; reloads < 8; ++reloads) {
      config::Config next = in_force;
      if (rng.chance(0.3)) next.routes.resize(1 + rng.below(3), next.routes[0]);
      for_each_live_row([&](const auto& option, auto owner_of) {
        if (rng.chance(0.15)) next = with_other_value(next, option, owner_of, rng);
      });
      shuffle_upstreams(next, rng);
      if (!next.validate().empty()) continue;  // a route of a row above led to one that went
      running.refuse_tls = rng.chance(0.1);
      running.endpoints_objection = rng.chance(0.05) ? "endpoint is this gateway itself" : "";
      const ReloadReport report = running.reload(next);
      ASSERT_TRUE(report.deferred.empty());
      came_and_went += static_cast<int>(report.upstreams.size());
      refused += report.ok() ? 0 : 1;
      if (report.ok()) in_force = next;
      ASSERT_EQ(running.core().config_in_force(), in_force);
    }
    EXPECT_EQ(running.held(), Running(in_force).held()) << "sequence " << sequence;
  }
  EXPECT_GT(came_and_went, 100);
  EXPECT_GT(refused, 10);
  EXPECT_LT(refused, 250);
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
      overload(running.core().controller, running.upstream(upstream)->scope(), second);
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

// ---- upstreams that come, go and are replaced

upstream::UpstreamConfig small_upstream(const std::string& name, std::uint32_t connections = 8) {
  upstream::UpstreamConfig upstream = base_config().upstreams[1];
  upstream.name = name;
  upstream.max_connections = connections;
  return upstream;
}

/// Room for one more upstream with eight connections.
config::Config with_little_room() {
  config::Config config = base_config();
  config.reload = {.upstreams_spare = 1, .connections_spare = 8, .tls_connections_spare = 8};
  return config;
}

TEST(LiveOptions, AnUpstreamIsAddedUsedAndRemoved) {
  Running running(base_config());
  config::Config next = base_config();
  next.upstreams.push_back(small_upstream("new"));
  next.routes[0].upstream = "new";
  ReloadReport report = running.reload(next);
  ASSERT_TRUE(report.ok()) << report.refused;
  EXPECT_THAT(report.upstreams, ::testing::ElementsAre("upstream new: added, 1 endpoint"));
  EXPECT_EQ(running.held(), Running(next).held());
  next.upstreams.erase(next.upstreams.begin());
  report = running.reload(next);
  ASSERT_TRUE(report.ok()) << report.refused;
  EXPECT_THAT(report.upstreams, ::testing::ElementsAre("upstream app: removed; 0 requests finish"));
  EXPECT_EQ(running.held(), Running(next).held());
  EXPECT_TRUE(running.core().upstreams.leaving().empty());
}

TEST(LiveOptions, AReplacedUpstreamKeepsItsScopeAndItsLearnedLimit) {
  config::Config config = base_config();
  config.admission.limit.policy = LimitKind::kAimd;
  Running running(config);
  const ScopeId scope = running.upstream(0)->scope();
  for (int second = 0; second < 6; ++second) overload(running.core().controller, scope, second);
  const std::uint32_t learned = running.scope(0).limit;
  ASSERT_LT(learned, 40U);
  const std::shared_ptr<ServedUpstream> before = running.upstream(0);
  config::Config next = config;
  next.upstreams[0].protocol = upstream::Protocol::kHttp2;
  const ReloadReport report = running.reload(next);
  ASSERT_TRUE(report.ok()) << report.refused;
  EXPECT_THAT(report.upstreams,
              ::testing::ElementsAre(
                  "upstream app: replaced, 1 endpoint; 0 requests finish at the one before"));
  ASSERT_EQ(report.applied.size(), 1U);
  EXPECT_EQ(report.applied[0].key, "upstream.app.protocol");
  EXPECT_NE(running.upstream(0), before);
  EXPECT_EQ(running.upstream(0)->scope(), scope);
  EXPECT_EQ(running.scope(0).limit, learned);
}

TEST(LiveOptions, WhatDoesNotFitTheRoomLaidOutAtStartIsRefusedWithTheOption) {
  const auto refused = [](auto change) {
    Running running(with_little_room());
    const Held before = running.held();
    config::Config next = with_little_room();
    change(next);
    EXPECT_EQ(next.validate(), ConfigErrors{});
    const ReloadReport report = running.reload(next);
    EXPECT_EQ(running.held() == before, !report.ok());
    EXPECT_FALSE(running.waited) << "nobody is about to free room";
    return report.refused;
  };
  EXPECT_EQ(refused([](config::Config& c) { c.upstreams.push_back(small_upstream("new")); }), "");
  EXPECT_THAT(refused([](config::Config& c) {
                c.upstreams.push_back(small_upstream("new", 4));
                c.upstreams.push_back(small_upstream("newer", 4));
              }),
              HasSubstr("reload.upstreams_spare = 1: there is room for 3 upstreams, laid out at "
                        "start, and 4 are needed"));
  EXPECT_THAT(
      refused([](config::Config& c) { c.upstreams.push_back(small_upstream("new", 9)); }),
      HasSubstr("reload.connections_spare = 8: there is room for 24 connections (the sum of "
                "max_connections), laid out at start, and 25 are needed"));
  EXPECT_THAT(refused([](config::Config& c) {
                c.upstreams.push_back(small_upstream("new"));
                c.upstreams.back().response_head_bytes_max = 100000;
              }),
              HasSubstr("response_head_bytes_max = 100000: the largest that there is room for"));
}

TEST(LiveOptions, TlsIsSwitchedOnIfThereIsRoomForIt) {
  config::Config config = with_little_room();
  config.reload.tls_connections_spare = 0;
  for (upstream::UpstreamConfig& one : config.upstreams) {
    one.tls_enabled = false;
    one.tls = {};
  }
  config::Config next = config;
  next.upstreams[0].tls_enabled = true;
  {
    Running running(config);
    EXPECT_THAT(running.reload(next).refused,
                HasSubstr("reload.tls_connections_spare = 0: there is room for 0 connections with "
                          "TLS (the sum of max_connections), laid out at start, and 8 are needed"));
  }
  config.reload.tls_connections_spare = next.reload.tls_connections_spare = 8;
  Running running(config);
  EXPECT_TRUE(running.reload(next).ok());
  EXPECT_EQ(running.held(), Running(next).held());
  EXPECT_TRUE(running.reload(config).ok()) << "and off";
  EXPECT_EQ(running.held(), Running(config).held());
}

TEST(LiveOptions, AnUpstreamThatIsStillFinishingUsesItsRoom) {
  Running running(with_little_room());
  const std::shared_ptr<ServedUpstream> in_use = running.upstream(1);  // as a request does
  config::Config next = with_little_room();
  next.upstreams[1] = small_upstream("second");
  ASSERT_TRUE(running.reload(next).ok());
  ASSERT_EQ(running.core().upstreams.leaving().size(), 1U);
  EXPECT_EQ(running.core().upstreams.leaving()[0].name, "other");
  next.upstreams[1] = small_upstream("third");
  const ReloadReport report = running.reload(next);
  EXPECT_THAT(report.refused, HasSubstr("upstream other uses until its requests have finished"));
  EXPECT_TRUE(running.waited);
  EXPECT_EQ(running.core().controller.scope_count(), 3U);
}

TEST(LiveOptions, AnUpstreamThatComesBackWhileItFinishesHasTheSameScopeAndItsNewLimit) {
  Running running(base_config());
  const std::shared_ptr<ServedUpstream> in_use = running.upstream(1);
  config::Config next = base_config();
  next.upstreams.pop_back();
  ASSERT_TRUE(running.reload(next).ok());
  next.upstreams.push_back(small_upstream("other"));
  next.upstreams[1].limit.initial_limit = 50;
  next.upstreams[1].limit.max_limit = 77;
  ASSERT_EQ(next.validate(), ConfigErrors{});
  const ReloadReport report = running.reload(next);
  ASSERT_TRUE(report.ok()) << report.refused;
  EXPECT_NE(running.upstream(1), in_use);
  EXPECT_EQ(running.upstream(1)->scope(), in_use->scope());
  EXPECT_EQ(running.held(), Running(next).held());
}

// ---- overrides

const TimePoint kLater = kStart + std::chrono::minutes(10);

Override shadow_of(std::string rule) {
  return {.kind = OverrideKind::kShadow, .target = std::move(rule), .until = kLater};
}
Override cap_of(std::string upstream, std::uint32_t limit) {
  return {
      .kind = OverrideKind::kCap, .upstream = std::move(upstream), .limit = limit, .until = kLater};
}
Override drain_of(std::string upstream) {
  return {.kind = OverrideKind::kDrain,
          .upstream = std::move(upstream),
          .target = "127.0.0.1:1",
          .until = kLater,
          .endpoint = *io::parse_socket_name("127.0.0.1:1")};
}

TEST(LiveOverrides, AShadowedRuleRefusesNothingAndIsUndoneExactly) {
  config::Config config = base_config();
  config.routes[0].modes.limit = RuleMode::kEnforce;
  Running gateway(config);
  const Held before = gateway.held();
  gateway.put(shadow_of("limit"));
  EXPECT_EQ(gateway.held().admission.modes.limit, RuleMode::kShadow);
  EXPECT_NE(gateway.held().rules, before.rules) << "the route that enforces it, too";
  EXPECT_EQ(gateway.core().config_in_force(), config) << "the configuration is what it was";
  EXPECT_EQ(gateway.core().overrides().size(), 1U);
  gateway.remove_all();
  EXPECT_EQ(gateway.held(), before);
  EXPECT_TRUE(gateway.core().overrides().empty());
}

TEST(LiveOverrides, ACapBoundsTheLimitAndIsUndoneExactly) {
  config::Config config = base_config();
  config.admission.limit.policy = LimitKind::kFixed;
  Running gateway(config);
  const Held before = gateway.held();
  ASSERT_EQ(gateway.scope(0).limit, 40U);
  gateway.put(cap_of("app", 10));
  EXPECT_EQ(gateway.scope(0).limit, 10U);
  EXPECT_EQ(gateway.scope(0).limit_max, 10U);
  EXPECT_EQ(gateway.scope(1).limit, 128U) << "the other upstream is as before";
  gateway.remove_all();
  EXPECT_EQ(gateway.scope(0).limit, 40U);
  EXPECT_EQ(gateway.held(), before);
}

TEST(LiveOverrides, ADrainTakesTheEndpointOutUntilItIsRemoved) {
  Running gateway(base_config());
  gateway.put(drain_of("other"));
  EXPECT_EQ(gateway.state(1), policy::EndpointState::kDraining);
  EXPECT_EQ(gateway.state(0), policy::EndpointState::kAvailable);
  gateway.remove_all();
  EXPECT_NE(gateway.state(1), policy::EndpointState::kDraining);
}

TEST(LiveOverrides, StayInForceThroughAReloadAndEndAtItsConfiguration) {
  Running gateway(base_config());
  gateway.put(shadow_of("limit"));
  gateway.put(cap_of("app", 10));
  gateway.put(drain_of("other"));
  config::Config next = base_config();
  next.admission.inflight_max = 7;
  next.upstreams[0].limit.max_limit = 500;
  next.upstreams[1].max_connections = 9;  // replaces the upstream
  next.routes[0].path_prefix = "/new";
  const ReloadReport report = gateway.reload(next);
  ASSERT_TRUE(report.ok()) << report.refused;
  EXPECT_TRUE(report.overrides.empty());
  EXPECT_EQ(gateway.held().admission.modes.limit, RuleMode::kShadow);
  EXPECT_EQ(gateway.held().admission.inflight_max, 7U);
  EXPECT_EQ(gateway.scope(0).limit_max, 10U);
  EXPECT_EQ(gateway.state(1), policy::EndpointState::kDraining) << "a new upstream, too";
  EXPECT_EQ(gateway.core().config_in_force(), next);
  gateway.remove_all();
  EXPECT_EQ(gateway.held(), Running(next).held());
  EXPECT_NE(gateway.state(1), policy::EndpointState::kDraining);
}

TEST(LiveOverrides, EndWithAReloadThatRemovesWhatTheyActOn) {
  Running gateway(base_config());
  gateway.put(cap_of("other", 10));
  gateway.put(drain_of("other"));
  gateway.put(shadow_of("memory"));
  gateway.put(cap_of("app", 10));
  config::Config next = base_config();
  next.upstreams.pop_back();
  next.admission.modes.memory = RuleMode::kOff;
  const ReloadReport report = gateway.reload(next);
  ASSERT_TRUE(report.ok()) << report.refused;
  ASSERT_EQ(report.overrides.size(), 3U);
  EXPECT_THAT(report.overrides[0], HasSubstr("o1 (cap other to 10) ends: there is no upstream"));
  ASSERT_EQ(gateway.core().overrides().size(), 1U);
  EXPECT_EQ(gateway.core().overrides()[0].upstream, "app");
  EXPECT_EQ(gateway.held().admission.modes.memory, RuleMode::kOff);
}

TEST(LiveOverrides, ADrainEndsWithAReloadAfterWhichTheEndpointIsGone) {
  Running gateway(base_config());
  gateway.put(drain_of("other"));
  config::Config next = base_config();
  next.upstreams[1].endpoints = {*upstream::parse_source("127.0.0.1:2")};
  next.upstreams[1].max_connections = 9;
  const ReloadReport report = gateway.reload(next);
  ASSERT_EQ(report.overrides.size(), 1U);
  EXPECT_THAT(report.overrides[0], HasSubstr("no such endpoint"));
  EXPECT_TRUE(gateway.core().overrides().empty());
}

TEST(LiveOverrides, ARefusedReloadEndsNone) {
  Running gateway(base_config());
  gateway.put(cap_of("other", 10));
  gateway.refuse_tls = true;
  config::Config next = base_config();
  next.upstreams.pop_back();
  ASSERT_FALSE(gateway.reload(next).ok());
  EXPECT_EQ(gateway.core().overrides().size(), 1U);
  EXPECT_EQ(gateway.scope(1).limit_max, 10U);
}

TEST(LiveOverrides, ALogIsGivenToTheLoopsAndTakenAway) {
  Running gateway(base_config());
  const Held before = gateway.held();
  const auto focus = std::make_shared<LogFocus>(LogFocus::Of{.route = 0}, 10);
  gateway.put({.kind = OverrideKind::kLog, .target = "route 0", .until = kLater, .focus = focus});
  EXPECT_EQ(gateway.held().rules.log.focus, focus);
  gateway.remove_all();
  EXPECT_EQ(gateway.held(), before);
}

}  // namespace
}  // namespace weir::inline v0::gateway
