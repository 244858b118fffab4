#include "io/client_hello.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace weir::inline v0::io {
namespace {

ClientHelloStatus judge(std::string_view bytes) {
  return judge_client_hello(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

std::string hello(std::size_t record) {
  std::string bytes("\x16\x03\x01", 3);
  bytes += static_cast<char>(record >> 8U);
  bytes += static_cast<char>(record & 0xffU);
  bytes += '\x01';
  return bytes + std::string(record - 1, 'x');
}

TEST(ClientHello, IsReadyWhenItsRecordIsWhole) {
  const std::string whole = hello(517);
  for (std::size_t n = 0; n < whole.size(); ++n)
    ASSERT_EQ(judge(std::string_view(whole).substr(0, n)), ClientHelloStatus::kNeedMore) << n;
  EXPECT_EQ(judge(whole), ClientHelloStatus::kReady);
  EXPECT_EQ(judge(whole + "more"), ClientHelloStatus::kReady);
}

TEST(ClientHello, ALongOneIsReadyOnceItHasPaid) {
  const std::string whole = hello(16384);
  EXPECT_EQ(judge(std::string_view(whole).substr(0, kClientHelloStage - 1)),
            ClientHelloStatus::kNeedMore);
  EXPECT_EQ(judge(std::string_view(whole).substr(0, kClientHelloStage)), ClientHelloStatus::kReady);
}

TEST(ClientHello, OtherProtocolsAreSeenAtTheirFirstBytes) {
  EXPECT_EQ(judge("G"), ClientHelloStatus::kNotTls);
  EXPECT_EQ(judge("PRI * HTTP/2.0"), ClientHelloStatus::kNotTls);
  EXPECT_EQ(judge("\x80\x2e\x01"), ClientHelloStatus::kNotTls) << "SSL 2";
  EXPECT_EQ(judge("\x16\x02"), ClientHelloStatus::kNotTls);
  EXPECT_EQ(judge(std::string_view("\x16\x03\x01\x00\x01", 5)), ClientHelloStatus::kNotTls);
  EXPECT_EQ(judge(std::string_view("\x16\x03\x01\x40\x01", 5)), ClientHelloStatus::kNotTls);
  EXPECT_EQ(judge(std::string_view("\x16\x03\x01\x01\x00\x02", 6)), ClientHelloStatus::kNotTls)
      << "another handshake message";
}

}  // namespace
}  // namespace weir::inline v0::io
