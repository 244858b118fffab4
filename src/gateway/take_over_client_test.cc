// Both sides of a take-over when all goes well.
#include "gateway/take_over_client.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway_testing.h"
#include "take_over_testing.h"

namespace weir::inline v0::gateway {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using testkit::eventually;
using testkit::fresh_socket_path;
using testkit::Predecessor;

TEST(TakeOver, BringsEverySocketWithWhatItIsFor) {
  Predecessor old;
  const io::SocketName web = old.listen(SocketRole::kListen, "127.0.0.1:0");
  const io::SocketName admin = old.listen(SocketRole::kAdmin, "127.0.0.1:0");
  auto over = TakeOver::begin(old.path, seconds(10));
  ASSERT_TRUE(over.has_value()) << over.error().message;
  EXPECT_EQ(over->predecessor(), ::getpid());
  EXPECT_EQ(over->ticket_keys(), "keys");
  const std::vector<PassedSocket> sockets = over->take_sockets();
  ASSERT_EQ(sockets.size(), 2U);
  EXPECT_EQ(io::bound_name(sockets[0].fd.get()), web);
  EXPECT_EQ(sockets[0].role, SocketRole::kListen);
  EXPECT_EQ(sockets[0].configured, "127.0.0.1:0");
  EXPECT_EQ(io::bound_name(sockets[1].fd.get()), admin);
  EXPECT_EQ(sockets[1].role, SocketRole::kAdmin);
  EXPECT_FALSE(old.released) << "nothing changes before the successor is ready";
  const auto end = over->finish({true, false}, seconds(10));
  ASSERT_TRUE(end.has_value()) << end.error().message;
  EXPECT_EQ(*end, TakeOver::End::kReleased);
  EXPECT_TRUE(eventually([&] { return old.released.load(); }));
  EXPECT_EQ(old.taken(), (std::vector<bool>{true, false}));
  EXPECT_TRUE(old.failures().empty());
}

TEST(TakeOver, TheNextOneFindsTheSuccessorAtTheSamePath) {
  Predecessor first;
  auto over = TakeOver::begin(first.path, seconds(10));
  ASSERT_TRUE(over.has_value());
  ASSERT_TRUE(over->finish({}, seconds(10)).has_value());
  first.stop();
  Predecessor second({}, over->take_listener());
  second.ticket_keys = "of the second";
  auto next = TakeOver::begin(first.path, seconds(10));
  ASSERT_TRUE(next.has_value()) << next.error().message;
  EXPECT_EQ(next->ticket_keys(), "of the second");
}

TEST(TakeOver, WithNobodyThereAStartWithoutItIsRight) {
  const std::string path = fresh_socket_path();
  const auto no_file = TakeOver::begin(path, seconds(10));
  ASSERT_FALSE(no_file.has_value());
  EXPECT_TRUE(no_file.error().nobody);
  static_cast<void>(*io::listen_for_messages(path));  // closed at once
  const auto stale = TakeOver::begin(path, seconds(10));
  ASSERT_FALSE(stale.has_value());
  EXPECT_TRUE(stale.error().nobody);
  EXPECT_EQ(stale.error().message, "nobody serves " + path);
}

TEST(TakeOver, AServerThatDoesNotAnswerIsSaidAndIsNotNobody) {
  const std::string path = fresh_socket_path();
  const auto silent = io::listen_for_messages(path);
  ASSERT_TRUE(silent.has_value());
  const auto over = TakeOver::begin(path, std::chrono::milliseconds(10));
  ASSERT_FALSE(over.has_value());
  EXPECT_FALSE(over.error().nobody);
  EXPECT_THAT(over.error().message, HasSubstr("the running process does not answer"));
}

TEST(TakeOver, IfThePredecessorEndsMeanwhileTheSuccessorGoesOnAlone) {
  Predecessor old;
  const io::SocketName web = old.listen(SocketRole::kListen, "127.0.0.1:0");
  auto over = TakeOver::begin(old.path, seconds(10));
  ASSERT_TRUE(over.has_value());
  old.stop();
  const auto end = over->finish({true}, seconds(10));
  ASSERT_TRUE(end.has_value()) << end.error().message;
  EXPECT_EQ(*end, TakeOver::End::kAlone);
  EXPECT_FALSE(old.released);
}

}  // namespace
}  // namespace weir::inline v0::gateway
