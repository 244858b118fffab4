// Who may use a route, with real sockets and real signatures.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/experimental/io/clock.h"

#include "gateway_testing.h"
#include "jwt_testing.h"

namespace weir::gateway {
namespace {

using testing::HasSubstr;
using testkit::Answer;
using testkit::Client;
using testkit::gateway_config;
using testkit::Origin;
using testkit::RunningGateway;

/// A file of this test.
class OwnFile {
 public:
  explicit OwnFile(std::string_view text) { write(text); }
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;
  ~OwnFile() { std::filesystem::remove(path_); }
  void write(std::string_view text) const { std::ofstream(path_, std::ios::binary) << text; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "weir_gateway_identity_" + std::to_string(::getpid());
};

Answer ask_with(RunningGateway& gateway, const std::string& field) {
  return Client(gateway.port()).ask("GET / HTTP/1.1\r\nhost: t\r\n" + field + "\r\n");
}

TEST(GatewayIdentity, OnlyKeysOfTheFileMayUseARouteThatWantsThem) {
  Origin origin(testkit::echo);
  // sha256sum of "alpha" and "beta"
  const OwnFile file("8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8 gold\n");
  config::Config config = gateway_config({origin.address()});
  config.actors.identity = {IdentityKind::kApiKey};
  config.actors.keys_file = file.path();
  config.routes[0].identity_required = true;
  RunningGateway gateway(config);
  EXPECT_EQ(ask_with(gateway, "x-api-key: alpha\r\n").status, 200);
  const Answer refused = ask_with(gateway, "x-api-key: beta\r\n");
  EXPECT_EQ(refused.status, 401);
  EXPECT_TRUE(refused.has("x-weir-reason: no_actor\r\n"));
  EXPECT_TRUE(refused.has("www-authenticate: Bearer\r\n"));
  EXPECT_EQ(ask_with(gateway, "").status, 401);
  // A reload reads the file again, although no option changed; a broken one changes nothing.
  file.write("f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753 iron\n");
  EXPECT_TRUE(gateway->reload(config).ok());
  EXPECT_EQ(ask_with(gateway, "x-api-key: alpha\r\n").status, 401);
  EXPECT_EQ(ask_with(gateway, "x-api-key: beta\r\n").status, 200);
  file.write("broken\n");
  EXPECT_THAT(gateway->reload(config).refused, HasSubstr("actors.keys_file"));
  EXPECT_EQ(ask_with(gateway, "x-api-key: beta\r\n").status, 200);
  EXPECT_TRUE(gateway.settled());
}

TEST(GatewayIdentity, VerifiedTokensNameTheirActors) {
  Origin origin(testkit::echo);
  const io::TestSigner signer = io::TestSigner::ec();
  const OwnFile file(signer.public_pem());
  config::Config config = gateway_config({origin.address()});
  config.actors.identity = {IdentityKind::kJwt};
  config.actors.jwt.keys = {file.path()};
  config.actors.jwt.verifications_max = 5;
  config.server.loops = 1;
  config.routes[0].identity_required = true;
  RunningGateway gateway(config);
  const auto token = [](const io::TestSigner& by, const std::string& name) {
    return "authorization: Bearer " +
           testkit::make_jwt(by, R"({"alg":"ES256"})",
                             R"({"sub":")" + name + R"(","exp":)" +
                                 std::to_string(io::unix_seconds() + 600) + "}") +
           "\r\n";
  };
  const std::string good = token(signer, "alice");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask_with(gateway, good).status, 200);
  const io::TestSigner stranger = io::TestSigner::ec();
  int throttled = 0;
  for (int i = 0; i < 20; ++i) {
    const Answer answer = ask_with(gateway, token(stranger, "eve" + std::to_string(i)));
    EXPECT_TRUE(answer.status == 401 || answer.status == 429) << answer.status;
    throttled += answer.status == 429 ? 1 : 0;
  }
  EXPECT_GT(throttled, 0);
  EXPECT_EQ(ask_with(gateway, good).status, 200) << "what was verified needs no verification";
  const std::string page = gateway.page("/metrics");
  EXPECT_THAT(page.substr(page.find("# HELP weir_actor_tokens_total"), 1500),
              HasSubstr("weir_actor_tokens_total{result=\"cached\"} 3\n"));
  EXPECT_TRUE(gateway.settled());
}

TEST(GatewayIdentity, AMissingFileIsNamedAtStart) {
  config::Config config = gateway_config({"127.0.0.1:1"});
  config.actors.keys_file = "/no/such/file";
  const auto started = Gateway(config).start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "actors.keys_file = \"/no/such/file\": cannot be read");
  EXPECT_EQ(identity_objection(config), started.error().message) << "as weir check says";
}

}  // namespace
}  // namespace weir::gateway
