#include "weir/experimental/grpc/server_builder.h"

#include <memory>

#include <gtest/gtest.h>

#include "heartbeat.h"
#include "testing/store_testing.h"

namespace weir::grpc {
namespace {

using namespace testing;

TEST(ServerBuilder, OptionsWithErrorsStartNoServer) {
  AdmissionController controller(limit_of(4), Rng(1));
  weir::grpc::ServerBuilder builder(controller, {.methods = {{"GetValue", {}}}});
  ASSERT_EQ(builder.errors().size(), 1U);
  EXPECT_EQ(builder.BuildAndStart(), nullptr);
}

TEST(ServerBuilder, AMethodOfTheTableThatNobodyServesIsAnError) {
  Behaviour behaviour;
  const auto store = make_sync_store(behaviour);
  AdmissionController controller(limit_of(4), Rng(1));
  weir::grpc::ServerBuilder builder(
      controller,
      {.methods = {{"/weir.testing.Store/GetValue", {}}, {"/weir.testing.Store/GetVaule", {}}}});
  builder.RegisterService(store.get());
  EXPECT_EQ(builder.BuildAndStart(), nullptr);
  ASSERT_EQ(builder.errors().size(), 1U);
  EXPECT_EQ(builder.errors()[0].value, "/weir.testing.Store/GetVaule");
}

TEST(ServerBuilder, TwoServersCanShareOneController) {
  Behaviour behaviour;
  AdmissionController controller(limit_of(4), Rng(1));
  for (int round = 0; round < 2; ++round) {
    const auto one = make_sync_store(behaviour);
    const auto other = make_callback_store(behaviour);
    weir::grpc::ServerBuilder first(controller);
    weir::grpc::ServerBuilder second(controller);
    first.RegisterService(one.get());
    second.RegisterService(other.get());
    const auto first_server = first.BuildAndStart();
    const auto second_server = second.BuildAndStart();
    ASSERT_TRUE(first_server != nullptr && second_server != nullptr);
    EXPECT_TRUE(ask_value(*Store::NewStub(first_server->InProcessChannel({}))).status.ok());
    EXPECT_TRUE(ask_value(*Store::NewStub(second_server->InProcessChannel({}))).status.ok());
  }
  EXPECT_EQ(controller.stats().admitted, 4U);
}

TEST(ServerBuilder, AServiceThatOutlivesItsServerCanBeServedAgain) {
  Behaviour behaviour;
  const auto store = make_callback_store(behaviour);
  for (int round = 0; round < 2; ++round) {
    TestServer server(limit_of(4), {}, *store);
    EXPECT_TRUE(ask_value(*server.stub()).status.ok());
    EXPECT_EQ(server.controller().stats().admitted, 1U);
  }
}

}  // namespace
}  // namespace weir::grpc
