#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "weir/base/rng.h"

#include "call_race_testing.h"

// Random schedules: three origins that answer, refuse, lag, break off or say nothing, and owners
// that leave. TearDown() checks that all places, blocks and connections came back.

namespace weir::upstream {
namespace {

using policy::NoHedge;

/// An origin that accepts all connections, and gives each request a random fate.
class RandomOrigin {
 public:
  [[nodiscard]] io::SocketName name() const { return io::bound_name(listening_.get()); }
  RandomOrigin() {
    auto fd = io::listen_on(*io::parse_socket_name("127.0.0.1:0"), {});
    EXPECT_TRUE(fd.has_value());
    listening_ = std::move(fd).value();
  }

  void step(Rng& rng) {
    for (;;) {
      io::Fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (fd.get() < 0) break;
      connections_.push_back({std::move(fd), {}});
    }
    for (auto it = connections_.begin(); it != connections_.end();) {
      it = serve(*it, rng) ? it + 1 : connections_.erase(it);
    }
  }
  [[nodiscard]] std::uint64_t requests() const { return requests_; }
  [[nodiscard]] std::uint64_t repeated() const { return repeated_; }

 private:
  struct Connection {
    io::Fd fd;
    std::string unread;
    bool busy = false;
  };

  /// False: the connection has ended.
  bool serve(Connection& c, Rng& rng) {
    char buffer[4096];
    const ssize_t n = ::recv(c.fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) return false;
    if (n > 0) c.unread.append(buffer, static_cast<std::size_t>(n));
    const std::size_t end = c.unread.find("\r\n\r\n");
    if (!c.busy && end != std::string::npos) {
      ++requests_;
      repeated_ += c.unread.substr(0, end).find("x-weir-attempt") != std::string::npos ? 1U : 0U;
      c.unread.erase(0, end + 4);
      c.busy = true;
    }
    if (!c.busy || rng.below(100) != 0) return true;  // late
    return answer(c, rng);
  }
  static bool answer(Connection& c, Rng& rng) {
    const auto send = [&](std::string_view text) {
      return ::send(c.fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
    };
    switch (rng.below(12)) {
      case 0:
        c.busy = false;
        return send("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nlate");
      case 1:
        c.busy = false;
        return send("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
      case 2:
        return false;  // closed without an answer
      case 3:
        send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
        return false;
      case 4:
        return send("HTTP/1.1 103 Early Hints\r\n\r\n");
      case 5:
        return true;  // nothing yet
      case 6:
        send("HTTP/1.1 200 OK\r\nbad header\r\n\r\n");
        return false;
      default:
        c.busy = false;
        return send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    }
  }

  io::Fd listening_;
  std::deque<Connection> connections_;
  std::uint64_t requests_ = 0;
  std::uint64_t repeated_ = 0;
};

class CallRacePropertyTest : public CallRaceTest {
 protected:
  static constexpr std::uint32_t kBurst = 10;
  static constexpr std::size_t kCalls = 120;
  static constexpr std::size_t kAtOnce = 8;

  void make_three() {
    config.retry_budget_pct = 0.1;
    config.retry_budget_tokens_max = kBurst;
    config.hold_max = std::chrono::milliseconds(50);
    std::vector<io::SocketName> names;
    for (const RandomOrigin& origin : origins) names.push_back(origin.name());
    make(names, config);
    upstream->set_hedge(after(std::chrono::milliseconds(1)));
    loop.run_once();
  }
  void step(Rng& rng) {
    loop.run_once();
    for (RandomOrigin& origin : origins) origin.step(rng);
  }
  std::array<RandomOrigin, 3> origins;
};

TEST_F(CallRacePropertyTest, EveryCallEndsOnceAndTheBudgetHolds) {
  std::uint64_t hedges = 0;  // of all schedules: one of them may have none
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    origins = {};
    Rng rng(seed);
    make_three();
    std::deque<Asked> calls(kAtOnce);
    std::vector<bool> cancelled(kAtOnce);
    std::size_t started = 0;
    std::size_t ended = 0;
    for (int turn = 0; turn < 60'000 && ended < kCalls; ++turn) {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        Asked& one = calls[i];
        if (!one.call.active() && started < kCalls) {
          one.seen = CallRecorder();
          cancelled[i] = false;
          ++started;
          if (!get(one.call, {.deadline = loop.now() + std::chrono::milliseconds(200)})) ++ended;
        }
        if (one.call.active() && rng.below(2000) == 0) {
          one.call.cancel();
          ++ended;
          cancelled[i] = true;
          EXPECT_EQ(one.seen.ends, 0);
        }
      }
      step(rng);
      for (std::size_t i = 0; i < calls.size(); ++i) {
        Asked& one = calls[i];
        if (cancelled[i] || one.seen.ends == 0) continue;
        EXPECT_EQ(one.seen.ends, 1);
        EXPECT_FALSE(one.call.active());
        EXPECT_LE(one.call.attempts(), Call::kAttemptsMax);
        one.seen.ends = 0;
        cancelled[i] = true;  // counted
        ++ended;
      }
    }
    EXPECT_EQ(ended, kCalls);
    for (Asked& one : calls) one.call.cancel();
    hedges += sum(&CallCounters::hedges);
    // What reached an origin beyond the first attempts, without what costs no token.
    std::uint64_t repeated = 0;
    for (const RandomOrigin& origin : origins) repeated += origin.repeated();
    using policy::SendAgainReason;
    const auto free_of_charge = upstream->sum([](const CallCounters& c) {
      const auto count = [&](SendAgainReason r) {
        return c.decisions[static_cast<std::size_t>(r)].get();
      };
      return count(SendAgainReason::kNotSent) + count(SendAgainReason::kNotProcessed) +
             count(SendAgainReason::kStaleConnection);
    });
    EXPECT_LE(repeated, kBurst + kCalls / 10 + free_of_charge);
    TearDown();
  }
  EXPECT_GT(hedges, 0U);
}

}  // namespace
}  // namespace weir::upstream
