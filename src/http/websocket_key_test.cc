#include "http/websocket_key.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

// The first is the example of RFC 6455 §1.3. The others were computed with Python's hashlib; with
// the fixed text they fill one block, two blocks, and the sizes at which the padding changes.
TEST(WebSocketKey, AcceptIsThatOfKnownKeys) {
  EXPECT_EQ(WebSocketAccept("dGhlIHNhbXBsZSBub25jZQ==").view(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_EQ(WebSocketAccept("").view(), "Kfh9QIsMVZcl6xEPYxPHzW8SZ8w=");
  EXPECT_EQ(WebSocketAccept(std::string(19, 'a')).view(), "yzaGyu0mcUukN7CdsSwa30tnCpc=");
  EXPECT_EQ(WebSocketAccept(std::string(20, 'a')).view(), "dUYRM7bOMwDmbriNIPr11x+r3E0=");
  EXPECT_EQ(WebSocketAccept(std::string(27, 'a')).view(), "NCEiOv6lMC9mC8oEZnneqRdJ4DU=");
  EXPECT_EQ(WebSocketAccept(std::string(28, 'a')).view(), "xMWmCBqYJY4uXzUs8PNU1t+Pzro=");
  EXPECT_EQ(WebSocketAccept(std::string(64, 'a')).view(), "jGdebzmm20QI0DmM5dGETWg7dwQ=");
}

TEST(WebSocketKey, IsSixteenBytesInBase64) {
  Rng rng(1);
  std::set<std::string> drawn;
  for (int i = 0; i < 1000; ++i) {
    const WebSocketKey key = WebSocketKey::draw(rng);
    ASSERT_EQ(key.view().size(), 24U);
    EXPECT_EQ(key.view().substr(22), "==");
    EXPECT_EQ(key.view().substr(0, 22).find_first_not_of(
                  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
              std::string_view::npos);
    drawn.insert(std::string(key.view()));
  }
  EXPECT_EQ(drawn.size(), 1000U);
}

TEST(WebSocketKey, OnlyItsOwnAnswerIsAccepted) {
  Rng rng(2);
  const WebSocketKey key = WebSocketKey::draw(rng);
  const WebSocketKey other = WebSocketKey::draw(rng);
  const WebSocketAccept answer(key.view());
  EXPECT_TRUE(key.accepts(answer.view()));
  EXPECT_FALSE(other.accepts(answer.view()));
  EXPECT_FALSE(key.accepts(""));
  EXPECT_FALSE(key.accepts(answer.view().substr(1)));
  EXPECT_TRUE(WebSocketKey().empty());
  EXPECT_FALSE(key.empty());
}

}  // namespace
}  // namespace weir::http
