#include "weir/experimental/io/local_peer.h"

#include <array>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weir/experimental/io/fd.h"

namespace weir::io {
namespace {

TEST(LocalPeer, IsTheProcessAtTheOtherEnd) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const Fd near(ends[0]);
  const Fd far(ends[1]);
  const auto peer = local_peer_of(near.get());
  ASSERT_TRUE(peer.has_value());
  EXPECT_EQ(peer->user, ::geteuid());
  EXPECT_EQ(peer->pid, ::getpid());
  ASSERT_FALSE(peer->groups.empty());
  EXPECT_EQ(peer->groups.front(), ::getegid());
}

TEST(LocalPeer, OnlyAUnixSocketHasOne) {
  const Fd tcp(::socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(local_peer_of(tcp.get()), std::nullopt);
  EXPECT_EQ(local_peer_of(-1), std::nullopt);
}

TEST(LocalPeer, OwnerGroupAndRootMayUseAFileAndNobodyElse) {
  const std::string path = ::testing::TempDir() + "/local_peer_" + std::to_string(::getpid());
  std::ofstream(path) << "x";
  struct stat file {};
  ASSERT_EQ(::stat(path.c_str(), &file), 0);
  const std::uint32_t stranger = ::geteuid() + 1000;
  const std::uint32_t group = file.st_gid;
  EXPECT_TRUE(may_use({.user = 0, .groups = {group + 1}}, path));
  EXPECT_TRUE(may_use({.user = ::geteuid(), .groups = {group + 1}}, path));
  EXPECT_TRUE(may_use({.user = stranger, .groups = {group + 1, group}}, path));
  EXPECT_FALSE(may_use({.user = stranger, .groups = {group + 1}}, path));
  ::unlink(path.c_str());
  EXPECT_FALSE(may_use({.user = stranger, .groups = {group}}, path));
}

}  // namespace
}  // namespace weir::io
