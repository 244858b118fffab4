#include "status_watch.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "testing/store_testing.h"
#include "trailer_names.h"

namespace weir::grpc {
namespace {

using namespace testing;
using ::grpc::StatusCode;

/// What a server counts when its handlers end with a status.
class StatusWatch : public ::testing::TestWithParam<bool> {
 protected:
  /// The errors that the controller has counted after one call of each kind with this end.
  std::uint64_t errors_after(StatusCode code, bool pushback) {
    Behaviour behaviour;
    behaviour.ends = [=](::grpc::ServerContextBase& context) {
      if (pushback) context.AddTrailingMetadata(kPushbackTrailer, "100");
      return ::grpc::Status(code, "");
    };
    const auto store = GetParam() ? make_callback_store(behaviour) : make_sync_store(behaviour);
    TestServer server(limit_of(4), {}, *store);
    const auto stub = server.stub();
    EXPECT_EQ(ask_value(*stub).status.error_code(), code);
    {
      ::grpc::ClientContext context;
      Value response;
      const auto writer = stub->MigrateTransfer(&context, &response);
      writer->WritesDone();
      EXPECT_EQ(writer->Finish().error_code(), code);
    }
    {
      ::grpc::ClientContext context;
      const auto reader = stub->Scan(&context, Value());
      Value value;
      while (reader->Read(&value)) {
      }
      EXPECT_EQ(reader->Finish().error_code(), code);
    }
    {
      ::grpc::ClientContext context;
      const auto stream = stub->Sync(&context);
      stream->WritesDone();
      EXPECT_EQ(stream->Finish().error_code(), code);
    }
    EXPECT_TRUE(server.wait_until_idle());
    return server.stats().errors;
  }
};

INSTANTIATE_TEST_SUITE_P(Api, StatusWatch, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "Callback" : "Sync"; });

TEST_P(StatusWatch, TheStatusOfEveryKindOfCallIsSeen) {
  EXPECT_EQ(errors_after(StatusCode::OK, false), 0U);
  EXPECT_EQ(errors_after(StatusCode::INTERNAL, false), 4U);
  EXPECT_EQ(errors_after(StatusCode::CANCELLED, false), 0U);
}

TEST_P(StatusWatch, AnExhaustedResourceWithoutAPushbackIsAnError) {
  EXPECT_EQ(errors_after(StatusCode::RESOURCE_EXHAUSTED, false), 4U);
  EXPECT_EQ(errors_after(StatusCode::RESOURCE_EXHAUSTED, true), 0U);
}

TEST(StatusWatchDeathTest, ACallThatEndsWithoutAStatusThatWasSeenEndsTheProcess) {
  ::grpc::internal::Call call(nullptr, nullptr, nullptr);
  const ::grpc::CallbackServerContext context;
  const weir::grpc::StatusWatch watch(call);
  EXPECT_DEATH(static_cast<void>(watch.outcome(context)), "sent_");
}

}  // namespace
}  // namespace weir::grpc
