#include "peer_address.h"

#include <gtest/gtest.h>

namespace weir::grpc {
namespace {

TEST(PeerAddress, TheAddressOfATcpPeerIsFound) {
  EXPECT_EQ(address_of_peer("ipv4:192.0.2.1:8080"), parse_ip("192.0.2.1"));
  EXPECT_EQ(address_of_peer("ipv6:[2001:db8::1]:8080"), parse_ip("2001:db8::1"));
  EXPECT_EQ(address_of_peer("ipv6:%5B2001:db8::1%5D:8080"), parse_ip("2001:db8::1"));
}

TEST(PeerAddress, AMappedAddressIsTheV4Address) {
  EXPECT_EQ(address_of_peer("ipv6:[::ffff:192.0.2.1]:1"), parse_ip("192.0.2.1"));
}

TEST(PeerAddress, OthersHaveNone) {
  for (const char* peer :
       {"", "ipv4:", "ipv4:x:1", "ipv6:", "ipv6:[]:1", "ipv6:2001:db8::1", "ipv6:[2001:db8::1",
        "ipv6:%5B2001:db8::1]:1", "unix:/run/a", "inproc"}) {
    EXPECT_EQ(address_of_peer(peer), std::nullopt) << peer;
  }
}

}  // namespace
}  // namespace weir::grpc
