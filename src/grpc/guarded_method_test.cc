#include "guarded_method.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "weir/embed/clock.h"

#include "testing/store_testing.h"

namespace weir::grpc {
namespace {

using namespace testing;

/// Both APIs that own a handler per method.
class GuardedMethod : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<::grpc::Service> make_store() {
    return GetParam() ? make_callback_store(behaviour_) : make_sync_store(behaviour_);
  }
  Behaviour behaviour_;
  std::unique_ptr<::grpc::Service> store_ = make_store();
};

INSTANTIATE_TEST_SUITE_P(Api, GuardedMethod, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "Callback" : "Sync"; });

TEST_P(GuardedMethod, AnAdmittedCallIsServedAndItsPermitGivenBack) {
  TestServer server(limit_of(4), {}, *store_);
  const auto stub = server.stub();
  for (int i = 0; i < 20; ++i) {
    const Answer answer = ask_value(*stub);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_EQ(answer.data, "value");
    EXPECT_TRUE(answer.trailers.empty());
  }
  EXPECT_TRUE(server.wait_until_idle());
  EXPECT_EQ(server.controller().stats().admitted, 20U);
}

TEST_P(GuardedMethod, ARefusedCallHasStatusReasonAndHint) {
  TestServer server(limit_of(2),
                    {.methods = {{"/weir.testing.Store/GetValue", {.priority = Priority::kLow}}}},
                    *store_);
  const auto stub = server.stub();
  behaviour_.desk.hold();
  auto first = get_value(*stub);
  auto second = get_value(*stub);
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(2));
  const Answer third = ask_value(*stub);
  EXPECT_EQ(third.status.error_code(), ::grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(third.status.error_message(), "the service is at its limit");
  EXPECT_EQ(third.trailer("x-weir-reason"), "overload");
  EXPECT_GE(std::stoi(third.trailer("grpc-retry-pushback-ms")), 50);
  EXPECT_EQ(third.trailer("grpc-retry-after-ms"), third.trailer("grpc-retry-pushback-ms"));
  behaviour_.desk.release();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_TRUE(second.get().status.ok());
  EXPECT_EQ(behaviour_.desk.entered(), 2);
  EXPECT_TRUE(server.wait_until_idle());
}

TEST_P(GuardedMethod, AWaitingCallIsServedWhenAPlaceIsFree) {
  AdmissionConfig config = limit_of(1);
  config.high_wait_max = std::chrono::seconds(20);
  TestServer server(config,
                    {.methods = {{"/weir.testing.Store/GetValue", {.priority = Priority::kHigh}}}},
                    *store_);
  const auto stub = server.stub();
  behaviour_.desk.hold();
  auto first = get_value(*stub);
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(1));
  auto second = get_value(*stub);
  while (server.stats().waiting == 0) std::this_thread::yield();
  behaviour_.desk.release();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_TRUE(second.get().status.ok());
  EXPECT_EQ(behaviour_.desk.most_inside(), 1);
  EXPECT_TRUE(server.wait_until_idle());
}

