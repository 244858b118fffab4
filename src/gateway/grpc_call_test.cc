#include "grpc_call.h"

#include <gtest/gtest.h>

#include "head_testing.h"

namespace weir::gateway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

upstream::ResponseHead answer(unsigned status, const TestHead& fields) {
  return {.headers = fields.list(), .body = {}, .status = status};
}

TEST(GrpcCall, IsAnHttp2RequestWithItsContentType) {
  const TestHead head{{"content-type", "application/grpc+proto"}};
  ServerRequest request = head.request("POST", "/pkg.Service/Method");
  EXPECT_FALSE(is_grpc(request)) << "over HTTP/1.1 there are no trailers to rely on";
  request.version = HttpVersion::k2;
  EXPECT_TRUE(is_grpc(request));
  EXPECT_EQ(wanted_form(request), AnswerForm::kGrpc);
  const TestHead web{{"content-type", "application/grpc-web"}};
  request = web.request("POST", "/pkg.Service/Method");
  request.version = HttpVersion::k2;
  EXPECT_FALSE(is_grpc(request));
}

TEST(GrpcCall, HasATimeoutAtMostOnce) {
  const auto read = [](const TestHead& head) { return read_grpc_timeout(head.list()); };
  EXPECT_EQ(*read(TestHead{}), std::nullopt);
  EXPECT_EQ(*read(TestHead{{"grpc-timeout", "5S"}}), seconds(5));
  EXPECT_EQ(read(TestHead{{"grpc-timeout", "5S"}, {"grpc-timeout", "5S"}}).error(),
            GatewayRefusal::kBadGrpcTimeout);
  for (const char* bad : {"", "5", "5s", "123456789n", "-1S"}) {
    EXPECT_EQ(read(TestHead{{"grpc-timeout", bad}}).error(), GatewayRefusal::kBadGrpcTimeout)
        << bad;
  }
}

TEST(GrpcCall, TheDeadlineOfAMethodIsTheLongest) {
  EXPECT_EQ(shorter(std::nullopt, std::nullopt), std::nullopt);
  EXPECT_EQ(shorter(seconds(5), std::nullopt), seconds(5));
  EXPECT_EQ(shorter(seconds(5), Duration(0)), seconds(5)) << "0: no limit";
  EXPECT_EQ(shorter(seconds(5), seconds(2)), seconds(2));
  EXPECT_EQ(shorter(seconds(1), seconds(2)), seconds(1));
  EXPECT_EQ(shorter(std::nullopt, seconds(2)), seconds(2));
}

TEST(GrpcCall, AnAnswerIsOneOfGrpcByStatusAndContentType) {
  const TestHead grpc{{"content-type", "application/grpc"}};
  const TestHead html{{"content-type", "text/html"}};
  EXPECT_TRUE(is_grpc_answer(answer(200, grpc)));
  EXPECT_FALSE(is_grpc_answer(answer(503, grpc)));
  EXPECT_FALSE(is_grpc_answer(answer(200, html)));
}

TEST(GrpcCall, AnotherAnswerIsTranslatedWithItsHint) {
  EXPECT_EQ(grpc_answer_for(answer(503, {})).grpc, 14);
  EXPECT_EQ(grpc_answer_for(answer(404, {})).grpc, 12);
  EXPECT_EQ(grpc_answer_for(answer(200, {})).grpc, 2);
  EXPECT_EQ(grpc_answer_for(answer(503, {})).retry_after, std::nullopt);
  EXPECT_EQ(grpc_answer_for(answer(503, {{"retry-after", "2"}})).retry_after, seconds(2));
  EXPECT_EQ(grpc_answer_for(answer(503, {{"x-weir-retry-after-ms", "70"}, {"retry-after", "1"}}))
                .retry_after,
            milliseconds(70));
  for (const char* field : {"retry-after", "x-weir-retry-after-ms"}) {  // 32 bits of milliseconds
    EXPECT_EQ(grpc_answer_for(answer(503, {{field, "4294967295"}})).retry_after,
              std::chrono::hours(1))
        << "and no number that clients take for \"never\"";
  }
  EXPECT_EQ(grpc_answer_for(answer(503, {{"retry-after", "Thu, 01 Jan 1970"}})).retry_after,
            std::nullopt);
}

}  // namespace
}  // namespace weir::gateway
