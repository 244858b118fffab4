// What routes change and answer, with real sockets.
#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway_testing.h"
#include "server/h2/h2_testing.h"
#include "server/tls/tls_testing.h"

namespace weir::gateway {
namespace {

using testing::HasSubstr;
using testing::Not;
using testkit::Client;
using testkit::gateway_config;
using testkit::Origin;
using testkit::RunningGateway;
using testkit::ScriptedHandler;

TEST(GatewayRoute, TheUpstreamAndTheClientGetWhatTheRouteSays) {
  Origin origin(testkit::echo);
  config::Config config = gateway_config({origin.address()});
  RouteConfig& route = config.routes[0];
  route.path_prefix = "/api";
  route.rewrite = {.path = "/v2",
                   .host = "app.internal",
                   .request_add = {"x-tenant: gold"},
                   .request_remove = {"x-tenant"},
                   .response_add = {"x-served-by: weir"},
                   .response_remove = {"date"}};
  RunningGateway gateway(config);
  Client client(gateway.port());
  const auto answer = client.ask("GET /api/a?b HTTP/1.1\r\nhost: t\r\nx-tenant: forged\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("GET /v2/a?b\n"));
  EXPECT_THAT(answer.body, HasSubstr("host: app.internal\n"));
  EXPECT_THAT(answer.body, HasSubstr("x-tenant: gold\n"));
  EXPECT_THAT(answer.body, Not(HasSubstr("forged")));
  EXPECT_TRUE(answer.has("x-served-by: weir\r\n"));
  EXPECT_EQ(client.get("/api/a/../../etc").status, 400);
  EXPECT_TRUE(gateway.settled());
}

TEST(GatewayRoute, AnAnswerOfARouteNeedsNoUpstreamAndNoPlace) {
  config::Config config = gateway_config({"127.0.0.1:1"});
  RouteConfig redirect;
  redirect.host = "old";
  redirect.answer.redirect = "https://new{path}";
  redirect.answer.redirect_status = 308;
  RouteConfig fixed;
  fixed.answer.respond = 404;
  fixed.answer.respond_body = "nothing here\n";
  config.upstreams.clear();
  config.routes = {redirect, fixed};
  RunningGateway gateway(config);
  Client client(gateway.port());
  const auto moved = client.ask("GET /a?b HTTP/1.1\r\nhost: OLD:80\r\n\r\n");
  EXPECT_EQ(moved.status, 308);
  EXPECT_TRUE(moved.has("location: https://new/a?b\r\n"));
  const auto other = client.ask("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc");
  EXPECT_EQ(other.body, "nothing here\n");
  EXPECT_TRUE(gateway.settled());
  const nlohmann::json stats = gateway.stats();
  EXPECT_EQ(stats["requests"]["answered"], 2);
  EXPECT_EQ(stats["requests"]["refused"], 0);
}

/// Clients without TLS are sent to https, the others are served.
config::Config to_https(const std::string& origin) {
  config::Config config = gateway_config({origin});
  const io::MadeCertificate& own = server::testkit::localhost();
  config.server.tls.listen = {"127.0.0.1:0"};
  config.server.tls.certificate_pem = own.certificate_pem;
  config.server.tls.private_key_pem = own.key_pem;
  RouteConfig redirect;
  redirect.scheme = Scheme::kHttp;
  redirect.answer.redirect = "https://{host}{path}";
  redirect.answer.redirect_status = 308;
  config.routes.insert(config.routes.begin(), redirect);
  return config;
}

TEST(GatewayRoute, ClientsWithoutTlsAreSentToHttpsWhateverTheySay) {
  Origin origin(testkit::echo);
  RunningGateway gateway(to_https(origin.address()));
  Client plain(gateway.port());
  for (const char* text : {"GET /a?b HTTP/1.1\r\nhost: shop.example:80\r\n\r\n",
                           "GET /a?b HTTP/1.1\r\nhost: shop.example\r\nx-forwarded-proto: https\r\n"
                           "forwarded: proto=https\r\n\r\n",
                           "GET https://shop.example/a?b HTTP/1.1\r\nhost: shop.example\r\n\r\n"}) {
    const auto moved = plain.ask(text);
    EXPECT_EQ(moved.status, 308) << text;
    EXPECT_TRUE(moved.has("location: https://shop.example/a?b\r\n")) << text;
  }
  server::testkit::TlsClient secure(gateway.tls_port());
  ASSERT_TRUE(secure.shake());
  for (const char* text : {"GET / HTTP/1.1\r\nhost: t\r\n\r\n",
                           "GET / HTTP/1.1\r\nhost: t\r\nx-forwarded-proto: http\r\n\r\n",
                           "GET http://t/ HTTP/1.1\r\nhost: t\r\n\r\n"}) {
    ASSERT_TRUE(secure.send(text));
    const auto served = secure.read();
    EXPECT_EQ(served.status, 200) << text;
    EXPECT_THAT(served.body, HasSubstr("x-forwarded-proto: https\n")) << text;
  }
  EXPECT_TRUE(gateway.settled());
}

// RFC 9113 lets a client send any :scheme; what was on the wire decides.
TEST(GatewayRoute, TheSchemeThatAnHttp2ClientClaimsIsNotUsed) {
  Origin origin(testkit::echo);
  config::Config config = to_https(origin.address());
  RunningGateway gateway(config);
  const auto ask = [](server::testkit::H2Client& client, const char* scheme) {
    return client.finish(client.ask(
        {{":method", "GET"}, {":scheme", scheme}, {":authority", "t"}, {":path", "/a"}}));
  };
  for (const char* claimed : {"http", "https"}) {
    server::testkit::H2Client client(gateway.port());
    EXPECT_EQ(ask(client, claimed).status, 308) << claimed;
  }
  config.routes.erase(config.routes.begin());
  ASSERT_TRUE(gateway->reload(config).ok());
  server::testkit::H2Client client(gateway.port());
  EXPECT_THAT(ask(client, "https").body, HasSubstr("x-forwarded-proto: http\n"));
}

TEST(GatewayRoute, ATrustedProxySaysWhichSchemeItsClientUsed) {
  Origin origin(testkit::echo);
  config::Config config = to_https(origin.address());
  config.trust.proxies = {*parse_ip_range("127.0.0.1")};
  RunningGateway gateway(config);
  Client proxy(gateway.port());
  const auto ask = [&](const std::string& told) {
    return proxy.ask("GET / HTTP/1.1\r\nhost: t\r\n" + told + "\r\n").status;
  };
  EXPECT_EQ(ask("x-forwarded-proto: https\r\n"), 200);
  EXPECT_EQ(ask("x-forwarded-proto: http\r\n"), 308);
  EXPECT_EQ(ask(""), 308);
  server::testkit::TlsClient secure(gateway.tls_port());
  ASSERT_TRUE(secure.shake());
  ASSERT_TRUE(secure.send("GET / HTTP/1.1\r\nhost: t\r\nx-forwarded-proto: http\r\n\r\n"));
  EXPECT_EQ(secure.read().status, 308) << "the proxy used TLS, its client did not";
  config.trust.proxies.clear();
  ASSERT_TRUE(gateway->reload(config).ok());
  EXPECT_EQ(ask("x-forwarded-proto: https\r\n"), 308);
}

TEST(GatewayRoute, ARequestInProgressKeepsItsRouteThroughReloads) {
  std::promise<void> arrived;
  std::promise<void> released;
  Origin origin([&](ScriptedHandler& handler) {
    handler.complete = [&](ServerStream& stream) {
      arrived.set_value();
      released.get_future().wait();
      EXPECT_EQ(testkit::reply(stream, 200, "done"), SendResult::kSent);
    };
  });
  config::Config config = gateway_config({origin.address()});
  config.routes[0].rewrite.response_add = {"x-version: one"};
  RunningGateway gateway(config);
  Client client(gateway.port());
  client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  arrived.get_future().wait();
  for (const char* field : {"x-version: two", "x-version: three"}) {
    config.routes[0].rewrite.response_add = {field};
    EXPECT_TRUE(gateway->reload(config).ok());
  }
  RouteConfig fixed;
  fixed.answer.respond = 204;
  config.routes = {fixed};
  EXPECT_TRUE(gateway->reload(config).ok());
  released.set_value();
  EXPECT_TRUE(client.read().has("x-version: one\r\n"));
  EXPECT_TRUE(testkit::eventually([&] { return Client(gateway.port()).get("/").status == 204; }));
}

}  // namespace
}  // namespace weir::gateway
