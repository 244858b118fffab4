#include "weir/experimental/client/client.h"

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "weir/experimental/io/self_signed.h"

#include "client_testing.h"

namespace weir::inline v0::inline client::testkit {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Client, GetsStatusHeadersAndBody) {
  for (const char* scheme : kSchemes) {
    const Replica replica(
        always({.status = 201, .body = "made", .fields = {{"x-one", "1"}, {"x-two", "2"}}}));
    Client client = client_of(config_for({&replica}, scheme));
    const Client::Answer answer = client.get("/a?b=c");
    ASSERT_TRUE(answer) << scheme << name_of(answer.error().kind);
    EXPECT_EQ(answer->status, 201);
    EXPECT_EQ(answer->body, "made");
    EXPECT_EQ(answer->header("X-One"), "1");
    EXPECT_EQ(answer->header("x-two"), "2");
    EXPECT_EQ(answer->header("x-three"), "");
    EXPECT_EQ(answer->endpoint, replica.name());
    EXPECT_EQ(answer->attempts, 1U);
    const Asked asked = replica.asked().at(0);
    EXPECT_EQ(asked.method, "GET");
    EXPECT_EQ(asked.path, "/a?b=c");
    EXPECT_EQ(asked.header("x-weir-attempt"), "");
  }
}

TEST(Client, SendsABodyAndHeaders) {
  for (const char* scheme : kSchemes) {
    const Replica replica(always({.echo = true}));
    Client client = client_of(config_for({&replica}, scheme));
    const std::string body = server::testkit::pattern(64 * 1024);
    const Client::Answer answer = client.request({.method = "POST",
                                                  .path = "/items",
                                                  .headers = {{"X-Trace", "t"}},
                                                  .body = body,
                                                  .priority = Priority::kHigh});
    ASSERT_TRUE(answer) << scheme << name_of(answer.error().kind);
    EXPECT_EQ(answer->body, body);
    const Asked asked = replica.asked().at(0);
    EXPECT_EQ(asked.header("x-trace"), "t") << "names are sent in lower case";
    EXPECT_EQ(asked.header("x-weir-priority"), "high");
  }
}

TEST(Client, ABodyOfUnknownLengthIsCollected) {
  for (const char* scheme : kSchemes) {
    const std::string body = server::testkit::pattern(100'000);
    const Replica replica(always({.body = body, .unknown_size = true}));
    Client client = client_of(config_for({&replica}, scheme));
    const Client::Answer answer = client.get("/");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, body);
  }
}

TEST(Client, HeadHasNoBody) {
  const Replica replica(always({.body = "12345"}));
  Client client = client_of(config_for({&replica}));
  const Client::Answer answer = client.request({.method = "HEAD"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "");
  EXPECT_EQ(answer->header("content-length"), "5");
}

TEST(Client, SpeaksTlsAndVerifiesTheName) {
  const io::MadeCertificate made =
      io::make_certificate({.names = {"127.0.0.1"}, .signer_pem = {}, .authority = false});
  ServerConfig server = server::testkit::small_config();
  server.tls.listen = {"127.0.0.1:0"};
  server.tls.certificate_pem = made.certificate_pem;
  server.tls.private_key_pem = made.key_pem;
  Replica replica(always({}), server);
  ClientConfig config;
  config.endpoints = {"https://" + replica.tls_name()};
  config.tls.ca_pem = made.certificate_pem;
  Client client = client_of(config);
  const Client::Answer answer = client.get("/");
  ASSERT_TRUE(answer) << name_of(answer.error().kind);
  EXPECT_EQ(answer->body, "ok");

  config.tls.server_name = "other.example";
  Client strict = client_of(config);
  const Client::Answer refused = strict.get("/");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ClientErrorKind::kConnectFailed);
  EXPECT_EQ(replica.requests(), 1);
}

