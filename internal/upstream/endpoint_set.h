#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "policy/hash_ring.h"
#include "upstream/endpoint.h"

namespace weir::inline v0::upstream {

/// The endpoints of an upstream at one moment. A change of the set is another set; loops take it
/// over between two requests, and attempts that are under way keep their endpoints.
///
/// Thread-safety: immutable. Lifetime: shared.
struct EndpointSet {
  struct Member {
    std::shared_ptr<Endpoint> endpoint;
    std::uint32_t weight = 1;
    std::string zone;
    bool draining = false;  // as its source says
  };
  std::vector<Member> members;  // those of our own zone first
  std::uint32_t local = 0;      // how many are in our own zone
  policy::HashRing ring;        // empty unless requests are assigned by hash
};

}  // namespace weir::inline v0::upstream
