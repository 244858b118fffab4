// Injected failures of read, write and accept.
#include <atomic>
#include <cerrno>
#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "server/server_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Client;
using testkit::every_loop;
using testkit::reply;
using testkit::ScriptedHandler;
using testkit::small_config;

std::atomic<int> recv_error{0};
std::atomic<int> send_error{0};
std::atomic<int> accept_error{0};
std::atomic<int> accept_calls{0};

/// The real calls, except those that a test makes fail.
const io::Syscalls& breakable() {
  static const io::Syscalls calls = {[](int fd, void* into, std::size_t size) -> long {
                                       if (const int error = recv_error.load(); error != 0) {
                                         errno = error;
                                         return -1;
                                       }
                                       return io::system_calls().recv(fd, into, size);
                                     },
                                     [](int fd, const void* from, std::size_t size) -> long {
                                       if (const int error = send_error.load(); error != 0) {
                                         errno = error;
                                         return -1;
                                       }
                                       return io::system_calls().send(fd, from, size);
                                     },
                                     [](int fd, const void* pieces, std::size_t count) -> long {
                                       if (const int error = send_error.load(); error != 0) {
                                         errno = error;
                                         return -1;
                                       }
                                       return io::system_calls().send_pieces(fd, pieces, count);
                                     },
                                     [](int fd, void* address, unsigned* size) -> int {
                                       ++accept_calls;
                                       if (const int error = accept_error.load(); error != 0) {
                                         errno = error;
                                         return -1;
                                       }
                                       return io::system_calls().accept(fd, address, size);
                                     }};
  return calls;
}

struct Faults : testing::Test {
  Faults() {
    recv_error = send_error = accept_error = accept_calls = 0;
    loops.at(0).use(breakable());
    loops.start();
  }
  void start(const ServerConfig& config) {
    server = std::make_unique<Server>(
        config, loops, every_loop([this](ScriptedHandler& h) {
          h.complete = [](ServerStream& s) { static_cast<void>(reply(s, 200, "ok")); };
          h.aborted = [this](ServerStream&, CloseReason reason) { last_abort = reason; };
        }));
    ASSERT_TRUE(server->start().has_value());
  }
  [[nodiscard]] bool eventually(const std::function<bool(const ServerStats&)>& what) const {
    return testkit::eventually(*server, what);
  }

  io::LoopThreads loops{{.count = 1, .pin = false, .name = "fault"}};
  std::unique_ptr<Server> server;
  std::atomic<CloseReason> last_abort{CloseReason::kNone};
};

TEST_F(Faults, ReadErrorEndsTheConnectionAndNothingElse) {
  start(small_config());
  Client client(server->port());
  Client other(server->port());
  EXPECT_EQ(client.get("/").status, 200);
  EXPECT_EQ(other.get("/").status, 200);
  recv_error = EIO;
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  EXPECT_TRUE(
      eventually([](const ServerStats& s) { return s.closed_by(CloseReason::kReadError) == 1; }));
  recv_error = 0;
  EXPECT_EQ(other.get("/").status, 200);
  EXPECT_TRUE(eventually([](const ServerStats& s) { return s.connections.used == 1; }));
  EXPECT_TRUE(eventually([](const ServerStats& s) { return s.read_regions.used == 0; }));
}

TEST_F(Faults, ResetWhileIdleIsTheClientsOwnEnd) {
  start(small_config());
  Client client(server->port());
  EXPECT_EQ(client.get("/").status, 200);
  client.reset();
  EXPECT_TRUE(
      eventually([](const ServerStats& s) { return s.closed_by(CloseReason::kClient) == 1; }));
}

TEST_F(Faults, WriteFailureAbortsTheStreamAndFreesWhatItHeld) {
  start(small_config());
  Client client(server->port());
  EXPECT_EQ(client.get("/").status, 200);
  send_error = EIO;
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  EXPECT_TRUE(
      eventually([](const ServerStats& s) { return s.closed_by(CloseReason::kWriteError) == 1; }));
  send_error = 0;
  EXPECT_EQ(last_abort.load(), CloseReason::kWriteError);
  EXPECT_TRUE(eventually([](const ServerStats& s) { return s.connections.used == 0; }));
  EXPECT_EQ(server->stats().write_buffers.used, 0U);
  EXPECT_EQ(Client(server->port()).get("/").status, 200);
}

TEST_F(Faults, BrokenPipeIsAClientThatLeft) {
  start(small_config());
  Client client(server->port());
  EXPECT_EQ(client.get("/").status, 200);
  send_error = EPIPE;
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  EXPECT_TRUE(
      eventually([](const ServerStats& s) { return s.closed_by(CloseReason::kClientAbort) == 1; }));
  send_error = 0;
}

TEST_F(Faults, AcceptFailureDoesNotSpinAndRecovers) {
  start(small_config());
  Client inside(server->port());
  EXPECT_EQ(inside.get("/").status, 200);
  accept_error = EMFILE;
  Client outside(server->port());  // connected by the kernel, not accepted yet
  ASSERT_TRUE(outside.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  EXPECT_TRUE(
      eventually([](const ServerStats& s) { return s.refused_by(RefuseReason::kNoFds) >= 3; }));
  const std::uint64_t failures = server->stats().refused_by(RefuseReason::kNoFds);
  // Two calls per failure (the second with the reserve descriptor), none in between.
  EXPECT_LE(accept_calls.load(), static_cast<int>(2 * failures + 8));
  accept_error = 0;
  EXPECT_EQ(outside.read().status, 200) << "it recovers by itself";
}

TEST_F(Faults, RealDescriptorExhaustionIsSurvived) {
  start(small_config());
  {
    Client before(server->port());
    EXPECT_EQ(before.get("/").status, 200);
  }
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  Client early(server->port());  // its descriptor exists before the limit is lowered
  EXPECT_EQ(early.get("/").status, 200);
  const int next = ::dup(0);
  ::close(next);
  std::vector<std::unique_ptr<Client>> clients;
  clients.push_back(std::make_unique<Client>(server->port()));
  rlimit tight = limit;
  tight.rlim_cur = static_cast<rlim_t>(next) + 2;  // the client has its descriptor, the server none
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  static_cast<void>(clients.back()->send("GET / HTTP/1.1\r\nhost: t\r\n\r\n"));
  EXPECT_EQ(early.get("/").status, 200) << "those inside are served";
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  Client after(server->port());
  EXPECT_EQ(after.get("/").status, 200);
}

}  // namespace
}  // namespace weir::inline v0::inline server
