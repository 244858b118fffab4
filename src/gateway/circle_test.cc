#include "circle.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

TEST(Circle, IsAnEndpointThatTheGatewayItselfListensOn) {
  UpstreamPlace place("app", ScopeId::kFirst, 1);
  const auto objection = [&](const char* endpoint, const char* own) {
    std::vector<upstream::DiscoveredEndpoint> endpoints(2);
    endpoints[0].address = *io::parse_socket_name("192.0.2.1:80");
    endpoints[1].address = *io::parse_socket_name(endpoint);
    upstream::Upstream::Setup setup;
    setup.config.name = "app";
    const UpstreamSet set{.all = {std::make_shared<ServedUpstream>(
                              place, std::move(setup), std::move(endpoints), TimePoint{})}};
    const std::vector<io::SocketName> names = {*io::parse_socket_name("192.0.2.9:81"),
                                               *io::parse_socket_name(own)};
    const std::vector<io::SocketName> admin = {*io::parse_socket_name("127.0.0.1:9901")};
    return circle_objection(set, {.own = names, .admin = admin});
  };
  EXPECT_EQ(objection("127.0.0.1:80", "127.0.0.1:80"),
            "upstream app: endpoint 127.0.0.1:80 is this gateway itself");
  EXPECT_EQ(objection("127.0.0.1:80", "127.0.0.1:81"), "");
  EXPECT_NE(objection("127.0.0.1:80", "0.0.0.0:80"), "") << "every address of this machine";
  EXPECT_NE(objection("[::1]:80", "[::]:80"), "");
  EXPECT_EQ(objection("192.0.2.7:80", "0.0.0.0:80"), "") << "not known to be ours";
  EXPECT_NE(objection("unix:/run/a", "unix:/run/a"), "");
  EXPECT_EQ(objection("127.0.0.1:9901", "127.0.0.1:80"),
            "upstream app: endpoint 127.0.0.1:9901 is the admin address of this gateway: its pages "
            "are for operators only");
}

}  // namespace
}  // namespace weir::gateway
