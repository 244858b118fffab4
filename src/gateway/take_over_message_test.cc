#include "take_over_message.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::gateway {
namespace {

TakeOverMessage full_message() {
  return {.kind = TakeOverKind::kSockets,
          .sockets = {{SocketRole::kListen, false, "127.0.0.1:80"},
                      {SocketRole::kTls, true, ":443"},
                      {SocketRole::kAdmin, false, "unix:/run/admin"},
                      {SocketRole::kTakeOver, false, ""}},
          .ticket_keys = std::string(80, '\0'),
          .reason = "why not",
          .taken = {true, false, true}};
}

TEST(TakeOverMessage, IsReadBackAsItWasWritten) {
  for (const TakeOverKind kind :
       {TakeOverKind::kHello, TakeOverKind::kSockets, TakeOverKind::kRefused, TakeOverKind::kReady,
        TakeOverKind::kReleased}) {
    TakeOverMessage message = full_message();
    message.kind = kind;
    EXPECT_EQ(decode_take_over(encode(message)).value(), message);
    const TakeOverMessage bare{.kind = kind};
    EXPECT_EQ(decode_take_over(encode(bare)).value(), bare);
  }
}

TEST(TakeOverMessage, TheLargestOneFitsItsBound) {
  TakeOverMessage message = full_message();
  message.sockets.assign(kTakeOverSocketsMax, {SocketRole::kListen, false, std::string(256, 'x')});
  message.taken.assign(kTakeOverSocketsMax, true);
  EXPECT_LE(encode(message).size(), kTakeOverBytesMax);
  EXPECT_EQ(decode_take_over(encode(message)).value(), message);
}

TEST(TakeOverMessage, RecordsThatAreNotKnownAreSkipped) {
  const std::string bytes = encode(full_message()) + std::string("\xEE\x00\x03new", 6);
  EXPECT_EQ(decode_take_over(bytes).value(), full_message());
}

TEST(TakeOverMessage, HostileBytesAreRefusedWithTheirFault) {
  const std::string head("weir\0\1\1", 7);
  const auto record = [&](const std::string& tail) { return head + tail; };
  struct Case {
    std::string bytes;
    TakeOverFault fault;
    const char* what;
  };
  std::string many = head;
  for (std::size_t i = 0; i <= kTakeOverSocketsMax; ++i) many += std::string("\1\0\2\0\0", 5);
  const std::vector<Case> cases = {
      {"", TakeOverFault::kForeign, "nothing"},
      {"weir", TakeOverFault::kForeign, "only the magic"},
      {"GET / HTTP/1.1\r\n\r\n", TakeOverFault::kForeign, "another protocol"},
      {std::string(48 * 1024, '\0'), TakeOverFault::kForeign, "zeros"},
      {std::string("weir\0\2\1", 7), TakeOverFault::kVersion, "a later version"},
      {std::string("weir\xFF\xFF\1", 7), TakeOverFault::kVersion, "the last version"},
      {std::string("weir\0\0\1", 7), TakeOverFault::kVersion, "version 0"},
      {std::string("weir\0\1\0", 7), TakeOverFault::kBroken, "kind 0"},
      {std::string("weir\0\1\6", 7), TakeOverFault::kBroken, "an unknown kind"},
      {record("\1"), TakeOverFault::kBroken, "half a record"},
      {record(std::string("\1\0", 2)), TakeOverFault::kBroken, "half a length"},
      {record(std::string("\1\0\3\0\0", 5)), TakeOverFault::kBroken, "a length beyond the end"},
      {record(std::string("\1\xFF\xFF\0\0", 5)), TakeOverFault::kBroken, "a huge length"},
      {record(std::string("\1\0\1\0", 4)), TakeOverFault::kBroken, "a socket without its flag"},
      {record(std::string("\1\0\2\4\0", 5)), TakeOverFault::kBroken, "an unknown role"},
      {record(std::string("\1\0\2\0\2", 5)), TakeOverFault::kBroken, "a flag of 2"},
      {record(std::string("\1\4\0", 3) + std::string(1024, '\0')), TakeOverFault::kBroken,
       "an address of 1022 bytes"},
      {record(std::string("\3\1\0", 3) + std::string(256, '\1')), TakeOverFault::kBroken,
       "256 sockets taken"},
      {record(std::string("\4\4\1", 3) + std::string(1025, '\1')), TakeOverFault::kBroken,
       "keys of 1025 bytes"},
      {many, TakeOverFault::kBroken, "one socket too many"}};
  for (const Case& one : cases) {
    const auto decoded = decode_take_over(one.bytes);
    ASSERT_FALSE(decoded.has_value()) << one.what;
    EXPECT_EQ(decoded.error(), one.fault) << one.what;
  }
  EXPECT_EQ(take_over_version(cases[4].bytes), 2U);
  EXPECT_EQ(take_over_version("weir"), 0U);
}

TEST(TakeOverMessage, AReasonCannotForgeLinesOfALog) {
  const TakeOverMessage message{.kind = TakeOverKind::kRefused, .reason = "a\nweir: b\x1b[2J\xff"};
  EXPECT_EQ(decode_take_over(encode(message))->reason, "a?weir: b?[2J?");
}

TEST(TakeOverMessage, AnyBytesAreRefusedOrStayWithinTheBounds) {
  Rng rng(7);
  const std::string valid = encode(full_message());
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = valid;
    const std::uint64_t changes = 1 + rng.below(8);
    for (std::uint64_t c = 0; c < changes; ++c) {
      bytes[rng.below(bytes.size())] = static_cast<char>(rng.below(256));
    }
    if (rng.chance(0.5)) bytes.resize(rng.below(bytes.size() + 1));
    const auto decoded = decode_take_over(bytes);
    if (!decoded) continue;
    ++read;
    EXPECT_LE(decoded->sockets.size(), kTakeOverSocketsMax);
    EXPECT_LE(decoded->taken.size(), kTakeOverSocketsMax);
    EXPECT_EQ(decode_take_over(encode(*decoded)).value(), *decoded) << "what is read can be sent";
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace weir::inline v0::gateway