TEST(Client, FindsItsEndpointsInAFile) {
  const Replica replica(always({}));
  char path[] = "/tmp/weir_client_test_XXXXXX";
  const int fd = ::mkstemp(path);
  const std::string line = replica.name() + "\n";
  ASSERT_EQ(::write(fd, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  ::close(fd);
  ClientConfig config;
  config.endpoints = {"file:" + std::string(path)};
  config.authority = "items.example";
  Client client = client_of(config);
  const Client::Answer answer = client.get("/");
  ::unlink(path);
  ASSERT_TRUE(answer);
  EXPECT_EQ(replica.asked().at(0).header("host"), "items.example");
}

TEST(Client, SaysWhyASourceHasNoEndpoints) {
  std::atomic<int> errors{0};
  ClientConfig config;
  config.endpoints = {"file:/nowhere/at/all"};
  config.timeout = milliseconds(50);
  config.on_source_error = [&](const std::string& source, const std::string& error) {
    EXPECT_EQ(source, "file:/nowhere/at/all");
    EXPECT_FALSE(error.empty());
    ++errors;
  };
  Client client = client_of(config);
  EXPECT_GE(errors, 1);
  const Client::Answer answer = client.get("/");
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().kind == ClientErrorKind::kNoEndpoint ||
              answer.error().kind == ClientErrorKind::kDeadline)
      << name_of(answer.error().kind);
}

TEST(Client, ACallbackMaySendTheNextRequest) {
  const Replica replica(always({}));
  Client client = client_of(config_for({&replica}));
  std::atomic<int> answers{0};
  const Client::OnAnswer second = [&](Client::Answer answer) {
    answers += answer && answer->status == 200 ? 1 : 100;
  };
  const Client::OnAnswer first = [&](Client::Answer answer) {
    second(std::move(answer));
    EXPECT_TRUE(client.send({.path = "/2"}, second));
  };
  ASSERT_TRUE(client.send({.path = "/1"}, first));
  EXPECT_TRUE(eventually([&] { return answers == 2; }));
  EXPECT_TRUE(client.close(seconds(10)));
}

TEST(Client, AMissingServiceIsAnErrorNotAHang) {
  std::string gone;
  {
    const Replica replica(always({}));
    gone = replica.name();
  }
  ClientConfig config;
  config.endpoints = {gone};
  config.timeout = milliseconds(200);
  Client client = client_of(config);
  const Client::Answer answer = client.get("/");
  ASSERT_FALSE(answer);
  const ClientErrorKind kind = answer.error().kind;
  EXPECT_TRUE(kind == ClientErrorKind::kConnectFailed || kind == ClientErrorKind::kDeadline)
      << name_of(kind);
}

TEST(Client, TheDeadlineEndsARequestAndIsSentAlong) {
  for (const char* scheme : kSchemes) {
    const Replica replica(always({.hold = true}));
    Client client = client_of(config_for({&replica}, scheme));
    const TimePoint before = io::monotonic_now();
    const Client::Answer answer = client.request({.timeout = milliseconds(80)});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, ClientErrorKind::kDeadline);
    EXPECT_GE(io::monotonic_now() - before, milliseconds(80));
    const std::string left = replica.asked().at(0).header("x-weir-deadline-ms");
    ASSERT_FALSE(left.empty());
    EXPECT_TRUE(left.size() <= 2 && left <= "80") << left;
    EXPECT_TRUE(eventually([&] { return replica.aborts() == 1; })) << "it may stop working on it";
  }
}

TEST(Client, TheEarlierOfTimeoutAndDeadlineHolds) {
  const Replica replica(always({.hold = true}));
  Client client = client_of(config_for({&replica}));
  const TimePoint now = io::monotonic_now();
  const Client::Answer answer =
      client.request({.timeout = seconds(60), .deadline = now + milliseconds(50)});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ClientErrorKind::kDeadline);
}

TEST(Client, EachErrorHasANameAndASentence) {
  for (std::size_t i = 0; i < kClientErrorNames.size(); ++i) {
    const ClientError error{.kind = static_cast<ClientErrorKind>(i)};
    EXPECT_FALSE(name_of(error.kind).empty());
    EXPECT_GT(error.text().size(), 10U);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline client::testkit
