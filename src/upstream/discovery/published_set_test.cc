#include "discovery/published_set.h"

#include <gtest/gtest.h>

#include "discovery/source_testing.h"
#include "discovery/static_source.h"

namespace weir::inline v0::upstream {
namespace {

DiscoveredEndpoint endpoint(const char* address, std::uint32_t weight = 1) {
  DiscoveredEndpoint made;
  made.address = *io::parse_socket_name(address);
  made.weight = weight;
  return made;
}

struct Published {
  Published() { set.attach(loop, sink); }
  io::Loop loop;
  RecordingSink sink;
  StaticSource source{"test", {}};
  PublishedSet set{source, "test"};
};

TEST(PublishedSet, TellsOfChangesAndNotOfOrder) {
  Published to;
  to.set.publish({.endpoints = {}, .cut = false});
  EXPECT_EQ(to.sink.lists, 1) << "an empty first list is news";
  to.set.publish({.endpoints = {endpoint("10.0.0.1:80"), endpoint("10.0.0.2:80")}, .cut = false});
  EXPECT_EQ(to.sink.lists, 2);
  to.set.publish({.endpoints = {endpoint("10.0.0.2:80"), endpoint("10.0.0.1:80")}, .cut = true});
  EXPECT_EQ(to.sink.lists, 2);
  EXPECT_TRUE(to.set.status().cut);
  to.set.publish(
      {.endpoints = {endpoint("10.0.0.2:80"), endpoint("10.0.0.1:80", 2)}, .cut = false});
  EXPECT_EQ(to.sink.text(), "10.0.0.2:80 10.0.0.1:80*2 ") << "another weight is a change";
  DiscoveredEndpoint draining = endpoint("10.0.0.1:80", 2);
  draining.draining = true;
  to.set.publish({.endpoints = {endpoint("10.0.0.2:80"), draining}, .cut = false});
  EXPECT_EQ(to.sink.lists, 4);
}

TEST(PublishedSet, TellsOfAnErrorOnceAndOfItsEnd) {
  Published to;
  to.set.fail("a");
  const TimePoint since = to.set.status().failing_since;
  to.loop.refresh_now();
  to.set.fail("a");
  to.set.fail("b");
  EXPECT_EQ(to.sink.errors, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(to.set.status().failing_since, since);
  to.set.publish({.endpoints = {endpoint("10.0.0.1:80")}, .cut = false}, "b");
  EXPECT_EQ(to.sink.errors.size(), 2U) << "partly failed, as before";
  to.set.publish({.endpoints = {endpoint("10.0.0.1:80")}, .cut = false});
  EXPECT_EQ(to.sink.errors.back(), "");
  EXPECT_EQ(to.set.status().failing_since, TimePoint{});
}

TEST(PublishedSet, TellsNobodyAfterItIsDetached) {
  Published to;
  to.set.detach();
  to.set.publish({.endpoints = {endpoint("10.0.0.1:80")}, .cut = false});
  to.set.fail("a");
  EXPECT_EQ(to.sink.lists, 0);
  EXPECT_TRUE(to.sink.errors.empty());
}

}  // namespace
}  // namespace weir::inline v0::upstream
