#include "response_collector.h"

#include <array>
#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

namespace weir::inline v0::inline client {
namespace {

/// A head with these fields, as a codec makes it.
struct Head {
  Head(unsigned status, std::initializer_list<http::HeaderView> fields) {
    head.headers.reset(storage);
    for (http::HeaderView field : fields) {
      field.id = http::field_id(field.name);
      field.hop_by_hop = http::is_hop_by_hop(field.id);
      head.headers.append(field);
    }
    head.status = status;
    head.body.kind = http::h1::BodyKind::kUntilClose;
  }
  Head& length(std::uint64_t bytes) {
    head.body.kind = http::h1::BodyKind::kLength;
    head.body.length = bytes;
    return *this;
  }
  std::array<http::HeaderView, 8> storage;
  upstream::ResponseHead head;
};

TEST(ResponseCollector, CopiesFieldsWithoutThoseOfOneHop) {
  ResponseCollector collector;
  ASSERT_TRUE(collector.take_head(
      Head(200, {{"X-A", "1"}, {"connection", "close"}, {"x-b", "2"}}).length(3).head, 10));
  ASSERT_TRUE(collector.take_body("abc", 10));
  ClientResponse& response = collector.response();
  EXPECT_EQ(response.status, 200);
  ASSERT_EQ(response.headers.size(), 2U);
  EXPECT_EQ(response.header("x-a"), "1");
  EXPECT_EQ(response.header("x-b"), "2");
  EXPECT_EQ(response.body, "abc");
  EXPECT_FALSE(collector.overloaded());
}

TEST(ResponseCollector, AnAnnouncedLengthIsJudgedBeforeTheBody) {
  ResponseCollector collector;
  EXPECT_TRUE(collector.take_head(Head(200, {}).length(10).head, 10));
  EXPECT_FALSE(collector.take_head(Head(200, {}).length(11).head, 10));
}

TEST(ResponseCollector, ABodyOfUnknownLengthGrowsUpToTheBound) {
  constexpr std::size_t kMax = 100'000;
  ResponseCollector collector;
  ASSERT_TRUE(collector.take_head(Head(200, {}).head, kMax));
  std::size_t taken = 0;
  while (taken + 777 <= kMax) {
    ASSERT_TRUE(collector.take_body(std::string(777, 'x'), kMax));
    taken += 777;
    EXPECT_LE(collector.response().body.capacity(), kMax);
  }
  EXPECT_FALSE(collector.take_body(std::string(777, 'x'), kMax));
  EXPECT_TRUE(collector.take_body(std::string(kMax - taken, 'x'), kMax));
  EXPECT_FALSE(collector.take_body("x", kMax));
  EXPECT_EQ(collector.response().body.size(), kMax);
  EXPECT_EQ(collector.response().body.capacity(), kMax);
}

TEST(ResponseCollector, KnowsWhatARefusalSays) {
  ResponseCollector collector;
  ASSERT_TRUE(
      collector.take_head(Head(503, {{"retry-after", "2"}, {"x-weir-reason", "memory"}}).head, 10));
  EXPECT_TRUE(collector.overloaded());
  EXPECT_TRUE(collector.unprocessed());
  EXPECT_EQ(collector.response().retry_after, std::chrono::seconds(2));
  ASSERT_TRUE(collector.take_head(Head(429, {{"x-weir-reason", "closed_early"}}).head, 10));
  EXPECT_TRUE(collector.overloaded());
  EXPECT_FALSE(collector.unprocessed()) << "not a reason of admission";
  EXPECT_FALSE(collector.pushback().has_value());
  ASSERT_TRUE(collector.take_head(Head(200, {{"x-weir-reason", "memory"}}).head, 10));
  EXPECT_FALSE(collector.unprocessed());
  ASSERT_TRUE(
      collector.take_head(Head(503, {{"retry-after", "Thu, 01 Jan 2026 00:00:00 GMT"}}).head, 10));
  ASSERT_TRUE(collector.pushback().has_value());
  EXPECT_TRUE(collector.pushback()->stop) << "a date is left to the caller";
}

}  // namespace
}  // namespace weir::inline v0::inline client