TEST_P(GuardedMethod, TheBytesOfAMessageAreChargedToItsActor) {
  AdmissionConfig config = limit_of(8);
  config.bytes_max = 10'000;
  ServerOptions options;
  options.actor = [](const ::grpc::ServerContextBase&) { return std::string("alice"); };
  TestServer server(config, options, *store_);
  const auto stub = server.stub();
  behaviour_.desk.hold();
  auto first = get_value(*stub, {.data = std::string(6'000, 'x')});
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(1));
  EXPECT_GE(server.controller().stats().bytes, 6'000U);
  const Answer second = ask_value(*stub, {.data = std::string(6'000, 'x')});
  EXPECT_EQ(second.trailer("x-weir-reason"), "actor_bytes");
  EXPECT_NE(second.trailer("grpc-retry-pushback-ms"), "");
  const Answer never = ask_value(*stub, {.data = std::string(20'000, 'x')});
  EXPECT_EQ(never.status.error_code(), ::grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(never.trailer("x-weir-reason"), "too_large");
  EXPECT_EQ(never.trailer("grpc-retry-pushback-ms"), "");
  EXPECT_EQ(never.trailer("grpc-retry-after-ms"), "");
  behaviour_.desk.release();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_TRUE(server.wait_until_idle());
}

TEST_P(GuardedMethod, AMessageThatCannotBeParsedGivesItsPermitBack) {
  TestServer server(limit_of(1), {}, *store_);
  ::grpc::GenericStub stub(server.channel());
  const ::grpc::Slice garbage("\xff\xff\xff");
  const ::grpc::ByteBuffer request(&garbage, 1);
  for (int i = 0; i < 3; ++i) {
    ::grpc::ClientContext context;
    ::grpc::ByteBuffer response;
    std::promise<::grpc::Status> ended;
    stub.UnaryCall(&context, "/weir.testing.Store/GetValue", {}, &request, &response,
                   [&](::grpc::Status status) { ended.set_value(std::move(status)); });
    EXPECT_FALSE(ended.get_future().get().ok());
  }
  EXPECT_TRUE(server.wait_until_idle());
  EXPECT_EQ(server.controller().stats().admitted, 3U);
  EXPECT_EQ(behaviour_.desk.entered(), 0);
}

TEST_P(GuardedMethod, AHandlerThatThrowsGivesItsPermitBack) {
  if (GetParam()) return;  // the callback API has nobody to catch it after the reactor is made
  behaviour_.ends = [](::grpc::ServerContextBase&) -> ::grpc::Status {
    throw std::runtime_error("a bug");
  };
  TestServer server(limit_of(1), {}, *store_);
  const auto stub = server.stub();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ask_value(*stub).status.error_code(), ::grpc::StatusCode::UNKNOWN);
  }
  EXPECT_TRUE(server.wait_until_idle());
  EXPECT_EQ(server.stats().errors, 3U);
}

TEST_P(GuardedMethod, ACallTakesAsManyUnitsAsItsMethodCosts) {
  TestServer server(
      limit_of(4),
      {.methods = {{"/weir.testing.Store/GetValue", {.priority = Priority::kLow, .cost = 2}}}},
      *store_);
  const auto stub = server.stub();
  behaviour_.desk.hold();
  auto first = get_value(*stub);
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(1));
  EXPECT_EQ(server.stats().in_flight, 2U);
  EXPECT_EQ(ask_value(*stub).trailer("x-weir-reason"), "overload") << "3 of 4 are for class low";
  behaviour_.desk.release();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_TRUE(server.wait_until_idle());
}

// Nothing else happens on this server: the place does not become free.
TEST_P(GuardedMethod, ACallThatWaitsIsGivenUpAtItsDeadline) {
  AdmissionConfig config = limit_of(1);
  config.high_wait_max = std::chrono::seconds(20);
  TestServer server(config,
                    {.methods = {{"/weir.testing.Store/GetValue", {.priority = Priority::kHigh}}}},
                    *store_);
  const auto stub = server.stub();
  behaviour_.desk.hold();
  auto first = get_value(*stub);
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(1));
  const Answer late = ask_value(*stub, {.timeout = std::chrono::milliseconds(50)});
  EXPECT_EQ(late.status.error_code(), ::grpc::StatusCode::DEADLINE_EXCEEDED);
  const TimePoint give_up = embed::now() + std::chrono::seconds(10);
  while (server.admission().waiting() > 0 && embed::now() < give_up) std::this_thread::yield();
  EXPECT_EQ(server.admission().waiting(), 0);
  EXPECT_EQ(server.stats().refused[static_cast<std::size_t>(Reason::kDeadline)], 1U);
  behaviour_.desk.release();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_EQ(behaviour_.desk.entered(), 1);
}

TEST_P(GuardedMethod, OverloadIsToldAsUnavailableIfWantedAndHintsDiffer) {
  TestServer server(limit_of(1),
                    {.methods = {{"/weir.testing.Store/GetValue", {.priority = Priority::kLow}}},
                     .unavailable_on_overload = true},
                    *store_);
  const auto stub = server.stub();
  behaviour_.desk.hold();
  auto first = get_value(*stub);
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(1));
  std::set<std::string> hints;
  for (int i = 0; i < 30; ++i) {
    const Answer refused = ask_value(*stub);
    EXPECT_EQ(refused.status.error_code(), ::grpc::StatusCode::UNAVAILABLE);
    hints.insert(refused.trailer("grpc-retry-pushback-ms"));
  }
  EXPECT_GT(hints.size(), 1U) << "clients that are refused together do not come back together";
  behaviour_.desk.release();
  EXPECT_TRUE(first.get().status.ok());
}

TEST_P(GuardedMethod, CallsAskTheScopeOfTheirServer) {
  constexpr auto kOther = static_cast<ScopeId>(1);
  AdmissionConfig config = limit_of(8);
  config.scopes_max = 2;
  TestServer server(config, {.scope = kOther}, *store_);
  ASSERT_EQ(server.controller().add_scope("other", config.limit), kOther);
  const auto stub = server.stub();
  EXPECT_TRUE(ask_value(*stub).status.ok());
  EXPECT_TRUE(server.wait_until_idle());
  const auto admitted = [&](ScopeId scope) {
    const ScopeStats now = server.controller().scope_stats(scope, embed::now());
    return now.classes[index_of(Priority::kNormal)].acquired;
  };
  EXPECT_EQ(admitted(kOther), 1U);
  EXPECT_EQ(admitted(ScopeId::kFirst), 0U);
}

/// Looks at what interceptors of a user see.
class Onlooker final : public ::grpc::experimental::Interceptor {
 public:
  explicit Onlooker(std::atomic<int>& seen) : seen_(seen) {}
  void Intercept(::grpc::experimental::InterceptorBatchMethods* methods) override {
    using Point = ::grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(Point::POST_RECV_MESSAGE) &&
        methods->GetRecvMessage() == nullptr) {
      seen_.fetch_add(1);
    }
    methods->Proceed();
  }

 private:
  std::atomic<int>& seen_;
};

class OnlookerFactory final : public ::grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit OnlookerFactory(std::atomic<int>& seen) : seen_(seen) {}
  ::grpc::experimental::Interceptor* CreateServerInterceptor(
      ::grpc::experimental::ServerRpcInfo*) override {
    return new Onlooker(seen_);
  }

 private:
  std::atomic<int>& seen_;
};

TEST_P(GuardedMethod, InterceptorsOfTheUserRunAndSeeNoUnparsedBytes) {
  std::atomic<int> seen{0};
  TestServer server(limit_of(2), {}, [&](::grpc::ServerBuilder& builder) {
    std::vector<std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface>> list;
    list.push_back(std::make_unique<OnlookerFactory>(seen));
    builder.experimental().SetInterceptorCreators(std::move(list));
    builder.RegisterService(store_.get());
  });
  const auto stub = server.stub();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask_value(*stub).data, "value");
  EXPECT_EQ(seen, 5);
  EXPECT_TRUE(server.wait_until_idle());
}

TEST_P(GuardedMethod, WithoutOurBuilderAServiceIsGuardedByAdmit) {
  AdmissionController controller(limit_of(1), Rng(1));
  const Admission admission =
      admit(*store_, controller,
            {.methods = {{"/weir.testing.Store/GetValue", {.priority = Priority::kLow}}}});
  admission.guard(*store_);  // a second time has no effect
  ::grpc::ServerBuilder builder;
  builder.RegisterService(store_.get());
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  const auto stub = Store::NewStub(server->InProcessChannel({}));
  behaviour_.desk.hold();
  auto first = get_value(*stub);
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(1));
  EXPECT_EQ(ask_value(*stub).trailer("x-weir-reason"), "overload");
  behaviour_.desk.release();
  EXPECT_TRUE(first.get().status.ok());
  admission.close();
  server->Shutdown();
  EXPECT_EQ(controller.stats().in_flight, 0U);
}

}  // namespace
}  // namespace weir::grpc
