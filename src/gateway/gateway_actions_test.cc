// Actions of an operator at a running gateway: what is refused, and what a drain does to traffic.
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using testkit::Answer;
using testkit::answer_of;
using testkit::Client;
using testkit::eventually;
using testkit::gateway_config;
using testkit::NamedOrigin;
using testkit::RunningGateway;

const std::string kGivenToken(64, 'a');

struct GatewayActions : ::testing::Test {
  GatewayActions() {
    config.admin.actions = ActionsMode::kToken;
    config.admin.token_file = file("token");
    std::ofstream(config.admin.token_file) << kGivenToken << "\n";
    EXPECT_EQ(::chmod(config.admin.token_file.c_str(), 0600), 0);
  }
  ~GatewayActions() override { ::unlink(file("token").c_str()); }
  static std::string file(const std::string& name) {
    return ::testing::TempDir() + "/" + name + "_" + std::to_string(::getpid());
  }
  /// A POST as a command makes it, but for what `fields` say.
  static Answer post(const RunningGateway& gateway, std::string_view path, const std::string& body,
                     const std::string& fields) {
    return Client(gateway.admin_port())
        .ask("POST " + std::string(path) + " HTTP/1.1\r\n" + fields +
             "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  static Answer act(const RunningGateway& gateway, std::string_view path, const std::string& body) {
    return post(gateway, path, body, kHost + kJson + kBearer);
  }
  [[nodiscard]] std::string drain_first(int seconds) const {
    return R"({"upstream":"app","endpoint":")" + first.address() + R"(","for_s":)" +
           std::to_string(seconds) + "}";
  }
  /// Who answers within this number of requests.
  static std::set<std::string> who_answers(const RunningGateway& gateway, int requests = 40) {
    std::set<std::string> all;
    for (int i = 0; i < requests; ++i) all.insert(answer_of(gateway));
    return all;
  }
  static std::size_t overrides(const RunningGateway& gateway) {
    return json::parse(gateway.page("/overrides"))["overrides"].size();
  }

  static inline const std::string kHost = "host: t\r\n";
  static inline const std::string kJson = "content-type: application/json\r\n";
  static inline const std::string kBearer = "authorization: Bearer " + kGivenToken + "\r\n";
  NamedOrigin first{"first"};
  NamedOrigin second{"second"};
  config::Config config = gateway_config({first.address(), second.address()});
};

TEST_F(GatewayActions, DoNotExistWhileTheyAreOff) {
  config.admin.actions = ActionsMode::kOff;
  RunningGateway gateway(config);
  for (const char* path : {"/actions/drain", "/actions/reload", "/endpoints/127.0.0.1:1/drain"}) {
    EXPECT_EQ(act(gateway, path, "{}").status, 404) << path;
    EXPECT_EQ(Client(gateway.admin_port()).get(path).status, 404) << path;
  }
  EXPECT_EQ(Client(gateway.admin_port()).get("/overrides").status, 404);
  EXPECT_THAT(gateway.page("/metrics"), HasSubstr("weir_override_active{action=\"drain\"} 0\n"));
}

TEST_F(GatewayActions, WhoMayNotActIsRefusedAndNothingChanges) {
  RunningGateway gateway(config);
  const std::string body = drain_first(60);
  const auto status = [&](const std::string& fields) {
    return post(gateway, "/actions/drain", body, fields).status;
  };
  EXPECT_EQ(status(kHost + kJson), 401) << "no token";
  EXPECT_EQ(status(kHost + kJson + "cookie: token=" + kGivenToken + "\r\n"), 401) << "a cookie";
  EXPECT_EQ(status(kHost + kJson + "authorization: Bearer " + std::string(64, 'b') + "\r\n"), 401);
  EXPECT_EQ(status("host: evil.example\r\n" + kJson + kBearer), 421) << "DNS rebinding";
  EXPECT_EQ(status(kHost + kJson + kBearer + "origin: http://evil.example\r\n"), 403);
  EXPECT_EQ(status(kHost + kJson + kBearer + "sec-fetch-site: cross-site\r\n"), 403);
  EXPECT_EQ(status(kHost + kBearer + "content-type: text/plain\r\n"), 415);
  EXPECT_EQ(status(kHost + kBearer), 415);
  EXPECT_EQ(act(gateway, "/actions/drain", std::string(4097, ' ')).status, 413);
  EXPECT_EQ(act(gateway, "/actions/drain", "{\"upstream\":").status, 400);
  EXPECT_THAT(act(gateway, "/actions/drain", R"({"until":1})").body, HasSubstr("until"));
  EXPECT_EQ(act(gateway, "/actions/stop", "{}").status, 405);
  EXPECT_EQ(Client(gateway.admin_port()).get("/actions/drain").status, 405);
  EXPECT_EQ(overrides(gateway), 0U);
  EXPECT_EQ(act(gateway, "/actions/drain", body).status, 200) << "the same, as it should be";
  EXPECT_EQ(overrides(gateway), 1U);
  EXPECT_THAT(gateway.page("/metrics"),
              HasSubstr("weir_admin_actions_total{action=\"drain\",result=\"forbidden\"} 8\n"));
}

TEST_F(GatewayActions, ADrainedEndpointGetsNoRequestsAndComesBackByItself) {
  RunningGateway gateway(config);
  EXPECT_EQ(who_answers(gateway), (std::set<std::string>{"first", "second"}));
  const Answer answer = act(gateway, "/actions/drain", drain_first(1));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("1 of 2 remain"));
  EXPECT_EQ(who_answers(gateway, 20), std::set<std::string>{"second"});
  EXPECT_THAT(gateway.page("/config"), HasSubstr("# override o1: drain app"));
  EXPECT_THAT(gateway.page("/metrics"), HasSubstr("weir_override_active{action=\"drain\"} 1\n"));
  EXPECT_TRUE(eventually([&] { return overrides(gateway) == 0; }));
  EXPECT_TRUE(eventually([&] { return answer_of(gateway) == "first"; }));
  EXPECT_THAT(gateway.page("/config"), Not(HasSubstr("# override")));
}

