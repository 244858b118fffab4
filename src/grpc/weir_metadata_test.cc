#include "weir_metadata.h"

#include <initializer_list>
#include <utility>
#include <vector>

#include <grpc/slice.h>
#include <gtest/gtest.h>

namespace weir::grpc {
namespace {

using Fields = std::initializer_list<std::pair<const char*, const char*>>;

/// The views point into static strings, so they outlive the array.
WeirMetadata read(Fields fields) {
  std::vector<grpc_metadata> list;
  for (const auto& [key, value] : fields) {
    list.push_back({grpc_slice_from_static_string(key), grpc_slice_from_static_string(value), {}});
  }
  return read_weir_metadata(grpc_metadata_array{list.size(), list.size(), list.data()});
}

TEST(WeirMetadata, TheFourFieldsAreFoundAmongOthers) {
  const WeirMetadata found = read({{"user-agent", "x"},
                                   {"x-weir-priority", "low"},
                                   {"x-weir-peer", "node-2"},
                                   {"x-weir-actor", "alice"},
                                   {"x-weir-attempt", "2"},
                                   {"x-other", "y"}});
  EXPECT_EQ(found.priority, "low");
  EXPECT_EQ(found.peer, "node-2");
  EXPECT_EQ(found.actor, "alice");
  EXPECT_EQ(found.attempt, "2");
}

TEST(WeirMetadata, WithoutThemAllAreEmpty) {
  const WeirMetadata found = read({{"x-weir-", "a"}, {"x-weir-priorit", "b"}, {"priority", "c"}});
  EXPECT_TRUE(found.priority.empty() && found.peer.empty());
  EXPECT_TRUE(found.actor.empty() && found.attempt.empty());
}

TEST(WeirMetadata, OfTwoTheLastCounts) {
  EXPECT_EQ(read({{"x-weir-peer", "a"}, {"x-weir-peer", "b"}}).peer, "b");
}

}  // namespace
}  // namespace weir::grpc
