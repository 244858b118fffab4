#include "websocket_request.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "head_testing.h"

namespace weir::gateway {
namespace {

ServerRequest upgrading(const TestHead& head, std::string_view method = "GET") {
  ServerRequest request = head.request(method);
  request.upgrade = true;  // as the server found
  return request;
}

TEST(WebSocketRequest, IsOneUpgradeFieldThatNamesIt) {
  const auto asks = [](std::initializer_list<TestHead::Pair> lines) {
    const TestHead head(lines);
    return asks_for_websocket(upgrading(head));
  };
  EXPECT_TRUE(asks({{"upgrade", "websocket"}}));
  EXPECT_TRUE(asks({{"Upgrade", "WebSocket"}}));
  EXPECT_TRUE(asks({{"upgrade", "h2c, websocket"}}));
  EXPECT_FALSE(asks({{"upgrade", "h2c"}}));
  EXPECT_FALSE(asks({{"upgrade", "websocket2"}}));
  EXPECT_FALSE(asks({{"upgrade", "foo/1"}}));
  EXPECT_FALSE(asks({{"upgrade", "websocket/13"}}));
  EXPECT_FALSE(asks({{"upgrade", "websocket"}, {"upgrade", "websocket"}}));
  EXPECT_FALSE(asks({{"upgrade", "h2c"}, {"upgrade", "websocket"}}));
  EXPECT_FALSE(asks({{"upgrade", "websocket"}, {"content-length", "0"}}));
  EXPECT_FALSE(asks({{"upgrade", "websocket"}, {"transfer-encoding", "chunked"}}));
}

TEST(WebSocketRequest, IsAGetInHttp11) {
  const TestHead head{{"upgrade", "websocket"}};
  EXPECT_FALSE(asks_for_websocket(upgrading(head, "POST")));
  EXPECT_FALSE(asks_for_websocket(upgrading(head, "HEAD")));
  ServerRequest old = upgrading(head);
  old.version = HttpVersion::k10;
  EXPECT_FALSE(asks_for_websocket(old));
  EXPECT_FALSE(asks_for_websocket(head.request())) << "Connection does not name it";
}

ServerRequest connecting(const TestHead& head, std::string_view protocol) {
  ServerRequest request = head.request("CONNECT", "/chat");
  request.meta.protocol = protocol;
  request.version = HttpVersion::k2;
  request.body_length.reset();
  request.upgrade = true;
  return request;
}

TEST(WebSocketRequest, AnExtendedConnectIsAGetWithoutABody) {
  const TestHead head;
  const ServerRequest request = as_in_http1(connecting(head, "websocket"));
  EXPECT_EQ(request.meta.method, "GET");
  EXPECT_EQ(request.method, http::Method::kGet);
  EXPECT_EQ(request.meta.path, "/chat");
  EXPECT_EQ(request.body_length, 0U);
  EXPECT_TRUE(asks_for_websocket(request));
  EXPECT_FALSE(asks_for_websocket(as_in_http1(connecting(head, "connect-udp"))));
  ServerRequest ended = connecting(head, "websocket");
  ended.upgrade = false;
  EXPECT_FALSE(asks_for_websocket(as_in_http1(ended)));
  const ServerRequest plain = as_in_http1(head.request("CONNECT", ""));
  EXPECT_EQ(plain.method, http::Method::kConnect);
}

TEST(WebSocketRequest, JudgementTable) {
  const TestHead websocket{{"upgrade", "websocket"}};
  const TestHead other{{"upgrade", "foo"}};
  const TestHead none;
  RouteConfig all;
  RouteConfig nothing;
  nothing.upgrade.emplace();
  upstream::UpstreamConfig any;
  upstream::UpstreamConfig http2;
  http2.protocol = upstream::Protocol::kHttp2;
  const ServerRequest connect = as_in_http1(connecting(none, "websocket"));
  const ServerRequest unknown = as_in_http1(connecting(none, "foo"));

  EXPECT_EQ(judge_upgrade(upgrading(websocket), all, any).value(), true);
  EXPECT_EQ(judge_upgrade(upgrading(websocket), nothing, any).value(), false);
  EXPECT_EQ(judge_upgrade(upgrading(websocket), nothing, http2).value(), false);
  EXPECT_EQ(judge_upgrade(upgrading(other), all, http2).value(), false);
  EXPECT_EQ(judge_upgrade(none.request(), all, http2).value(), false);
  EXPECT_EQ(judge_upgrade(connect, all, any).value(), true);
  EXPECT_EQ(judge_upgrade(upgrading(websocket), all, http2).error(),
            GatewayRefusal::kUpgradeNeedsHttp1);
  EXPECT_EQ(judge_upgrade(connect, all, http2).error(), GatewayRefusal::kUpgradeNeedsHttp1);
  EXPECT_EQ(judge_upgrade(connect, nothing, any).error(), GatewayRefusal::kProtocolNotOffered);
  EXPECT_EQ(judge_upgrade(unknown, all, any).error(), GatewayRefusal::kProtocolNotOffered);
}

}  // namespace
}  // namespace weir::gateway
