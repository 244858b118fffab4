// gRPC calls through the gateway, with an origin that answers as the test wants; real sockets.
#include <mutex>
#include <string>

#include <gtest/gtest.h>

#include "gateway_testing.h"
#include "server/h2/h2_testing.h"

namespace weir::gateway {
namespace {

namespace wire = http::h2::wire;
using server::testkit::H2Client;
using testkit::gateway_config;
using testkit::Origin;
using testkit::reply;
using testkit::RunningGateway;
using testkit::ScriptedHandler;

config::Config http2_to(const Origin& origin) {
  config::Config config = gateway_config({origin.address()});
  config.upstreams[0].protocol = upstream::Protocol::kHttp2;
  return config;
}

std::uint32_t call(H2Client& client, wire::Fields more = {}) {
  more.insert(more.begin(), {"content-type", "application/grpc"});
  const std::uint32_t id = client.post("/pkg.Service/Method", more);
  client.send(wire::data(id, "message", 1));
  return id;
}

TEST(GatewayGrpc, AnAnswerThatIsNotGrpcIsTranslatedWithItsHint) {
  Origin origin([](ScriptedHandler& handler) {
    handler.complete = [](ServerStream& stream) {
      const ResponseField fields[] = {{"content-type", "text/html"}, {"retry-after", "2"}};
      EXPECT_EQ(stream.send_response({.status = 503, .fields = fields, .content_length = {}},
                                     "<html>", BodyLife::kCall),
                SendResult::kSent);
    };
  });
  RunningGateway gateway(http2_to(origin));
  H2Client client(gateway.port());
  const auto& answer = client.finish(call(client));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.field("grpc-status"), "14");
  EXPECT_EQ(answer.field("grpc-retry-pushback-ms"), "2000");
  EXPECT_EQ(answer.field("x-weir-reason"), "not_grpc");
  EXPECT_EQ(answer.body, "");
  EXPECT_TRUE(gateway.settled());
}

TEST(GatewayGrpc, TheTimeThatIsLeftIsForwardedOnce) {
  std::mutex mutex;
  std::string seen;
  Origin origin([&](ScriptedHandler& handler) {
    handler.headers = [&](ServerStream&, const ServerRequest& request) {
      const std::scoped_lock lock(mutex);
      for (const http::HeaderView& field : *request.headers) {
        if (field.id == http::FieldId::kGrpcTimeout) seen.append(field.value).append(",");
      }
    };
    handler.complete = [](ServerStream& stream) {
      EXPECT_EQ(reply(stream, 200, "x"), SendResult::kSent);
    };
  });
  RunningGateway gateway(http2_to(origin));
  H2Client client(gateway.port());
  EXPECT_EQ(client.finish(call(client, {{"grpc-timeout", "10S"}})).field("grpc-status"), "2");
  const std::scoped_lock lock(mutex);
  ASSERT_EQ(seen.find(','), seen.size() - 1) << seen;
  ASSERT_TRUE(seen.ends_with("m,")) << seen;
  EXPECT_LE(std::stoi(seen), 10'000);
  EXPECT_GT(std::stoi(seen), 1000);
}

TEST(GatewayGrpc, TheDeadlineHoldsAfterTheAnswerHasBegun) {
  Origin origin([](ScriptedHandler& handler) {
    handler.headers = [](ServerStream& stream, const ServerRequest&) {
      const ResponseField fields[] = {{"content-type", "application/grpc"}};
      EXPECT_EQ(stream.send_headers({.status = 200, .fields = fields, .content_length = {}}),
                SendResult::kSent);
    };
  });
  RunningGateway gateway(http2_to(origin));
  H2Client client(gateway.port());
  const auto& answer = client.finish(call(client, {{"grpc-timeout", "300m"}}));
  EXPECT_EQ(answer.status, 200);
  wire::Fields status;
  for (const auto& field : answer.trailers) {
    if (field.first == "grpc-status") status.push_back(field);
  }
  EXPECT_EQ(status, (wire::Fields{{"grpc-status", "4"}}));
  EXPECT_TRUE(gateway.settled());
}

}  // namespace
}  // namespace weir::gateway
