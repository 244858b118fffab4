#include "weir/experimental/io/socket.h"

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "weir/experimental/io/listener.h"

namespace weir::inline v0::io {
namespace {

struct Pair {
  Fd ours;
  Fd theirs;
};

Pair socket_pair() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  return {Fd(fds[0]), Fd(fds[1])};
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Counts events; may close the socket from inside.
struct Witness final : SocketEvents {
  void on_readable() override {
    ++readable;
    if (close_when_readable) close();
    if (look_away_when_readable) socket.watch({});
    if (!read_once_when_readable) return;
    std::array<std::byte, 8> into{};
    const IoResult got = socket.read(into);
    if (got) {
      received += *got;
    } else if (end == IoError::kAgain) {
      end = got.error();
    }
  }
  void on_writable() override { ++writable; }
  void on_disconnected() override { ++disconnected; }
  void close() { socket.close(Callback<>::to<&Witness::on_closed>(*this)); }
  void on_closed() { ++closed; }

  Socket socket;
  int readable = 0;
  int writable = 0;
  int disconnected = 0;
  int closed = 0;
  bool close_when_readable = false;
  bool look_away_when_readable = false;
  bool read_once_when_readable = false;
  std::size_t received = 0;
  IoError end = IoError::kAgain;
};

struct SocketTest : testing::Test {
  void SetUp() override {
    Pair pair = socket_pair();
    peer = std::move(pair.theirs);
    ASSERT_TRUE(seen.socket.open(loop, std::move(pair.ours), seen).has_value());
  }
  void TearDown() override {
    if (seen.socket.is_open()) seen.close();
    while (seen.closed == 0) loop.run_once();
  }
  void turns(int count) {
    for (int i = 0; i < count; ++i) loop.run_once();
  }

