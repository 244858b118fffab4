// Actions in virtual time, on a gateway's core without loops and sockets.
#include "operator_actions.h"

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "weir/base/rng.h"

namespace weir::gateway {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;

config::Config actions_config() {
  config::Config config;
  config.server.streams_max = 64;
  config.server.reserved_streams = 1;
  config.admin.actions = ActionsMode::kToken;
  upstream::UpstreamConfig upstream;
  upstream.name = "app";
  upstream.max_connections = 8;
  for (const char* endpoint : {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3 drain=true"}) {
    upstream.endpoints.push_back(*upstream::parse_source(endpoint));
  }
  config.upstreams = {upstream};
  RouteConfig route;
  route.upstream = "app";
  config.routes = {route};
  return config;
}

class OperatorActionsTest : public ::testing::Test {
 protected:
  OperatorActionsTest() {
    std::ofstream(token_file) << std::string(64, 'a');
    EXPECT_EQ(::chmod(token_file.c_str(), 0600), 0);
    start(actions_config());
  }
  ~OperatorActionsTest() override { ::unlink(token_file.c_str()); }

  void start(config::Config config) {
    actions.reset();
    live.reset();
    core.reset();
    config.admin.token_file = token_file;
    ASSERT_EQ(config.validate(), ConfigErrors{});
    core = std::make_unique<GatewayCore>(config, 1, Rng(1), GatewayCore::Parts{});
    const auto upstreams = core->upstreams.in_force();
    live = std::make_unique<LiveOptions>(
        *core,
        LiveOptions::Consumers{
            .set_tls = [](const auto&) { return std::vector<RotatedCertificate>{}; },
            .read_dial_tls =
                [](const config::Config& next) {
                  return std::vector<io::TlsContext::Ptr>(next.upstreams.size());
                },
            .find_endpoints = [](const auto&, const auto&) { return std::string(); },
            .keep_endpoints = [](const auto&) {},
            .set_endpoints = [](const auto&, const auto&) {},
            .take =
                [this](const GatewayLoop::Table& table) {
                  rules = table.rules;
                  if (while_taken) while_taken();
                },
            .wait_briefly = [](const auto&) {}},
        std::make_shared<const Rules>(config, upstreams->names()));
    actions = std::make_unique<OperatorActions>(
        OperatorActions::Setup{.core = *core,
                               .live = *live,
                               .log = log,
                               .unix_seconds = [] { return std::int64_t{1'000'000}; },
                               .reload =
                                   [this] {
                                     ++reloads;
                                     return reload_objection;
                                   }});
  }
  AdminPage perform(const std::string& path, const std::string& body) {
    return actions->perform({.method = "POST",
                             .path = path,
                             .query = "",
                             .host = "127.0.0.1:1",
                             .content_type = "application/json",
                             .authorization = bearer,
                             .body = body},
                            now);
  }
  /// A second later, so that the pace allows it.
  json act(const std::string& name, const std::string& body, int status = 200) {
    now += seconds(1);
    const AdminPage page = perform("/actions/" + name, body);
    EXPECT_EQ(page.status, status) << page.body;
    return json::parse(page.body);
  }
  [[nodiscard]] policy::EndpointState state(std::size_t i) const {
    return core->upstreams.in_force()
        ->all[0]
        ->upstream.endpoints()
        ->members[i]
        .endpoint->health()
        .state();
  }
  [[nodiscard]] std::uint64_t counted(std::string_view action, std::string_view result) const {
    const auto all = actions->counts();
    for (const AdminActions::Count& one : all) {
      if (one.action == action && one.result == result) return one.count;
    }
    ADD_FAILURE() << "there is no such count";
    return 0;
  }

  const std::string token_file = ::testing::TempDir() + "/actions_" + std::to_string(::getpid());
  const std::string bearer = "Bearer " + std::string(64, 'a');
  TimePoint now = time_from_ns(1'000'000'000'000);
  OperatorLog log{{"app"}, nullptr};
  std::unique_ptr<GatewayCore> core;
  std::unique_ptr<LiveOptions> live;
  std::unique_ptr<OperatorActions> actions;
  std::shared_ptr<const Rules> rules;
  std::function<void()> while_taken;
  std::string reload_objection;
  int reloads = 0;
};

const std::string kDrainFirst = R"({"upstream":"app","endpoint":"127.0.0.1:1","for_s":30})";

TEST_F(OperatorActionsTest, ADrainLastsUntilItsTimeIsOver) {
  const json page = act("drain", R"({"endpoint":"127.0.0.1:1","for_s":30,"force":true})");
  EXPECT_EQ(page["done"], true);
  EXPECT_EQ(page["dry_run"], false);
  EXPECT_EQ(page["override"]["id"], "o1");
  EXPECT_EQ(page["override"]["kind"], "drain");
  EXPECT_EQ(page["override"]["what"], "app 127.0.0.1:1");
  EXPECT_EQ(page["override"]["left_s"], 30);
  EXPECT_EQ(page["override"]["until"], 1'000'030);
  EXPECT_THAT(page["preview"].get<std::string>(), HasSubstr("1 of 3 remain"));
  EXPECT_EQ(state(0), policy::EndpointState::kDraining);
  actions->expire(now + seconds(30) - Duration(1));
  EXPECT_EQ(state(0), policy::EndpointState::kDraining);
  actions->expire(now + seconds(30));
  EXPECT_NE(state(0), policy::EndpointState::kDraining);
  EXPECT_TRUE(core->overrides().empty());
}

TEST_F(OperatorActionsTest, ADrainThatLeavesLessThanHalfNeedsForce) {
  EXPECT_THAT(act("drain", kDrainFirst, 409)["error"].get<std::string>(), HasSubstr("force"));
  EXPECT_EQ(state(0), policy::EndpointState::kAvailable);
  config::Config config = actions_config();
  config.upstreams[0].endpoints.pop_back();
  start(config);
  act("drain", kDrainFirst);
  EXPECT_EQ(state(0), policy::EndpointState::kDraining);
  EXPECT_THAT(act("drain", R"({"endpoint":"127.0.0.1:2"})", 409)["error"].get<std::string>(),
              HasSubstr("0 of 2 remain"));
  act("drain", R"({"endpoint":"127.0.0.1:2","force":true})");
  EXPECT_EQ(state(1), policy::EndpointState::kDraining);
}

TEST_F(OperatorActionsTest, UndrainEndsOnlyADrainByAnOverride) {
  act("undrain", R"({"endpoint":"127.0.0.1:1"})", 409);
  EXPECT_THAT(act("undrain", R"({"endpoint":"127.0.0.1:3"})", 409)["error"].get<std::string>(),
              HasSubstr("source"));
  act("drain", R"({"endpoint":"127.0.0.1:3","force":true})", 409);
  act("drain", R"({"endpoint":"127.0.0.1:1","force":true})");
  act("undrain", R"({"endpoint":"127.0.0.1:1"})");
  EXPECT_NE(state(0), policy::EndpointState::kDraining);
  EXPECT_EQ(state(2), policy::EndpointState::kDraining);
}

TEST_F(OperatorActionsTest, ADryRunSaysWhatWouldBeDoneAndDoesNothing) {
  const json page = act("cap", R"({"upstream":"app","limit":40,"dry_run":true})");
  EXPECT_EQ(page["done"], false);
  EXPECT_EQ(page["dry_run"], true);
  EXPECT_EQ(page["override"]["id"], nullptr);
  EXPECT_EQ(page["override"]["limit"], 40);
  EXPECT_THAT(page["preview"].get<std::string>(), HasSubstr("at most 40; it is 128 now"));
  act("reload", R"({"dry_run":true})");
  EXPECT_TRUE(core->overrides().empty());
  EXPECT_EQ(reloads, 0);
  EXPECT_EQ(counted("cap", "dry_run"), 1U);
  EXPECT_EQ(counted("cap", "done"), 0U);
}

TEST_F(OperatorActionsTest, ShadowAndCapAreInForceInTheController) {
  act("shadow", R"({"rule":"limit","for_s":60})");
  act("cap", R"({"upstream":"app","limit":40,"for_s":60})");
  const ScopeId scope = core->upstreams.in_force()->all[0]->scope();
  EXPECT_EQ(core->controller.config().modes.limit, RuleMode::kShadow);
  EXPECT_EQ(core->controller.limit_config(scope)->max_limit, 40U);
  actions->expire(now + seconds(60));
  EXPECT_EQ(core->controller.config().modes.limit, RuleMode::kEnforce);
  EXPECT_EQ(core->controller.limit_config(scope)->max_limit, 1024U);
}

TEST_F(OperatorActionsTest, ACapIsWithinTheConfiguredBounds) {
  for (const char* limit : {"1024", "2000"}) {
    const std::string body = R"({"upstream":"app","limit":)" + std::string(limit) + "}";
    EXPECT_THAT(act("cap", body, 400)["error"].get<std::string>(), HasSubstr("1 to 1024"));
  }
  act("cap", R"({"upstream":"nothing","limit":40})", 404);
}

TEST_F(OperatorActionsTest, ARuleThatIsNotEnforcedCannotBeShadowed) {
  config::Config config = actions_config();
  config.admission.modes.memory = RuleMode::kOff;
  start(config);
  act("shadow", R"({"rule":"memory"})", 409);
  EXPECT_THAT(act("shadow", R"({"rule":"nothing"})", 400)["error"].get<std::string>(),
              HasSubstr("deadline, memory"));
}

TEST_F(OperatorActionsTest, ALogFollowsOneActorOrOneRoute) {
  act("log", R"({"actor":"alice"})");
  ASSERT_NE(rules->log.focus, nullptr);
  const std::uint64_t alice = named_actor("alice", core->controller).key.low;
  EXPECT_TRUE(rules->log.focus->takes({.actor = alice, .route = 0}));
  EXPECT_FALSE(rules->log.focus->takes({.actor = alice + 1, .route = 0}));
  const json page = act("log", R"({"route":0,"for_s":5})");
  EXPECT_EQ(page["override"]["lines_left"], 1000);
  EXPECT_TRUE(rules->log.focus->takes({.actor = 0, .route = 0}));
  EXPECT_EQ(core->overrides().size(), 1U);
  act("log", R"({"route":1})", 404);
  actions->expire(now + seconds(5));
  EXPECT_EQ(rules->log.focus, nullptr);
}

TEST_F(OperatorActionsTest, AnOverrideIsRemovedByItsId) {
  act("shadow", R"({"rule":"limit"})");
  act("remove", R"({"id":"o2"})", 404);
  act("remove", R"({"id":"o1"})");
  EXPECT_TRUE(core->overrides().empty());
  EXPECT_EQ(core->controller.config().modes.limit, RuleMode::kEnforce);
}

TEST_F(OperatorActionsTest, AReloadIsAskedForOrSaysWhyNot) {
  act("reload", "");
  EXPECT_EQ(reloads, 1);
  reload_objection = "started without --config";
  EXPECT_EQ(act("reload", "{}", 409)["error"], "started without --config");
}

TEST_F(OperatorActionsTest, OneActionASecondIsCarriedOut) {
  act("shadow", R"({"rule":"limit"})");
  const AdminPage page = perform("/actions/shadow", R"({"rule":"memory"})");
  EXPECT_EQ(page.status, 429);
  ASSERT_EQ(page.fields.size(), 1U);
  EXPECT_EQ(page.fields[0].name, "retry-after");
  EXPECT_EQ(perform("/actions/shadow", R"({"rule":"memory","dry_run":true})").status, 200);
  EXPECT_EQ(core->overrides().size(), 1U);
  EXPECT_EQ(counted("shadow", "too_many"), 1U);
  act("shadow", R"({"rule":"memory"})");
}

TEST_F(OperatorActionsTest, AFullTableRefuses) {
  config::Config config = actions_config();
  for (int i = 4; i < 40; ++i) {
    config.upstreams[0].endpoints.push_back(
        *upstream::parse_source("127.0.0.1:" + std::to_string(i)));
  }
  start(config);
  for (int i = 4; i < 20; ++i) {
    act("drain", R"({"endpoint":"127.0.0.1:)" + std::to_string(i) + "\"}");
  }
  EXPECT_THAT(act("shadow", R"({"rule":"limit"})", 409)["error"].get<std::string>(),
              HasSubstr("16 overrides"));
  EXPECT_EQ(core->controller.config().modes.limit, RuleMode::kEnforce);
  act("drain", R"({"endpoint":"127.0.0.1:4"})");
  act("remove", R"({"id":"o1"})");
  act("shadow", R"({"rule":"limit"})");
}

TEST_F(OperatorActionsTest, WhileAReloadIsUnderWayNothingIsChanged) {
  int status = 0;
  while_taken = [&] {
    while_taken = nullptr;
    now += seconds(1);
    status = perform("/actions/shadow", R"({"rule":"limit"})").status;
  };
  config::Config next = core->config_in_force();
  next.routes[0].path_prefix = "/x";
  ASSERT_TRUE(live->reload(next).ok());
  EXPECT_EQ(status, 409);
  EXPECT_TRUE(core->overrides().empty());
}

TEST_F(OperatorActionsTest, WhatIsNotBelievedIsCountedAndChangesNothing) {
  now += seconds(1);
  const AdminPage page = actions->perform({.method = "POST",
                                           .path = "/actions/reload",
                                           .query = "",
                                           .host = "127.0.0.1:1",
                                           .content_type = "application/json"},
                                          now);
  EXPECT_EQ(page.status, 401);
  EXPECT_EQ(reloads, 0);
  EXPECT_EQ(counted("reload", "forbidden"), 1U);
  act("reload", "{\"when\":1}", 400);
  EXPECT_EQ(counted("reload", "refused"), 1U);
}

TEST_F(OperatorActionsTest, PagesShowWhatIsInForce) {
  act("shadow", R"({"rule":"limit","for_s":20})");
  const json page = json::parse(overrides_page(core->overrides(), now + seconds(5), 100).body);
  ASSERT_EQ(page["overrides"].size(), 1U);
  EXPECT_EQ(page["overrides"][0]["left_s"], 15);
  EXPECT_EQ(page["overrides"][0]["until"], 115);
  EXPECT_EQ(page["overrides"][0]["rule"], "limit");
  EXPECT_EQ(overrides_comment(core->overrides(), now + seconds(5)),
            "# override o1: shadow limit, 15 s left\n\n");
  EXPECT_EQ(overrides_comment({}, now), "");
}

}  // namespace
}  // namespace weir::gateway
