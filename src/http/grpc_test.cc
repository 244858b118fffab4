#include "weir/experimental/http/grpc.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::http {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Grpc, TheContentTypeTellsCallsFromOthers) {
  for (const char* yes : {"application/grpc", "application/grpc+proto", "application/grpc+json",
                          "application/grpc;x=1", "APPLICATION/GRPC", "application/grpc ; a=b",
                          "Application/Grpc+Thrift"}) {
    EXPECT_TRUE(is_grpc_content_type(yes)) << yes;
  }
  for (const char* no : {"", "application/grpc-web", "application/grpc-web+proto",
                         "application/grpc-web-text", "application/grpcfoo", "application/json",
                         "application/grp", "text/application/grpc", " application/grpc"}) {
    EXPECT_FALSE(is_grpc_content_type(no)) << no;
  }
}

TEST(Grpc, ATimeoutHasOneToEightDigitsAndAUnit) {
  const std::array<std::pair<std::string_view, std::optional<Duration>>, 25> cases = {{
      {"1H", hours(1)},
      {"2M", minutes(2)},
      {"3S", seconds(3)},
      {"4m", milliseconds(4)},
      {"5u", microseconds(5)},
      {"6n", Duration(6)},
      {"0n", Duration(0)},
      {"00000001S", seconds(1)},
      {"99999999n", Duration(99'999'999)},
      {"99999999H", kGrpcTimeoutMax},
      {"99999999S", kGrpcTimeoutMax},
      {"24H", hours(24)},
      {"25H", kGrpcTimeoutMax},
      {"100000000n", std::nullopt},
      {"", std::nullopt},
      {"S", std::nullopt},
      {"1", std::nullopt},
      {"1s", std::nullopt},
      {"1 S", std::nullopt},
      {" 1S", std::nullopt},
      {"1S ", std::nullopt},
      {"-1S", std::nullopt},
      {"+1S", std::nullopt},
      {"1.5S", std::nullopt},
      {"0x1S", std::nullopt},
  }};
  for (const auto& [text, wanted] : cases) EXPECT_EQ(parse_grpc_timeout(text), wanted) << text;
}

TEST(Grpc, ATimeoutIsForwardedInMillisecondsAndNeverLonger) {
  const std::array<std::pair<Duration, std::string_view>, 9> cases = {{
      {seconds(3), "3000m"},
      {milliseconds(10), "10m"},
      {milliseconds(10) - Duration(1), "9999u"},
      {microseconds(1500), "1500u"},
      {Duration(1999), "1u"},
      {Duration(999), "0u"},
      {Duration(0), "0u"},
      {Duration(-5), "0u"},
      {hours(1000), "86400000m"},
  }};
  for (const auto& [left, wanted] : cases) EXPECT_EQ(GrpcTimeoutText(left).view(), wanted);
  Rng rng(7);
  for (int i = 0; i < 10'000; ++i) {
    const Duration left(static_cast<std::int64_t>(rng.next_u64() >> (18U + rng.next_u64() % 40)));
    const std::optional<Duration> read = parse_grpc_timeout(GrpcTimeoutText(left).view());
    ASSERT_TRUE(read) << left.count();
    ASSERT_LE(*read, left);
    ASSERT_GT(*read, std::min(left, kGrpcTimeoutMax) - milliseconds(1));
  }
}

TEST(Grpc, AStatusHasOneOrTwoDigits) {
  EXPECT_EQ(parse_grpc_status("0"), 0);
  EXPECT_EQ(parse_grpc_status("14"), 14);
  EXPECT_EQ(parse_grpc_status("08"), 8);
  EXPECT_EQ(parse_grpc_status("99"), 99);
  for (const char* bad : {"", "-1", "1 ", "x", "100", "0x", "1e"}) {
    EXPECT_EQ(parse_grpc_status(bad), std::nullopt) << bad;
  }
}

TEST(Grpc, HttpStatusesAreMappedAsClientsMapThem) {
  const std::array<std::pair<unsigned, GrpcStatus>, 12> cases = {{
      {400, GrpcStatus::kInternal},
      {401, GrpcStatus::kUnauthenticated},
      {403, GrpcStatus::kPermissionDenied},
      {404, GrpcStatus::kUnimplemented},
      {429, GrpcStatus::kUnavailable},
      {431, GrpcStatus::kInternal},
      {500, GrpcStatus::kUnknown},
      {502, GrpcStatus::kUnavailable},
      {503, GrpcStatus::kUnavailable},
      {504, GrpcStatus::kUnavailable},
      {200, GrpcStatus::kUnknown},
      {301, GrpcStatus::kUnknown},
  }};
  for (const auto& [http, grpc] : cases) EXPECT_EQ(grpc_status_of_http(http), grpc) << http;
}

}  // namespace
}  // namespace weir::http
