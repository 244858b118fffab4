#include "admin_handler.h"

#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "admin_server.h"
#include "gateway_testing.h"

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;
using testkit::Answer;
using testkit::Client;

/// Answers each request with what it found in it.
struct EchoingServer {
  EchoingServer()
      : server(config(), {.pages = [](const AdminRequest& request) { return page(request); }}) {
    EXPECT_TRUE(server.start().has_value());
    port = parse_net_address(server.address())->port;
  }
  ~EchoingServer() { server.stop(); }
  EchoingServer(const EchoingServer&) = delete;
  EchoingServer& operator=(const EchoingServer&) = delete;

  static config::Config config() {
    config::Config config;
    config.admin.listen = *parse_net_address("127.0.0.1:0");
    return config;
  }
  static AdminPage page(const AdminRequest& request) {
    if (request.path == "/static") {
      return {.content_type = "text/css",
              .static_body = "body {}",
              .cache_control = "no-cache",
              .fields = {{.name = "etag", .value = "\"1\""}},
              .runs_scripts = true};
    }
    if (request.path == "/same") return {.status = 304};
    std::string text;
    for (const std::string_view one :
         {request.method, request.path, request.query, request.host, request.accept,
          request.accept_encoding, request.if_none_match, request.last_event_id, request.origin,
          request.content_type, request.authorization, request.sec_fetch_site, request.body}) {
      text += std::string(one) + "|";
    }
    text += request.peer.unix_socket ? "unix" : "tcp";
    return {.content_type = "text/plain", .body = text};
  }

  AdminServer server;
  std::uint16_t port = 0;
};

constexpr std::string_view kFields =
    "host: t\r\nAccept: a\r\naccept-encoding: b\r\nif-none-match: c\r\nLast-Event-ID: d\r\n"
    "origin: e\r\ncontent-type: f\r\nauthorization: g\r\nsec-fetch-site: h\r\n";

TEST(AdminHandler, PagesSeeTheFieldsOfTheRequest) {
  EchoingServer admin;
  const std::string get = "GET /p?q HTTP/1.1\r\n" + std::string(kFields) + "\r\n";
  EXPECT_EQ(Client(admin.port).ask(get).body, "GET|/p|q|t|a|b|c|d|e|f|g|h||tcp");
}

TEST(AdminHandler, ASmallBodyOfPostIsCompleteBeforeThePageIsMade) {
  EchoingServer admin;
  Client client(admin.port);
  ASSERT_TRUE(
      client.send("POST /p HTTP/1.1\r\n" + std::string(kFields) + "content-length: 8\r\n\r\nhalf"));
  // The first half arrives alone: another request is answered meanwhile.
  EXPECT_THAT(Client(admin.port).get("/other").body, HasSubstr("/other"));
  ASSERT_TRUE(client.send("half"));
  EXPECT_EQ(client.read().body, "POST|/p||t|a|b|c|d|e|f|g|h|halfhalf|tcp");
}

TEST(AdminHandler, ALargerBodyIsRefusedWith413) {
  EchoingServer admin;
  const Answer announced =
      Client(admin.port).ask("POST /p HTTP/1.1\r\nhost: t\r\ncontent-length: 4097\r\n\r\n");
  EXPECT_EQ(announced.status, 413);
  EXPECT_THAT(announced.body, HasSubstr("4096"));
  const std::string chunk = "1000\r\n" + std::string(4096, 'x') + "\r\n";
  const std::string head = "POST /p HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n";
  EXPECT_THAT(Client(admin.port).ask(head + chunk + "0\r\n\r\n").body, HasSubstr("xxx|tcp"));
  EXPECT_EQ(Client(admin.port).ask(head + chunk + "1\r\nx\r\n0\r\n\r\n").status, 413);
}

TEST(AdminHandler, RequestsWithHalfABodyAreBounded) {
  EchoingServer admin;
  const std::string half = "POST /p HTTP/1.1\r\nhost: t\r\ncontent-length: 2\r\n\r\nx";
  std::vector<std::unique_ptr<Client>> waiting;
  for (std::size_t i = 0; i < AdminHandler::kBodiesMax; ++i) {
    waiting.push_back(std::make_unique<Client>(admin.port));
    ASSERT_TRUE(waiting.back()->send(half));
  }
  const auto refused = [&] { return Client(admin.port).ask(half).status == 503; };
  EXPECT_TRUE(testkit::eventually(refused));
  ASSERT_TRUE(waiting[0]->send("x"));
  EXPECT_EQ(waiting[0]->read().status, 200);
  EXPECT_EQ(Client(admin.port).ask(half + "x").status, 200) << "its place is free again";
}

TEST(AdminHandler, EveryPageTellsBrowsersToTrustNothing) {
  EchoingServer admin;
  const Answer page = Client(admin.port).get("/p");
  EXPECT_TRUE(page.has("x-content-type-options: nosniff"));
  EXPECT_TRUE(page.has("cross-origin-resource-policy: same-origin"));
  EXPECT_TRUE(page.has("cache-control: no-store"));
  EXPECT_THAT(page.head, HasSubstr("content-security-policy: default-src 'none'; base-uri"));
  const Answer document = Client(admin.port).get("/static");
  EXPECT_EQ(document.body, "body {}");
  EXPECT_TRUE(document.has("etag: \"1\""));
  EXPECT_TRUE(document.has("cache-control: no-cache"));
  EXPECT_THAT(document.head, HasSubstr("script-src 'self'; style-src 'self'; img-src 'self' data:; "
                                       "connect-src 'self'; frame-ancestors 'none'"));
  EXPECT_EQ(Client(admin.port).get("/same").status, 304);
}

}  // namespace
}  // namespace weir::gateway
