#include "weir/experimental/io/listener.h"

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "weir/experimental/io/clock.h"

namespace weir::inline v0::io {
namespace {

struct Sink final : AcceptSink {
  void on_accepted(Fd fd, const Address& peer) override {
    fds.push_back(std::move(fd));
    last_peer = peer;
  }
  void on_accept_failed(IoError error) override {
    ++failures;
    last_error = error;
  }
  std::vector<Fd> fds;
  Address last_peer;
  IoError last_error = IoError::kAgain;
  int failures = 0;
};

struct ListenerTest : testing::Test {
  void start(const std::string& where, ListenOptions options = {}) {
    Result<Fd, IoError> fd = listen_on(*parse_socket_name(where), options);
    ASSERT_TRUE(fd.has_value()) << name_of(fd.error());
    ASSERT_TRUE(listener.start(loop, std::move(*fd), options, sink).has_value());
    running = true;
  }
  void on_closed() { running = false; }
  void TearDown() override {
    loop.use(system_calls());
    if (!running) return;
    listener.close(Callback<>::to<&ListenerTest::on_closed>(*this));
    while (running) loop.run_once();
  }
  Fd dial() {
    Result<Fd, IoError> fd = connect_to(listener.name(), {});
    EXPECT_TRUE(fd.has_value());
    return fd ? std::move(*fd) : Fd();
  }

