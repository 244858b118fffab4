#include "route.h"

#include <gtest/gtest.h>

namespace weir::inline v0::io {
namespace {

TEST(Route, LoopbackHasOneAndALinkLocalAddressWithoutInterfaceHasNone) {
  EXPECT_TRUE(has_route(parse_socket_name("127.0.0.1:0")->address));
  EXPECT_FALSE(has_route(parse_socket_name("[fe80::1]:0")->address));
  EXPECT_FALSE(has_route(Address{}));
}

}  // namespace
}  // namespace weir::inline v0::io
