#include "h2/h2_body_lease.h"

#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline server {
namespace {

constexpr BodyLease::Shape kSmall{.body_bytes = 64, .trailer_bytes = 128};

// Random puts and takes, with blocks added and taken away while it is empty, beside a deque.
TEST(BodyLease, ReturnsWhatWasPutInOrderWhileItsBlocksComeAndGo) {
  Rng rng(5);
  std::vector<std::vector<std::byte>> memory(policy::kWindowLeasesMax,
                                             std::vector<std::byte>(kSmall.block_bytes()));
  BodyLease lease;
  lease.attach(memory[0].data(), kSmall);
  std::deque<std::uint8_t> model;
  std::uint8_t next = 0;
  for (int step = 0; step < 200'000; ++step) {
    ASSERT_EQ(lease.size(), model.size());
    if (lease.empty() && rng.chance(0.5)) {
      if (rng.chance(0.5) && lease.blocks() < policy::kWindowLeasesMax) {
        lease.add(memory[lease.blocks()].data());
      } else if (lease.blocks() > 1) {
        std::byte* const taken = lease.take_away();
        ASSERT_EQ(taken, memory[lease.blocks()].data());
      }
    }
    if (rng.chance(0.5)) {
      std::vector<std::uint8_t> bytes(rng.below(lease.capacity() - lease.size() + 1));
      for (std::uint8_t& byte : bytes) byte = next++;
      lease.put(bytes);
      model.insert(model.end(), bytes.begin(), bytes.end());
      continue;
    }
    const auto piece = lease.front(rng.below(200));
    for (const std::uint8_t byte : piece) {
      ASSERT_EQ(byte, model.front());
      model.pop_front();
    }
    lease.consume(piece.size());
    while (rng.chance(0.05) && !lease.empty()) {
      model.erase(model.begin(),
                  model.begin() + static_cast<std::ptrdiff_t>(lease.front(9).size()));
      lease.consume(lease.front(9).size());
    }
  }
  std::uint32_t given_back = 0;
  while (lease.detach() != nullptr) ++given_back;
  EXPECT_GE(given_back, 1U);
  EXPECT_FALSE(lease.attached());
}

TEST(BodyLeaseDeathTest, NeverHoldsMoreThanItsBlocks) {
  std::vector<std::byte> memory(kSmall.block_bytes());
  BodyLease lease;
  lease.attach(memory.data(), kSmall);
  EXPECT_DEATH(lease.put(std::vector<std::uint8_t>(65)), "WEIR_ASSERT");
}

}  // namespace
}  // namespace weir::inline v0::inline server
