// A gateway that takes over the sockets of another one in the same process.
#include "gateway_sockets.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/experimental/gateway/gateway.h"
#include "weir/experimental/io/listener.h"

#include "gateway_testing.h"

namespace weir::inline v0::gateway {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testkit::Client;
using testkit::gateway_config;
using testkit::HeldOrigin;
using testkit::NamedOrigin;
using testkit::RunningGateway;

PassedSocket passed(const std::string& address, std::optional<SocketRole> role = {}) {
  auto fd = io::listen_on(*io::parse_socket_name(address), {});
  EXPECT_TRUE(fd.has_value());
  return {.fd = std::move(*fd), .role = role, .configured = {}, .name = {}, .held = true};
}

TEST(GatewaySockets, OfAServiceManagerServeTheAddressesTheyAreNamedAfter) {
  NamedOrigin origin("served");
  PassedSockets sockets;
  sockets.sockets.push_back(passed("127.0.0.1:0", SocketRole::kAdmin));
  sockets.sockets.push_back(passed("127.0.0.1:0", SocketRole::kListen));
  const auto admin = io::bound_name(sockets.sockets[0].fd.get());
  const auto web = io::bound_name(sockets.sockets[1].fd.get());
  Gateway gateway(gateway_config({origin.address()}));
  ASSERT_TRUE(gateway.start(std::move(sockets)).has_value());
  EXPECT_THAT(gateway.listening(), ElementsAre(web.to_string()));
  EXPECT_EQ(gateway.admin_listening(), admin.to_string());
  EXPECT_EQ(Client(web.address.port).get("/").body, "served");
}

TEST(GatewaySockets, OfAServiceManagerThatNoAddressStandsForAreAnError) {
  PassedSockets sockets;
  sockets.sockets.push_back(passed("127.0.0.1:0"));
  const std::string name = io::bound_name(sockets.sockets[0].fd.get()).to_string();
  Gateway gateway(gateway_config({testkit::unused_address()}));
  const auto started = gateway.start(std::move(sockets));
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().about, GatewayError::About::kSockets);
  EXPECT_THAT(started.error().message, HasSubstr("passed " + name + ", which no address"));
}

TEST(GatewaySockets, OfAPredecessorServeOnWhileItsRequestsFinish) {
  HeldOrigin slow;
  NamedOrigin fast("new");
  RunningGateway old(gateway_config({slow.address()}));
  const std::uint16_t port = old.port();
  Client in_flight(port);
  ASSERT_TRUE(slow.hold(in_flight));
  PassedSockets sockets{.sockets = old->listening_sockets(), .from_predecessor = true};
  ASSERT_EQ(sockets.sockets.size(), 2U);
  EXPECT_EQ(sockets.sockets[1].role, SocketRole::kAdmin);
  Gateway next(gateway_config({fast.address()}));
  ASSERT_TRUE(next.start(std::move(sockets)).has_value());
  EXPECT_EQ(next.listening(), old->listening()) << "the same port, though both say :0";
  EXPECT_EQ(next.admin_listening(), old->admin_listening());
  EXPECT_THAT(next.taken(), ElementsAre(true, true));

  old->share_sockets(next.taken());
  EXPECT_FALSE(old->drain_everything({.at_most = {}, .idle_grace = seconds(3600)}));
  EXPECT_TRUE(old->listening_sockets().empty()) << "it has nothing to give any more";
  Client waiting(port);
  ASSERT_TRUE(waiting.connected());
  ASSERT_TRUE(waiting.send(testkit::kGet));
  next.begin_accepting();
  EXPECT_EQ(waiting.read().body, "new");
  slow.let_go();
  const testkit::Answer answer = in_flight.read();
  EXPECT_EQ(answer.body, "done");
  EXPECT_TRUE(answer.has("connection: close"));
  EXPECT_TRUE(old->drain_everything({.at_most = seconds(10), .idle_grace = {}}));
}

TEST(GatewaySockets, ThatASuccessorDoesNotWantAreDrainedByTheirOwner) {
  NamedOrigin origin("old");
  config::Config before = gateway_config({origin.address()});
  before.server.listen = {"127.0.0.1:0", "unix:@weir-gateway-sockets-test"};
  RunningGateway old(before);
  PassedSockets sockets{.sockets = old->listening_sockets(), .from_predecessor = true};
  config::Config after = before;
  after.server.listen = {"unix:@weir-gateway-sockets-test"};
  after.admin.listen.reset();
  Gateway next(after);
  ASSERT_TRUE(next.start(std::move(sockets)).has_value());
  EXPECT_THAT(next.taken(), ElementsAre(false, true, false));
  const std::uint16_t port = old.port();
  old->share_sockets(next.taken());
  EXPECT_TRUE(old->drain_everything({.at_most = seconds(10), .idle_grace = {}}));
  EXPECT_FALSE(Client(port).connected()) << "nobody has that socket any more";
}

}  // namespace
}  // namespace weir::inline v0::gateway
