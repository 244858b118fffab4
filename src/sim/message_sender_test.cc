#include "message_sender.h"

#include <gtest/gtest.h>

namespace weir::sim {
namespace {

struct MessageSenderTest : ::testing::Test {
  SenderSpec spec;
  TimePoint now = TimePoint{} + std::chrono::seconds(1);

  MessageSenderTest() {
    spec.queues.queue_size = 2;
    spec.queues.overflow_size = 1;
    spec.queues.in_flight_max = 1;
  }
};

TEST_F(MessageSenderTest, ADestinationWithEnoughInFlightDoesNotStopTheOthers) {
  MessageSender sender(spec);
  const auto first = sender.put({.owner = 10, .destination = 1}, now);
  ASSERT_TRUE(first);
  EXPECT_TRUE(sender.put({.owner = 11, .destination = 1}, now));
  EXPECT_TRUE(sender.put({.owner = 20, .destination = 2}, now));
  EXPECT_EQ(sender.next(now), 10U);
  EXPECT_EQ(sender.next(now), 20U);
  EXPECT_EQ(sender.next(now), std::nullopt);
  sender.finish(*first, OutgoingEnd::kSent);
  EXPECT_EQ(sender.next(now), 11U);
}

TEST_F(MessageSenderTest, InOneSharedQueueItDoes) {
  spec.shared = true;
  MessageSender sender(spec);
  EXPECT_TRUE(sender.put({.owner = 10, .destination = 1}, now));
  EXPECT_TRUE(sender.put({.owner = 20, .destination = 2}, now));
  EXPECT_EQ(sender.next(now), 10U);
  EXPECT_EQ(sender.next(now), std::nullopt);
  EXPECT_EQ(sender.queued(1), 1U);
}

TEST_F(MessageSenderTest, DroppedAndExpiredMessagesAreToldOnce) {
  MessageSender sender(spec);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(sender.put({.owner = i, .destination = 1, .deadline = now + Duration(5)}, now));
  }
  const std::vector<MessageSender::Ended> dropped = sender.take_ended();
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_EQ(dropped[0].owner, 2U) << "the oldest of the ring";
  EXPECT_EQ(dropped[0].how, OutgoingEnd::kDropped);
  sender.expire(now + Duration(5));
  EXPECT_EQ(sender.take_ended().size(), 3U);
  EXPECT_TRUE(sender.take_ended().empty());
  EXPECT_EQ(sender.stats().expired, 3U);
}

TEST_F(MessageSenderTest, AMessageLargerThanItsDestinationMayHoldIsRefused) {
  MessageSender sender(spec);
  const std::uint64_t bytes = spec.queues.destination_bytes_max.bytes() + 1;
  EXPECT_FALSE(sender.put({.owner = 1, .destination = 1, .bytes = bytes}, now));
  EXPECT_TRUE(sender.put({.owner = 1, .destination = 1}, now)) << "its place is free";
}

TEST_F(MessageSenderTest, ASenderMayEndWithMessagesInside) {
  MessageSender sender(spec);
  EXPECT_TRUE(sender.put({.owner = 1, .destination = 1}, now));
  EXPECT_TRUE(sender.put({.owner = 2, .destination = 1}, now));
  EXPECT_EQ(sender.next(now), 1U);
}

}  // namespace
}  // namespace weir::sim