TEST_F(GatewayActions, AnEndpointStaysDrainedThroughAReload) {
  RunningGateway gateway(config);
  ASSERT_EQ(act(gateway, "/endpoints/" + first.address() + "/drain", "{}").status, 200);
  config.admission.inflight_max = 7;
  config.upstreams[0].max_idle_connections = 3;  // replaces the upstream
  ASSERT_TRUE(gateway->reload(config).ok());
  EXPECT_EQ(who_answers(gateway, 20), std::set<std::string>{"second"});
  config.upstreams[0].endpoints = {*upstream::parse_source(second.address())};
  const ReloadReport report = gateway->reload(config);
  ASSERT_EQ(report.overrides.size(), 1U);
  EXPECT_EQ(overrides(gateway), 0U);
}

TEST_F(GatewayActions, AReloadIsAskedOfTheOwner) {
  Gateway gateway(config);
  std::atomic<int> asked{0};
  gateway.on_reload_asked([&] {
    ++asked;
    return std::string();
  });
  ASSERT_TRUE(gateway.start().has_value());
  std::uint16_t port = 0;
  const std::string admin = gateway.admin_listening();
  std::from_chars(admin.data() + admin.rfind(':') + 1, admin.data() + admin.size(), port);
  const Answer answer =
      Client(port).ask("POST /actions/reload HTTP/1.1\r\n" + kHost + kJson + kBearer + "\r\n");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(asked, 1);
}

TEST_F(GatewayActions, ATokenThatOthersCanReadStopsTheStartAndAReload) {
  RunningGateway running(config);
  ASSERT_EQ(::chmod(config.admin.token_file.c_str(), 0644), 0);
  Gateway gateway(config);
  const auto started = gateway.start();
  ASSERT_FALSE(started.has_value());
  EXPECT_THAT(started.error().message, HasSubstr("chmod 600"));
  EXPECT_EQ(started.error().message, actions_objection(config)) << "as weir check says";
  EXPECT_THAT(running->reload(config).refused, HasSubstr("chmod 600"));
}

/// A stream to a Unix socket; it reads to the end.
std::string ask_socket(const std::string& path, const std::string& text) {
  const io::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) return {};
  EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
  std::string answer;
  char block[4096];
  for (ssize_t got = 0; (got = ::recv(fd.get(), block, sizeof block, 0)) > 0;) {
    answer.append(block, static_cast<std::size_t>(got));
  }
  return answer;
}

TEST_F(GatewayActions, TheSocketBelievesItsOwnUserAndTcpIsReadOnly) {
  config.admin.actions = ActionsMode::kSocket;
  config.admin.actions_socket = file("actions.sock");
  ASSERT_EQ(config.validate(), ConfigErrors{});
  RunningGateway gateway(config);
  const std::string& path = config.admin.actions_socket;
  struct stat socket {};
  ASSERT_EQ(::stat(path.c_str(), &socket), 0);
  EXPECT_EQ(socket.st_mode & 0777U, 0660U);
  EXPECT_EQ(act(gateway, "/actions/drain", drain_first(60)).status, 403) << "TCP, with the token";
  EXPECT_EQ(overrides(gateway), 0U) << "and TCP shows the list";
  const std::string body = drain_first(60);
  const std::string head = "POST /actions/drain HTTP/1.0\r\nhost: localhost\r\n" + kJson;
  const std::string length = "content-length: " + std::to_string(body.size()) + "\r\n\r\n";
  EXPECT_THAT(ask_socket(path, head + "origin: http://evil.example\r\n" + length + body),
              HasSubstr(" 403 "));
  EXPECT_THAT(ask_socket(path, head + length + body), HasSubstr("\"done\":true"));
  EXPECT_THAT(ask_socket(path, "GET /overrides HTTP/1.0\r\n\r\n"), HasSubstr("\"drain\""));
  EXPECT_EQ(overrides(gateway), 1U);
}

TEST_F(GatewayActions, TheSocketServesAlsoWithoutAnAdminAddress) {
  config.admin.listen.reset();
  config.admin.actions = ActionsMode::kSocket;
  config.admin.actions_socket = file("alone.sock");
  ASSERT_EQ(config.validate(), ConfigErrors{});
  RunningGateway gateway(config);
  EXPECT_EQ(gateway->admin_listening(), "unix:" + config.admin.actions_socket);
  EXPECT_THAT(ask_socket(config.admin.actions_socket, "GET /healthz HTTP/1.0\r\n\r\n"),
              HasSubstr("ok"));
}

}  // namespace
}  // namespace weir::gateway
