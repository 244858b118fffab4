#include "admin_host.h"

#include <vector>

#include <gtest/gtest.h>

namespace weir::gateway {
namespace {

TEST(AdminHost, AddressesLocalhostAndListedNamesAreAnswered) {
  const std::vector<std::string> hosts = {"weir.internal"};
  for (const char* host :
       {"127.0.0.1", "127.0.0.1:9901", "10.1.2.3:80", "[::1]", "[::1]:9901", "localhost",
        "LocalHost:9901", "weir.internal", "Weir.Internal:80", ""}) {
    EXPECT_TRUE(admin_host_allowed(host, hosts)) << host;
  }
}

TEST(AdminHost, OtherNamesAreNot) {
  const std::vector<std::string> hosts = {"weir.internal"};
  for (const char* host :
       {"evil.example", "evil.example:9901", "localhost.evil.example", "127.0.0.1.evil.example",
        "weir.internal.evil.example", "a.weir.internal", "[evil]", "::1", "[127.0.0.1]", ":9901",
        "2130706433", "0x7f000001"}) {
    EXPECT_FALSE(admin_host_allowed(host, hosts)) << host;
  }
}

}  // namespace
}  // namespace weir::gateway
