#include "action_guard.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::gateway {
namespace {

const std::string kToken(64, 'a');

struct ActionGuard : ::testing::Test {
  ActionGuard() {
    config.actions = ActionsMode::kToken;
    config.token_file = ::testing::TempDir() + "/guard_" + std::to_string(::getpid());
    std::ofstream(config.token_file) << kToken;
    EXPECT_EQ(::chmod(config.token_file.c_str(), 0600), 0);
  }
  ~ActionGuard() override { ::unlink(config.token_file.c_str()); }
  /// 200, or why not.
  [[nodiscard]] int status() const {
    const auto who = who_acts(request, config);
    return who ? 200 : who.error().status;
  }
  void use_socket() {
    config.actions = ActionsMode::kSocket;
    config.actions_socket = config.token_file;  // any file with a group
    request.authorization = {};
    request.peer = {.unix_socket = true,
                    .process = io::LocalPeer{.user = ::geteuid(), .groups = {}}};
  }

  const std::string bearer = "Bearer " + kToken;
  AdminConfig config;
  AdminRequest request{.method = "POST",
                       .path = "/actions/reload",
                       .query = "",
                       .host = "127.0.0.1:9901",
                       .content_type = "application/json",
                       .authorization = bearer};
};

TEST_F(ActionGuard, BelievesTheTokenInAJsonPost) {
  ASSERT_EQ(status(), 200);
  EXPECT_EQ(*who_acts(request, config), "token");
  request.content_type = "Application/JSON; charset=utf-8";
  EXPECT_EQ(status(), 200);
}

TEST_F(ActionGuard, OnlyAPostIsAnAction) {
  for (const char* method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post"}) {
    request.method = method;
    EXPECT_EQ(status(), 405) << method;
  }
}

TEST_F(ActionGuard, AFormIsNoAction) {
  for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded",
                           "multipart/form-data", "application/jsonp", "text/json"}) {
    request.content_type = type;
    EXPECT_EQ(status(), 415) << type;
  }
}

TEST_F(ActionGuard, APageOfAnotherOriginIsRefused) {
  for (const char* origin :
       {"http://evil.example", "null", "http://127.0.0.1:9902", "http://127.0.0.1:99011",
        "http://127.0.0.1", "127.0.0.1:9901", "://"}) {
    request.origin = origin;
    EXPECT_EQ(status(), 403) << origin;
  }
  request.origin = "http://127.0.0.1:9901";
  EXPECT_EQ(status(), 200);
  request.host = {};
  EXPECT_EQ(status(), 403);
}

TEST_F(ActionGuard, ABrowserThatSaysOtherSiteIsRefused) {
  for (const char* site : {"cross-site", "same-site", "other"}) {
    request.sec_fetch_site = site;
    EXPECT_EQ(status(), 403) << site;
  }
  for (const char* site : {"same-origin", "none"}) {
    request.sec_fetch_site = site;
    EXPECT_EQ(status(), 200) << site;
  }
}

TEST_F(ActionGuard, NoTokenAndAWrongTokenAreRefused) {
  const std::string wrong = "Bearer " + std::string(64, 'b');
  const std::string longer = bearer + "a";
  for (const std::string& given : {std::string(), std::string("Bearer"), std::string("Bearer "),
                                   "Basic " + kToken, kToken, wrong, longer}) {
    request.authorization = given;
    EXPECT_EQ(status(), 401) << given;
  }
}

TEST_F(ActionGuard, ATokenFileThatOthersCanReadIsNotUsed) {
  ASSERT_EQ(::chmod(config.token_file.c_str(), 0644), 0);
  EXPECT_EQ(status(), 503);
}

TEST_F(ActionGuard, ANewTokenCountsAtOnce) {
  std::ofstream(config.token_file) << std::string(64, 'c');
  EXPECT_EQ(status(), 401);
}

TEST_F(ActionGuard, OverTheSocketTheProcessIsWhoItIs) {
  use_socket();
  ASSERT_EQ(status(), 200);
  EXPECT_EQ(*who_acts(request, config), "uid " + std::to_string(::geteuid()));
}

TEST_F(ActionGuard, WithTheSocketTcpIsReadOnlyEvenWithAToken) {
  use_socket();
  request.peer = {};
  request.authorization = bearer;
  EXPECT_EQ(status(), 403);
}

TEST_F(ActionGuard, AProcessOfAnotherUserAndGroupIsRefused) {
  use_socket();
  const std::uint32_t group = ::getegid();
  request.peer.process = io::LocalPeer{.user = ::geteuid() + 1000, .groups = {group + 1000}};
  EXPECT_EQ(status(), 403);
  request.peer.process->groups.push_back(group);
  EXPECT_EQ(status(), 200);
  request.peer.process.reset();
  EXPECT_EQ(status(), 403);
}

}  // namespace
}  // namespace weir::gateway
