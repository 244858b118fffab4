#include "canned_responses.h"

#include <string>

#include <gtest/gtest.h>

namespace weir::inline v0::inline server {
namespace {

TEST(CannedResponses, EachSaysItsStatusAndItsEnd) {
  for (const unsigned status : {400U, 408U, 413U, 414U, 417U, 431U, 501U, 503U, 505U}) {
    const std::string_view text = canned_close(status);
    EXPECT_TRUE(text.starts_with("HTTP/1.1 " + std::to_string(status) + " "));
    EXPECT_NE(text.find("\r\ncontent-length: 0\r\n"), std::string_view::npos);
    EXPECT_NE(text.find("\r\nconnection: close\r\n"), std::string_view::npos);
    EXPECT_TRUE(text.ends_with("\r\n\r\n"));
  }
  EXPECT_EQ(canned_close(499), canned_close(400)) << "what is not known is a bad request";
}

TEST(CannedResponses, OverloadMayKeepTheConnection) {
  EXPECT_TRUE(canned_503_keep().starts_with("HTTP/1.1 503 "));
  EXPECT_EQ(canned_503_keep().find("connection"), std::string_view::npos);
  EXPECT_NE(canned_503_keep().find("\r\nretry-after: "), std::string_view::npos);
}

TEST(CannedResponses, OverloadNamesItsReason) {
  for (const std::string_view text : {canned_503_keep(), canned_close(503)}) {
    EXPECT_NE(text.find("\r\nx-weir-reason: no_place\r\n"), std::string_view::npos);
  }
}

}  // namespace
}  // namespace weir::inline v0::inline server
