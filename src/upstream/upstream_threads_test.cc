#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "upstream/dispatcher_testing.h"

// Two loops on threads of their own, while the set of endpoints and the timeouts change.

namespace weir::upstream {
namespace {

/// Answers every request head with 204, on a thread of its own.
class AnsweringOrigin {
 public:
  AnsweringOrigin()
      : listening_(std::move(io::listen_on(*io::parse_socket_name("127.0.0.1:0"), {}).value())),
        thread_([this] { run(); }) {}
  ~AnsweringOrigin() {
    stop_.store(true);
    thread_.join();
  }
  [[nodiscard]] io::SocketName name() const { return io::bound_name(listening_.get()); }

 private:
  void run() {
    std::vector<io::Fd> connections;
    while (!stop_.load()) {
      std::vector<pollfd> polled{{.fd = listening_.get(), .events = POLLIN, .revents = 0}};
      for (const io::Fd& fd : connections) {
        polled.push_back({.fd = fd.get(), .events = POLLIN, .revents = 0});
      }
      if (::poll(polled.data(), polled.size(), 5) <= 0) continue;
      for (std::size_t i = polled.size(); i-- > 1;) {
        if (polled[i].revents != 0 && !answer(polled[i].fd)) {
          connections.erase(connections.begin() + static_cast<std::ptrdiff_t>(i) - 1);
        }
      }
      if (polled[0].revents == 0) continue;
      io::Fd fd(::accept(listening_.get(), nullptr, nullptr));
      if (fd.get() >= 0) connections.push_back(std::move(fd));
    }
  }
  /// A request fits in one segment here, and the next one comes after its answer.
  static bool answer(int fd) {
    char buffer[4096];
    if (::recv(fd, buffer, sizeof buffer, 0) <= 0) return false;
    constexpr std::string_view kAnswer = "HTTP/1.1 204 No Content\r\n\r\n";
    return ::send(fd, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL) > 0;
  }

  io::Fd listening_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class UpstreamThreadsTest : public DispatcherTest {
 protected:
  static constexpr int kCalls = 400;
  static constexpr std::size_t kAtOnce = 6;

  /// Makes kCalls calls on a loop of its own; returns how many were answered.
  int run_calls(std::uint32_t index) {
    io::Loop own;
    const std::unique_ptr<Dispatcher> at = make_dispatcher(own, index);
    std::vector<std::unique_ptr<Asked>> asked(kAtOnce);
    int started = 0;
    int answered = 0;
    while (started < kCalls || std::any_of(asked.begin(), asked.end(), is_active)) {
      for (std::unique_ptr<Asked>& one : asked) {
        if (is_active(one)) continue;
        if (one != nullptr && one->seen.complete) ++answered;
        one.reset();
        if (started == kCalls) continue;
        ++started;
        one = std::make_unique<Asked>();
        put_head(*at, one->call, kGet, head_parts(kGet, http::Method::kGet, RequestFraming::kNone));
        static_cast<void>(one->call.start({}));
      }
      own.run_once();
    }
    for (const std::unique_ptr<Asked>& one : asked) {
      if (one != nullptr && one->seen.complete) ++answered;
    }
    at->stop();
    while (!at->stopped()) own.run_once();
    return answered;
  }
  static bool is_active(const std::unique_ptr<Asked>& one) {
    return one != nullptr && one->call.active();
  }
};

TEST_F(UpstreamThreadsTest, EveryCallIsAnsweredWhileTheSetChanges) {
  AnsweringOrigin first;
  AnsweringOrigin second;
  UpstreamConfig config;
  config.max_connections = 5;  // fewer than calls: loops take connections from each other
  config.connect_timeout = std::chrono::seconds(20);
  config.name = "u";
  upstream = std::make_unique<Upstream>(
      Upstream::Setup{.config = config, .loops = 2, .reserved = 0, .rng = Rng(1)},
      found({first.name(), second.name()}), loop.now());
  std::atomic<int> running{2};
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      answered += run_calls(i);
      --running;
    });
  }
  for (std::size_t round = 0; running.load() > 0; ++round) {
    std::vector<io::SocketName> names{first.name(), second.name()};
    if (round % 3 == 1) names.pop_back();
    if (round % 3 == 2) names.erase(names.begin());
    upstream->set_endpoints(found(names), loop.refresh_now());
    UpstreamTimeouts timeouts = upstream->timeouts();
    timeouts.idle = std::chrono::milliseconds(20 + 20 * (round % 3));
    upstream->set_timeouts(timeouts);
    static_cast<void>(upstream->idle());
    ::poll(nullptr, 0, 2);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered.load(), 2 * kCalls);
  EXPECT_EQ(upstream->connections(), 0U);
  EXPECT_EQ(upstream->waiting(), 0U);
  EXPECT_EQ(upstream->held(), 0U);
  EXPECT_EQ(memory.heads.stats().used, 0U);
  EXPECT_EQ(memory.regions.stats().used, 0U);
}

}  // namespace
}  // namespace weir::upstream
