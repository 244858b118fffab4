#include "upstream/held_response.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::inline v0::upstream {
namespace {

class HeldResponseTest : public ::testing::Test {
 protected:
  void SetUp() override { held.attach(block.data(), {.body_bytes = 64, .field_bytes = 64}); }

  http::HeaderList fields_of(std::vector<http::HeaderView> list) {
    http::HeaderList fields;
    fields.reset(storage);
    for (const http::HeaderView& field : list) fields.append(field);
    return fields;
  }

  std::array<char, 128> block{};
  std::array<http::HeaderView, 8> storage{};
  std::array<http::HeaderView, 8> out{};
  HeldResponse held;
};

TEST_F(HeldResponseTest, AHeadComesBackAsItWas) {
  ResponseHead head;
  head.status = 418;
  head.protocol = WireProtocol::kHttp2;
  head.headers = fields_of({{"retry-after", "7", http::FieldId::kRetryAfter, false},
                            {"x-empty", "", http::FieldId::kOther, false}});
  ASSERT_TRUE(held.put_head(head));
  EXPECT_TRUE(held.has_head());
  EXPECT_FALSE(held.empty());
  const ResponseHead back = held.head(out);
  EXPECT_EQ(back.status, 418U);
  EXPECT_EQ(back.protocol, WireProtocol::kHttp2);
  ASSERT_EQ(back.headers.size(), 2U);
  EXPECT_EQ(back.headers.value(http::FieldId::kRetryAfter), "7");
  EXPECT_EQ(back.headers[1].value, "");
  held.drop_fields();
  EXPECT_TRUE(held.empty());
}

TEST_F(HeldResponseTest, BodyBytesKeepTheirOrderThroughAFullBlock) {
  std::string given;
  std::string taken;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::string piece(i % 40, static_cast<char>('a' + i % 26));
    held.put_body(piece);
    given += piece;
    const std::size_t n = held.body().size() > 20 ? held.body().size() - i % 20 : 0;
    taken += held.body().substr(0, n);
    held.consume(n);
  }
  taken += held.body();
  EXPECT_EQ(taken, given);
}

TEST_F(HeldResponseTest, FieldsThatDoNotFitAreRefused) {
  const std::string large(60, 'x');
  const http::HeaderList fields = fields_of({{"name", large, http::FieldId::kOther, false}});
  EXPECT_FALSE(held.put_trailers(fields));
  EXPECT_TRUE(held.empty());
}

TEST_F(HeldResponseTest, TrailersWaitBehindTheBody) {
  held.put_body("body");
  ASSERT_TRUE(held.put_trailers(fields_of({{"x-sum", "1", http::FieldId::kOther, false}})));
  EXPECT_TRUE(held.has_trailers());
  EXPECT_EQ(held.body(), "body");
  EXPECT_EQ(held.trailers(out)[0].value, "1");
}

}  // namespace
}  // namespace weir::inline v0::upstream
