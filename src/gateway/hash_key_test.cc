#include "hash_key.h"

#include <gtest/gtest.h>

#include "head_testing.h"

namespace weir::inline v0::gateway {
namespace {

using upstream::parse_hash_by;

std::uint64_t key(const char* by, const ServerRequest& request, Rng& rng, const Actor& actor = {}) {
  return hash_key(*parse_hash_by(by), request.meta, *request.headers, actor, rng);
}

TEST(HashKey, PathIgnoresTheQuery) {
  Rng rng(1);
  const TestHead head{{"host", "t"}};
  ServerRequest a = head.request("GET");
  ServerRequest b = head.request("POST");
  a.meta.path = "/x?1";
  b.meta.path = "/x";
  EXPECT_EQ(key("path", a, rng), key("path", b, rng));
  b.meta.path = "/y";
  EXPECT_NE(key("path", a, rng), key("path", b, rng));
}

TEST(HashKey, AHeaderIsFoundByItsNameInAnyCase) {
  Rng rng(1);
  const TestHead one{{"host", "t"}, {"X-Tenant", "7"}};
  const TestHead same{{"x-tenant", "7"}};
  const TestHead other{{"x-tenant", "8"}};
  const std::uint64_t wanted = key("header:X-TENANT", one.request("GET"), rng);
  EXPECT_EQ(key("header:x-tenant", same.request("GET"), rng), wanted);
  EXPECT_NE(key("header:x-tenant", other.request("GET"), rng), wanted);
}

TEST(HashKey, WithoutAKeyRequestsAreSpread) {
  Rng rng(1);
  const TestHead head{{"host", "t"}};
  EXPECT_NE(key("header:x-none", head.request("GET"), rng),
            key("header:x-none", head.request("GET"), rng));
  EXPECT_NE(key("actor", head.request("GET"), rng), key("actor", head.request("GET"), rng));
  Actor actor;
  actor.identity.key = {.low = 5, .high = 6};
  EXPECT_EQ(key("actor", head.request("GET"), rng, actor),
            key("actor", head.request("POST"), rng, actor));
}

}  // namespace
}  // namespace weir::inline v0::gateway
