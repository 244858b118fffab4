#include "health_check.h"

#include <string>

#include <gtest/gtest.h>

#include "h2_origin_testing.h"
#include "upstream/dispatcher_testing.h"

// Checks of a dispatcher whose origin the test controls.

namespace weir::inline v0::upstream {
namespace {

class HealthCheckTest : public DispatcherTest {
 protected:
  static UpstreamConfig with_checks(HealthCheckKind kind) {
    UpstreamConfig config;
    config.health.kind = kind;
    config.health.path = "/well";
    config.health.interval = std::chrono::milliseconds(10);
    config.health.timeout = std::chrono::milliseconds(1000);
    config.health.rise = 1;
    config.health.fall = 2;
    return config;
  }
  [[nodiscard]] policy::EndpointHealth health() const {
    return upstream->endpoints()->members[0].endpoint->health();
  }
  /// The next check arrives and gets this answer; the connection stays open.
  void answer_check(std::string_view answer) {
    EXPECT_TRUE(origin.read_head(loop).starts_with("GET /well HTTP/1.1\r\nhost: "));
    origin.write(answer);
  }

  static constexpr std::string_view kGood = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
  static constexpr std::string_view kBad =
      "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n";
  FakeOrigin origin;
};

TEST_F(HealthCheckTest, FailedAnswersInARowEjectAndGoodOnesBringBack) {
  make({origin.name()}, with_checks(HealthCheckKind::kHttp));
  origin.accept(loop);
  answer_check(kBad);
  answer_check(kGood);
  answer_check(kBad);
  EXPECT_EQ(health().state(), policy::EndpointState::kAvailable) << "not twice in a row";
  answer_check(kBad);
  run_until([&] { return health().state() == policy::EndpointState::kEjected; });
  EXPECT_EQ(health().reason(), policy::HealthReason::kChecksFailed);
  answer_check(kGood);
  run_until([&] { return health().state() != policy::EndpointState::kEjected; });
}

TEST_F(HealthCheckTest, ADrainAnswerTakesNoNewRequests) {
  UpstreamConfig config = with_checks(HealthCheckKind::kHttp);
  config.health.drain_status = 503;
  make({origin.name()}, config);
  origin.accept(loop);
  answer_check("HTTP/1.1 503 Leaving\r\ncontent-length: 0\r\n\r\n");
  run_until([&] { return health().state() == policy::EndpointState::kDraining; });
  origin.accept_another(loop);  // its kept connections were closed
  answer_check(kGood);
  run_until([&] { return health().state() != policy::EndpointState::kDraining; });
}

TEST_F(HealthCheckTest, ChecksAreNotCountedAsRequests) {
  make({origin.name()}, with_checks(HealthCheckKind::kHttp));
  origin.accept(loop);
  for (int i = 0; i < 3; ++i) answer_check(kGood);
  const Endpoint& endpoint = *upstream->endpoints()->members[0].endpoint;
  EXPECT_EQ(endpoint.sum([](const EndpointCounters& c) { return c.attempts.get(); }), 0U);
  EXPECT_EQ(endpoint.sum([](const EndpointCounters& c) { return c.answered.get(); }), 0U);
  EXPECT_EQ(endpoint.in_flight(), 0U);
}

TEST_F(HealthCheckTest, AConnectIsEnoughForTcp) {
  make({origin.name()}, with_checks(HealthCheckKind::kTcp));
  run_until([&] { return origin.has_caller(); });
  EXPECT_EQ(health().state(), policy::EndpointState::kAvailable);
  origin.stop_listening();
  run_until([&] { return health().state() == policy::EndpointState::kEjected; });
  EXPECT_EQ(health().reason(), policy::HealthReason::kChecksFailed);
}

class GrpcHealthCheckTest : public HealthCheckTest {
 protected:
  static UpstreamConfig with_grpc_checks(Protocol protocol) {
    UpstreamConfig config = with_checks(HealthCheckKind::kGrpc);
    config.protocol = protocol;
    config.health.service = "pkg.S";
    return config;
  }
  /// The next check arrives and gets this HealthCheckResponse.
  void answer_grpc(H2Origin& service, std::string_view message) {
    const std::size_t before = answered_;
    const auto arrived = [&] {
      service.step(loop);
      return service.requests.size() > before && service.requests.rbegin()->second.ended;
    };
    run_until(arrived);
    answered_ = service.requests.size();
    const auto& [id, request] = *service.requests.rbegin();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/grpc.health.v1.Health/Check");
    EXPECT_EQ(request.fields.at("content-type"), "application/grpc");
    EXPECT_EQ(request.fields.at("te"), "trailers");
    EXPECT_EQ(request.body, std::string("\0\0\0\0\x07\x0a\x05pkg.S", 12));
    service.answer(id, 200, false, {{"content-type", "application/grpc"}});
    const std::string frame = std::string("\0\0\0\0", 4) + static_cast<char>(message.size());
    service.data(loop, id, frame + std::string(message), true);
    service.step(loop);
  }
  static constexpr std::string_view kServing = "\x08\x01";
  static constexpr std::string_view kNotServing = "\x08\x02";

 private:
  std::size_t answered_ = 0;
};

TEST_F(GrpcHealthCheckTest, AsksTheHealthServiceForTheService) {
  make({origin.name()}, with_grpc_checks(Protocol::kHttp2));
  origin.accept(loop);
  H2Origin service(origin);
  service.begin(loop.now());
  answer_grpc(service, kServing);
  EXPECT_EQ(health().state(), policy::EndpointState::kAvailable);
  answer_grpc(service, kNotServing);
  answer_grpc(service, kNotServing);
  run_until([&] { return health().state() == policy::EndpointState::kEjected; });
  EXPECT_EQ(health().reason(), policy::HealthReason::kChecksFailed);
  answer_grpc(service, kServing);
  run_until([&] { return health().state() != policy::EndpointState::kEjected; });
}

TEST_F(GrpcHealthCheckTest, AnEndpointOfHttp1FailsItUnasked) {
  make({origin.name()}, with_grpc_checks(Protocol::kHttp1));
  origin.accept(loop);
  run_until([&] { return health().state() == policy::EndpointState::kEjected; });
  EXPECT_EQ(health().reason(), policy::HealthReason::kChecksFailed);
  EXPECT_EQ(origin.read_some(), "");
}

}  // namespace
}  // namespace weir::inline v0::upstream
