#pragma once

// A set of endpoints whose counters a test writes.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "upstream/endpoint_set.h"

namespace weir::inline v0::gateway::testkit {

class FakeEndpoints {
 public:
  /// Joins at the end of the set. Two loops, so that sums over loops are seen.
  upstream::Endpoint& add(int port, std::uint32_t weight = 1) {
    upstream::Endpoint::Identity identity{
        .name = *io::parse_socket_name("127.0.0.1:" + std::to_string(port)), .host = "a"};
    auto endpoint = std::make_shared<upstream::Endpoint>(
        std::move(identity), 2, policy::EndpointHealth(now), policy::RedundancyBudgetRules{},
        upstream::Endpoint::Outgoing{.config = config_, .totals = totals_}, Rng(1));
    set.members.push_back({.endpoint = std::move(endpoint), .weight = weight, .zone = "z"});
    return *set.members.back().endpoint;
  }
  void remove(std::size_t i) {
    set.members.erase(set.members.begin() + static_cast<std::ptrdiff_t>(i));
  }
  /// `count` answers of this latency, counted by both loops in turn.
  static void answer(upstream::Endpoint& endpoint, int count, Duration latency) {
    for (int i = 0; i < count; ++i) {
      endpoint.counters(static_cast<std::uint32_t>(i % 2)).latency.record(latency);
    }
  }

  upstream::EndpointSet set;
  TimePoint now = TimePoint{} + std::chrono::hours(1);

 private:
  control::OutgoingConfig config_;
  control::OutgoingTotals totals_;
};

}  // namespace weir::inline v0::gateway::testkit