  Loop loop;
  Sink sink;
  Listener listener;
  bool running = false;
};

TEST_F(ListenerTest, ADrainAcceptsWhoIsConnectedAndIgnoresNewHandshakes) {
  start("127.0.0.1:0", {.socket = {}, .accept_budget = 1});
  std::vector<Fd> early;
  for (int i = 0; i < 20; ++i) early.push_back(dial());
  for (Fd& fd : early) ASSERT_EQ(::write(fd.get(), "x", 1), 1);
  listener.drain(Callback<>::to<&ListenerTest::on_closed>(*this));
  EXPECT_EQ(sink.fds.size(), 20U);
  const Fd late = dial();  // does not block
  pollfd connected{.fd = late.get(), .events = POLLOUT, .revents = 0};
  EXPECT_EQ(::poll(&connected, 1, 0), 0) << "a handshake over loopback ends within connect()";
  while (running) loop.run_once();
  EXPECT_EQ(sink.fds.size(), 20U);
  for (const Fd& fd : sink.fds) {
    char byte = 0;
    EXPECT_EQ(::read(fd.get(), &byte, 1), 1) << "the filter drops nothing but handshakes";
  }
}

TEST_F(ListenerTest, ADrainLeavesTheQueueOfASharedSocketToOthers) {
  const Result<Fd, IoError> listening = listen_on(*parse_socket_name("127.0.0.1:0"), {});
  ASSERT_TRUE(listening.has_value());
  ASSERT_TRUE(
      listener.start(loop, Fd(::dup(listening->get())), {.socket = {}, .shared = true}, sink)
          .has_value());
  running = true;
  const Fd client = dial();
  listener.drain(Callback<>::to<&ListenerTest::on_closed>(*this));
  while (running) loop.run_once();
  EXPECT_TRUE(sink.fds.empty());
  EXPECT_TRUE(Fd(::accept(listening->get(), nullptr, nullptr))) << "the other holder serves it";
}

TEST_F(ListenerTest, ADuplicateServesTheQueueAfterTheListenerHasDrained) {
  start("127.0.0.1:0");
  listener.pause();
  const Fd other = listener.duplicate();
  ASSERT_TRUE(other);
  const Fd early = dial();
  listener.set_shared(true);
  listener.drain(Callback<>::to<&ListenerTest::on_closed>(*this));
  while (running) loop.run_once();
  EXPECT_TRUE(sink.fds.empty());
  const Result<Fd, IoError> late = connect_to(bound_name(other.get()), {});
  ASSERT_TRUE(late.has_value());
  EXPECT_TRUE(Fd(::accept(other.get(), nullptr, nullptr))) << "the one that waited";
  EXPECT_TRUE(Fd(::accept(other.get(), nullptr, nullptr))) << "handshakes are not ignored";
}

TEST(AdoptListener, TakesStreamSocketsThatListenAndNothingElse) {
  const auto tcp = listen_on(*parse_socket_name("127.0.0.1:0"), {});
  const auto local = listen_on(*parse_socket_name("unix:@weir-adopt-test"), {});
  ASSERT_TRUE(tcp.has_value() && local.has_value());
  const Fd unbound(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Fd datagram(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Result<Fd, IoError> connected = connect_to(bound_name(tcp->get()), {});
  ASSERT_TRUE(connected.has_value());
  struct Case {
    int fd;
    bool taken;
    const char* what;
  };
  const Case cases[] = {{tcp->get(), true, "TCP"},
                        {local->get(), true, "Unix"},
                        {unbound.get(), false, "does not listen"},
                        {connected->get(), false, "a connection"},
                        {datagram.get(), false, "datagrams"},
                        {file.get(), false, "a file"},
                        {-1, false, "no descriptor"}};
  for (const Case& one : cases) {
    const auto adopted = adopt_listener(one.fd, {});
    EXPECT_EQ(adopted.has_value(), one.taken) << one.what;
    if (adopted) continue;
    EXPECT_EQ(adopted.error(), IoError::kInvalid) << one.what;
  }
}

TEST(AdoptListener, SetsWhatAnotherProcessLeftUnset) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM, 0));  // blocks, and would be left to children
  ASSERT_EQ(::listen(fd.get(), 1), 0);
  ListenOptions options;
  options.socket.send_buffer_bytes = 20'000;
  ASSERT_TRUE(adopt_listener(fd.get(), options).has_value());
  EXPECT_NE(::fcntl(fd.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(::fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
  int size = 0;
  socklen_t length = sizeof size;
  ASSERT_EQ(::getsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &size, &length), 0);
  EXPECT_EQ(size, 40'000) << "the kernel doubles it";
}

TEST_F(ListenerTest, PortZeroBecomesAPortAndPeersAreKnown) {
  start("127.0.0.1:0");
  EXPECT_NE(listener.name().address.port, 0);
  const Fd client = dial();
  while (sink.fds.empty()) loop.run_once(true);
  EXPECT_EQ(sink.last_peer.family, Family::kV4);
  EXPECT_EQ(sink.last_peer.ip[0], 127);
  EXPECT_NE(sink.last_peer.port, 0);
  EXPECT_EQ(listener.accepted(), 1U);
}

TEST_F(ListenerTest, BudgetBoundsWhatOneTurnAccepts) {
  ListenOptions options;
  options.accept_budget = 4;
  start("127.0.0.1:0", options);
  std::vector<Fd> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(dial());
  std::size_t before = 0;
  while (sink.fds.size() < 10) {
    loop.run_once(true);
    ASSERT_LE(sink.fds.size() - before, 4U);
    before = sink.fds.size();
  }
}

TEST_F(ListenerTest, PausedListenerLeavesNewcomersWaiting) {
  start("127.0.0.1:0");
  listener.pause();
  const Fd client = dial();
  for (int i = 0; i < 5; ++i) loop.run_once();
  EXPECT_TRUE(sink.fds.empty());
  listener.resume();
  while (sink.fds.empty()) loop.run_once(true);
}

TEST_F(ListenerTest, NoDescriptorsLeftPausesInsteadOfSpinningAndRecovers) {
  static int calls = 0;
  static bool exhausted = true;
  calls = 0;
  exhausted = true;
  Syscalls blocked = system_calls();
  blocked.accept = [](int fd, void* address, unsigned* size) {
    ++calls;
    if (!exhausted) return system_calls().accept(fd, address, size);
    errno = EMFILE;
    return -1;
  };
  ListenOptions options;
  options.retry_after = std::chrono::milliseconds(5);
  start("127.0.0.1:0", options);
  loop.use(blocked);
  const Fd client = dial();
  while (sink.failures == 0) loop.run_once(true);
  EXPECT_EQ(sink.last_error, IoError::kNoFds);
  // The listener is still readable, but paused: no system call until the timer fires.
  const int after_failure = calls;
  for (int i = 0; i < 100; ++i) loop.run_once();
  EXPECT_LE(calls - after_failure, 2 * (sink.failures - 1));
  exhausted = false;
  while (sink.fds.empty()) loop.run_once(true);
  EXPECT_GE(listener.failed(), 1U);
}

TEST_F(ListenerTest, WithoutDescriptorsOnePeerIsTurnedAwayOnTheReserve) {
  static bool first = true;
  first = true;
  Syscalls blocked = system_calls();
  blocked.accept = [](int fd, void* address, unsigned* size) {
    if (!first) return system_calls().accept(fd, address, size);
    first = false;
    errno = ENFILE;
    return -1;
  };
  start("127.0.0.1:0");
  loop.use(blocked);
  const Fd client = dial();
  while (sink.failures == 0) loop.run_once(true);
  char byte = 0;
  while (::recv(client.get(), &byte, 1, 0) < 0 && (errno == EAGAIN || errno == ENOTCONN)) {
  }
  EXPECT_TRUE(sink.fds.empty()) << "it was closed, not served";
}

TEST_F(ListenerTest, PeerThatGaveUpIsNoFailure) {
  static int left = 3;
  left = 3;
  Syscalls flaky = system_calls();
  flaky.accept = [](int fd, void* address, unsigned* size) {
    if (left == 0) return system_calls().accept(fd, address, size);
    --left;
    errno = ECONNABORTED;
    return -1;
  };
  start("127.0.0.1:0");
  loop.use(flaky);
  const Fd client = dial();
  while (sink.fds.empty()) loop.run_once(true);
  EXPECT_EQ(sink.failures, 0);
  EXPECT_EQ(listener.failed(), 0U);
}

TEST_F(ListenerTest, UnixSocketReplacesAStaleFileButNotALivingOne) {
  const std::string path =
      testing::TempDir() + "weir-listener-" + std::to_string(::getpid()) + ".sock";
  static_cast<void>(listen_on(*parse_socket_name("unix:" + path), {}));  // closed: a stale file
  ASSERT_TRUE(std::filesystem::exists(path));
  start("unix:" + path);
  EXPECT_EQ(listener.name().path, path);
  const Result<Fd, IoError> second = listen_on(*parse_socket_name("unix:" + path), {});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error(), IoError::kInUse);
  const Fd client = dial();
  while (sink.fds.empty()) loop.run_once(true);
  EXPECT_EQ(sink.last_peer.family, Family::kUnix);
  std::filesystem::remove(path);
}

TEST_F(ListenerTest, AbstractUnixSocketKeepsItsName) {
  const std::string name = "@weir-test-" + std::to_string(::getpid());
  start("unix:" + name);
  EXPECT_EQ(listener.name().path, name);
  const Fd client = dial();
  while (sink.fds.empty()) loop.run_once(true);
}

TEST(Listen, OptionsAreInheritedByAcceptedSockets) {
  ListenOptions options;
  options.socket.send_buffer_bytes = 20'000;
  const Result<Fd, IoError> listening = listen_on(*parse_socket_name("127.0.0.1:0"), options);
  ASSERT_TRUE(listening.has_value());
  const Result<Fd, IoError> client = connect_to(bound_name(listening->get()), {});
  ASSERT_TRUE(client.has_value());
  const Fd accepted(::accept(listening->get(), nullptr, nullptr));
  ASSERT_TRUE(static_cast<bool>(accepted));
  int size = 0;
  socklen_t length = sizeof size;
  ASSERT_EQ(::getsockopt(accepted.get(), SOL_SOCKET, SO_SNDBUF, &size, &length), 0);
  EXPECT_EQ(size, 40'000) << "the kernel doubles it";
}

TEST(Listen, AddressInUseIsSaid) {
  const Result<Fd, IoError> first = listen_on(*parse_socket_name("127.0.0.1:0"), {});
  ASSERT_TRUE(first.has_value());
  const Result<Fd, IoError> second = listen_on(bound_name(first->get()), {});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error(), IoError::kInUse);
}

TEST(InheritedSockets, AreTakenOnlyWhenMeantForThisProcess) {
  const std::string pid = std::to_string(::getpid());
  EXPECT_TRUE(inherited_sockets({.fds = "1", .pid = "1", .names = {}, .first_fd = 700}).empty());
  EXPECT_TRUE(inherited_sockets({.fds = "", .pid = pid, .names = {}, .first_fd = 700}).empty());
  EXPECT_TRUE(
      inherited_sockets({.fds = "garbage", .pid = pid, .names = {}, .first_fd = 700}).empty());
  EXPECT_TRUE(inherited_sockets({.fds = "-1", .pid = pid, .names = {}, .first_fd = 700}).empty());
}

TEST(InheritedSockets, AreTakenInOrderWithTheirNames) {
  constexpr int kFirst = 700;
  const Result<Fd, IoError> a = listen_on(*parse_socket_name("127.0.0.1:0"), {});
  const Result<Fd, IoError> b = listen_on(*parse_socket_name("127.0.0.1:0"), {});
  ASSERT_TRUE(a.has_value() && b.has_value());
  ASSERT_EQ(::dup2(a->get(), kFirst), kFirst);
  ASSERT_EQ(::dup2(b->get(), kFirst + 1), kFirst + 1);
  const std::vector<InheritedSocket> found = inherited_sockets(
      {.fds = "3", .pid = std::to_string(::getpid()), .names = "web:admin", .first_fd = kFirst});
  ASSERT_EQ(found.size(), 2U) << "the third is not open";
  EXPECT_EQ(found[0].name, "web");
  EXPECT_EQ(found[1].name, "admin");
  EXPECT_EQ(bound_name(found[0].fd.get()), bound_name(a->get()));
  EXPECT_EQ(bound_name(found[1].fd.get()), bound_name(b->get()));
}

}  // namespace
}  // namespace weir::inline v0::io