  Loop loop;
  Fd peer;
  Witness seen;
};

TEST_F(SocketTest, TellsReadabilityOnlyWhileWatched) {
  ASSERT_EQ(::send(peer.get(), "hi", 2, 0), 2);
  turns(3);
  EXPECT_EQ(seen.readable, 0);
  seen.socket.watch({.read = true, .write = false});
  turns(1);
  EXPECT_EQ(seen.readable, 1);
  std::array<std::byte, 8> into{};
  const IoResult got = seen.socket.read(into);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(*got, 2U);
  EXPECT_EQ(seen.socket.read(into).error(), IoError::kAgain);
  turns(3);
  EXPECT_EQ(seen.readable, 1) << "nothing new, nothing told";
}

TEST_F(SocketTest, EndOfStreamIsFoundByReading) {
  seen.socket.watch({.read = true, .write = false});
  peer.reset();
  turns(1);
  EXPECT_EQ(seen.readable, 1);
  std::array<std::byte, 8> into{};
  EXPECT_EQ(seen.socket.read(into).error(), IoError::kEof);
  EXPECT_EQ(seen.disconnected, 0);
}

TEST_F(SocketTest, DisconnectIsNoticedOnceWhileReadsAreOff) {
  seen.socket.watch({.read = true, .write = false});
  turns(1);
  seen.socket.watch({});
  ASSERT_EQ(::send(peer.get(), "unread", 6, 0), 6);
  turns(2);
  EXPECT_EQ(seen.readable, 0);
  ASSERT_EQ(::shutdown(peer.get(), SHUT_WR), 0);
  turns(5);
  EXPECT_EQ(seen.disconnected, 1) << "told once, not at every turn";
  EXPECT_TRUE(seen.socket.is_open());
}

/// A server that watches for input; its client has sent `words` and reset the connection.
struct ResetTest : SocketTest {
  void open_and_reset(Witness& server, std::string_view words) {
    auto listening = listen_on(*parse_socket_name("127.0.0.1:0"), {});
    ASSERT_TRUE(listening.has_value());
    auto client = connect_to(bound_name(listening->get()), {});
    ASSERT_TRUE(client.has_value());
    ASSERT_TRUE(server.socket.open(loop, Fd(::accept(listening->get(), nullptr, nullptr)), server));
    server.socket.watch({.read = true, .write = false});
    ASSERT_EQ(::send(client->get(), words.data(), words.size(), 0),
              static_cast<ssize_t>(words.size()));
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(client->get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    client->reset();
    turns(5);
  }
  void close(Witness& server) {
    server.close();
    while (server.closed == 0) loop.run_once();
  }
};

TEST_F(ResetTest, IsToldToOneWhoLooksAwayWithoutReading) {
  Witness server;
  server.look_away_when_readable = true;
  open_and_reset(server, "");
  EXPECT_EQ(server.disconnected, 1);
  close(server);
}

TEST_F(ResetTest, IsFoundBehindTheLastBytesThoughEachEventBringsOneRead) {
  Witness server;
  server.read_once_when_readable = true;
  open_and_reset(server, "last words");
  EXPECT_EQ(server.received, 10U) << "in two reads";
  EXPECT_EQ(server.end, IoError::kReset);
  EXPECT_EQ(server.disconnected, 0);
  close(server);
}

TEST_F(SocketTest, FullPeerGivesAgainAndWritabilityIsTold) {
  const std::string block(64 * 1024, 'x');
  IoResult put = seen.socket.write(bytes_of(block));
  while (put.has_value()) put = seen.socket.write(bytes_of(block));
  EXPECT_EQ(put.error(), IoError::kAgain);
  seen.socket.watch({.read = false, .write = true});
  turns(2);
  EXPECT_EQ(seen.writable, 0);
  std::array<char, 256 * 1024> drain;
  while (::recv(peer.get(), drain.data(), drain.size(), 0) > 0) {
  }
  turns(1);
  EXPECT_EQ(seen.writable, 1);
}

TEST_F(SocketTest, GatheredWriteKeepsOrder) {
  const std::string_view words[] = {"one ", "two ", "three"};
  std::array<ConstBuffer, 3> pieces;
  for (std::size_t i = 0; i < 3; ++i) pieces[i] = {bytes_of(words[i]).data(), words[i].size()};
  const IoResult put = seen.socket.write(std::span<const ConstBuffer>(pieces));
  ASSERT_TRUE(put.has_value());
  EXPECT_EQ(*put, 13U);
  std::array<char, 32> got{};
  ASSERT_EQ(::recv(peer.get(), got.data(), got.size(), 0), 13);
  EXPECT_STREQ(got.data(), "one two three");
}

TEST_F(SocketTest, WriteToAGonePeerIsAnErrorNotASignal) {
  peer.reset();
  EXPECT_EQ(seen.socket.write(bytes_of("x")).error(), IoError::kReset);
}

TEST_F(SocketTest, ClosedIsCalledLaterAndNothingAfterIt) {
  seen.close_when_readable = true;
  seen.socket.watch({.read = true, .write = true});
  ASSERT_EQ(::send(peer.get(), "hi", 2, 0), 2);
  loop.run_once();
  EXPECT_EQ(seen.readable, 1);
  EXPECT_EQ(seen.writable, 0) << "closed while the same event was told";
  EXPECT_EQ(seen.closed, 1);
  char byte = 0;
  EXPECT_EQ(::recv(peer.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET) << "the descriptor is closed, with bytes unread";
  turns(3);
  EXPECT_EQ(seen.readable, 1);
}

TEST_F(SocketTest, SlotCanBeUsedAgainAfterClosed) {
  for (int round = 1; round <= 100; ++round) {
    seen.close();
    turns(1);
    ASSERT_EQ(seen.closed, round);
    Pair pair = socket_pair();
    peer = std::move(pair.theirs);
    ASSERT_TRUE(seen.socket.open(loop, std::move(pair.ours), seen).has_value());
    seen.socket.watch({.read = true, .write = false});
    ASSERT_EQ(::send(peer.get(), "x", 1, 0), 1);
    turns(1);
    ASSERT_EQ(seen.readable, round);
  }
  seen.closed = 0;
}

TEST_F(SocketTest, InjectedErrorsComeBackAsValues) {
  Syscalls broken = system_calls();
  broken.recv = [](int, void*, std::size_t) -> long {
    errno = ECONNRESET;
    return -1;
  };
  broken.send = [](int, const void*, std::size_t) -> long {
    errno = EPIPE;
    return -1;
  };
  loop.use(broken);
  std::array<std::byte, 8> into{};
  EXPECT_EQ(seen.socket.read(into).error(), IoError::kReset);
  EXPECT_EQ(seen.socket.write(bytes_of("x")).error(), IoError::kReset);
  loop.use(system_calls());
}

TEST(Connect, ReachesAListenerAndTellsRefusal) {
  Loop loop;
  const SocketName any = *parse_socket_name("127.0.0.1:0");
  Result<Fd, IoError> listening = listen_on(any, {});
  ASSERT_TRUE(listening.has_value());
  const SocketName there = bound_name(listening->get());
  ASSERT_NE(there.address.port, 0);

  Witness client;
  Result<Fd, IoError> fd = connect_to(there, {});
  ASSERT_TRUE(fd.has_value());
  ASSERT_TRUE(client.socket.open(loop, std::move(*fd), client).has_value());
  client.socket.watch({.read = false, .write = true});
  while (client.writable == 0) loop.run_once(true);
  EXPECT_TRUE(client.socket.connected().has_value());
  EXPECT_EQ(peer_of(client.socket.fd()), there.address);
  client.close();
  while (client.closed == 0) loop.run_once();

  listening->reset();
  Witness refused;
  fd = connect_to(there, {});
  ASSERT_TRUE(fd.has_value()) << "loopback refuses after the call";
  ASSERT_TRUE(refused.socket.open(loop, std::move(*fd), refused).has_value());
  refused.socket.watch({.read = false, .write = true});
  while (refused.writable == 0) loop.run_once(true);
  EXPECT_EQ(refused.socket.connected().error(), IoError::kRefused);
  refused.close();
  while (refused.closed == 0) loop.run_once();
}

TEST(LastWords, AreReadByAPeerThatHadSentMore) {
  Result<Fd, IoError> listening = listen_on(*parse_socket_name("127.0.0.1:0"), {});
  ASSERT_TRUE(listening.has_value());
  const Result<Fd, IoError> client = connect_to(bound_name(listening->get()), {});
  ASSERT_TRUE(client.has_value());
  Fd server(::accept(listening->get(), nullptr, nullptr));
  ASSERT_EQ(::send(client->get(), "GET / HTTP/1.1", 14, 0), 14);
  say_and_end(server.get(), "busy");
  read_off(server.get());
  server.reset();
  std::array<char, 16> got{};
  EXPECT_EQ(::recv(client->get(), got.data(), got.size(), 0), 4);
  EXPECT_STREQ(got.data(), "busy");
  EXPECT_EQ(::recv(client->get(), got.data(), got.size(), 0), 0) << "an end, not a reset";
}

TEST(Connect, ResetOnCloseIsSeenAsReset) {
  Loop loop;
  Result<Fd, IoError> listening = listen_on(*parse_socket_name("127.0.0.1:0"), {});
  ASSERT_TRUE(listening.has_value());
  Witness client;
  Result<Fd, IoError> fd = connect_to(bound_name(listening->get()), {});
  ASSERT_TRUE(client.socket.open(loop, std::move(*fd), client).has_value());
  client.socket.watch({.read = false, .write = true});
  while (client.writable == 0) loop.run_once(true);
  const Fd server(::accept(listening->get(), nullptr, nullptr));
  client.socket.reset_on_close();
  client.close();
  while (client.closed == 0) loop.run_once();
  char byte = 0;
  EXPECT_EQ(::recv(server.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

}  // namespace
}  // namespace weir::inline v0::io
