#include "h2/nv_list.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::inline v0::http::h2 {
namespace {

bool accepts(const Field& field) {
  NvList list;
  return list.append({&field, 1});
}

TEST(NvList, RefusesWhatHttp2Forbids) {
  EXPECT_TRUE(accepts({"x-a", "b"}));
  EXPECT_TRUE(accepts({"X-Upper", "the library lowers it"}));
  for (const char* name :
       {"connection", "Keep-Alive", "proxy-connection", "transfer-encoding", "upgrade"})
    EXPECT_FALSE(accepts({name, "x"})) << name;
  EXPECT_FALSE(accepts({"", "x"}));
  EXPECT_FALSE(accepts({":path", "/"}));
  EXPECT_FALSE(accepts({"a b", "x"}));
  EXPECT_FALSE(accepts({"a", "x\r\ny: z"}));
  EXPECT_FALSE(accepts({"a", std::string_view("\0", 1)}));
}

TEST(NvList, SecretsStayOutOfTheTable) {
  NvList list;
  const std::vector<Field> fields = {
      {"authorization", "1"}, {"cookie", "2"}, {"x-api-key", "3"}, {"set-cookie", "4"}, {"x", "5"}};
  ASSERT_TRUE(list.append(fields));
  for (std::size_t i = 0; i < list.size(); ++i)
    EXPECT_EQ(list.data()[i].flags, i < 4 ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE) << i;
}

TEST(NvList, HoldsABoundedNumber) {
  const std::vector<Field> fields(160, {"a", "b"});
  NvList full;
  EXPECT_TRUE(full.append(fields));
  EXPECT_FALSE(full.append({fields.data(), 1}));
}

}  // namespace
}  // namespace weir::inline v0::http::h2
