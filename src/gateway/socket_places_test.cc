#include "socket_places.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::inline v0::gateway {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Matched = std::vector<std::optional<std::size_t>>;

constexpr auto kNoSocket = std::nullopt;

SocketOffer bound_to(const std::string& address, std::optional<SocketRole> role = {},
                     const std::string& configured = {}) {
  return {.bound = *io::parse_socket_name(address), .role = role, .configured = configured};
}

TEST(SocketPlaces, AreTheAddressesOfTheConfigurationInTheirOrder) {
  config::Config config;
  config.server.listen = {"127.0.0.1:80", "unix:/run/a"};
  EXPECT_THAT(socket_places(config), ElementsAre(SocketPlace{SocketRole::kListen, "127.0.0.1:80"},
                                                 SocketPlace{SocketRole::kListen, "unix:/run/a"},
                                                 SocketPlace{SocketRole::kAdmin, "127.0.0.1:9901"}))
      << "without a certificate tls.listen is not used";
  config.server.tls.certificate = config.server.tls.private_key = "x.pem";
  config.admin.listen.reset();
  EXPECT_EQ(socket_places(config).back(), (SocketPlace{SocketRole::kTls, "127.0.0.1:8443"}));
}

TEST(SocketPlaces, GetTheSocketThatIsBoundToTheirAddress) {
  const std::vector<SocketPlace> places = {{SocketRole::kListen, "127.0.0.1:80"},
                                           {SocketRole::kListen, ":81"},
                                           {SocketRole::kListen, "unix:/run/a"},
                                           {SocketRole::kTls, "[::1]:443"}};
  const std::vector<SocketOffer> offers = {bound_to("[::1]:443"), bound_to("unix:/run/a"),
                                           bound_to(":81"), bound_to("127.0.0.1:82")};
  EXPECT_EQ(match_sockets(places, offers, false), (Matched{kNoSocket, 2, 1, 0}));
}

TEST(SocketPlaces, PreferTheSameRoleButABoundAddressIsStronger) {
  const std::vector<SocketPlace> places = {{SocketRole::kListen, "127.0.0.1:80"},
                                           {SocketRole::kTls, "127.0.0.1:443"}};
  const std::vector<SocketOffer> swapped = {bound_to("127.0.0.1:80", SocketRole::kTls),
                                            bound_to("127.0.0.1:443", SocketRole::kListen)};
  EXPECT_EQ(match_sockets(places, swapped, true), (Matched{0, 1}))
      << "an address that speaks TLS now keeps its socket";
}

TEST(SocketPlaces, WithPortZeroGetTheSocketThatHadTheSameTextBefore) {
  const std::vector<SocketPlace> places = {{SocketRole::kListen, "127.0.0.1:0"},
                                           {SocketRole::kListen, "127.0.0.1:0"},
                                           {SocketRole::kAdmin, "127.0.0.1:0"}};
  const std::vector<SocketOffer> offers = {
      bound_to("127.0.0.1:5001", SocketRole::kAdmin, "127.0.0.1:0"),
      bound_to("127.0.0.1:5002", SocketRole::kListen, "127.0.0.1:0"),
      bound_to("127.0.0.1:5003", SocketRole::kListen, "127.0.0.1:0")};
  EXPECT_EQ(match_sockets(places, offers, false), (Matched{1, 2, 0}));
}

TEST(SocketPlaces, AreGivenByRoleOnlyIfThatIsAskedFor) {
  const std::vector<SocketPlace> places = {{SocketRole::kListen, "127.0.0.1:8080"},
                                           {SocketRole::kAdmin, "127.0.0.1:9901"}};
  const std::vector<SocketOffer> offers = {bound_to("0.0.0.0:80", SocketRole::kListen),
                                           bound_to("0.0.0.0:81", SocketRole::kListen)};
  EXPECT_EQ(match_sockets(places, offers, true), (Matched{0, kNoSocket}));
  EXPECT_EQ(match_sockets(places, offers, false), (Matched{kNoSocket, kNoSocket}));
}

TEST(SocketPlaces, ASocketThatNobodyWantsIsNamedWithWhatToDo) {
  const std::vector<SocketOffer> offers = {bound_to("0.0.0.0:80"), bound_to("0.0.0.0:81"),
                                           bound_to("unix:/run/x")};
  EXPECT_EQ(unused_objection(offers, Matched{0, 1, 2}), "");
  const std::string text = unused_objection(offers, Matched{kNoSocket, 1});
  EXPECT_THAT(text, HasSubstr("passed 0.0.0.0:80, unix:/run/x, which no address of"));
  EXPECT_THAT(text, HasSubstr("FileDescriptorName="));
}

}  // namespace
}  // namespace weir::inline v0::gateway
