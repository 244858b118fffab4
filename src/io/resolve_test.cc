#include "weir/experimental/io/resolve.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace weir::io {
namespace {

std::vector<io::SocketName> resolved(std::string_view text) {
  const auto address = parse_net_address(text);
  EXPECT_TRUE(address.has_value()) << text;
  auto names = io::resolve(*address);
  EXPECT_TRUE(names.has_value()) << text;
  return names ? *names : std::vector<io::SocketName>{};
}

TEST(Resolve, NumericAddressesAndPathsAreThemselves) {
  for (const char* text : {"127.0.0.1:80", "[2001:db8::1]:443", "unix:/run/app.sock"}) {
    const auto names = resolved(text);
    ASSERT_EQ(names.size(), 1U) << text;
    EXPECT_EQ(names[0].to_string(), text);
    EXPECT_EQ(names[0], *io::parse_socket_name(text));
  }
}

TEST(Resolve, LocalhostIsALoopbackAddress) {
  const auto names = resolved("localhost:8080");
  ASSERT_FALSE(names.empty());
  EXPECT_TRUE(std::all_of(names.begin(), names.end(), [](const io::SocketName& name) {
    return name.to_string() == "127.0.0.1:8080" || name.to_string() == "[::1]:8080";
  }));
}

TEST(Resolve, AnUnknownNameIsToldInTheResolversWords) {
  const auto names = io::resolve(*parse_net_address("no-such-host.invalid:80"));
  ASSERT_FALSE(names.has_value());
  EXPECT_FALSE(names.error().empty());
}

}  // namespace
}  // namespace weir::io
