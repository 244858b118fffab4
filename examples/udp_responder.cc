// A UDP service whose probes are answered whatever else is asked of it.
//
//   udp_responder [LIMIT]    prints "port N"
//
// A datagram "P…" is a probe: it is critical, so it is never refused, and it is sent back as "A…".
// A datagram "U…" is an update: it is low, takes 20 ms of a worker, and when LIMIT of them (64) are
// in flight the next one is dropped without a word: nobody was promised an answer. SIGTERM ends it
// with its counts.
#include <array>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "weir/control/admission_controller.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/entropy.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/thread_parker.h"
#include "weir/policy/shed_action.h"

#include "loopback_program.h"

namespace {

using weir::io::Fd;
using weir::io::monotonic_now;

/// Updates that were admitted and wait for a worker. It needs no bound of its own: every entry
/// holds a permit, so admission bounds it.
class Backlog {
 public:
  void put(weir::Permit permit) {
    const std::scoped_lock lock(mutex_);
    permits_.push_back(std::move(permit));
    changed_.notify_one();
  }
  /// Empty at the end.
  weir::Permit take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || !permits_.empty(); });
    if (permits_.empty()) return {};
    weir::Permit first = std::move(permits_.front());
    permits_.pop_front();
    return first;
  }
  void end() {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<weir::Permit> permits_;
  bool ended_ = false;
};

struct Counts {
  std::uint64_t probes = 0;
  std::uint64_t answers = 0;
  std::uint64_t answers_at_the_limit = 0;  // given while no further update would have been admitted
  std::uint64_t updates = 0;
  std::uint64_t shed = 0;
};

class Responder {
 public:
  Responder(weir::io::Fd socket, const weir::AdmissionConfig& config)
      : socket_(std::move(socket)),
        limit_(config.limit.initial_limit),
        admission_(config, weir::Rng(weir::io::random_seed())) {}

  /// One datagram, if one comes within a tenth of a second.
  void receive() {
    std::array<char, 2048> buffer;
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const long got = ::recvfrom(socket_.get(), buffer.data(), buffer.size(), 0,
                                reinterpret_cast<sockaddr*>(&from), &size);
    if (got <= 0) return;
    const bool probe = buffer[0] == 'P';
    (probe ? counts_.probes : counts_.updates) += 1;

    weir::AdmissionRequest request;
    request.priority = probe ? weir::Priority::kCritical : weir::Priority::kLow;
    auto permit = admission_.try_admit(request, monotonic_now());
    if (!permit) {
      if (shed_action(request.priority, weir::Transport::kDatagram) ==
          weir::ShedAction::kDropSilently) {
        counts_.shed += 1;
      }
      return;
    }
    if (!probe) return backlog_.put(std::move(permit).value());
    buffer[0] = 'A';
    const long sent = ::sendto(socket_.get(), buffer.data(), static_cast<std::size_t>(got), 0,
                               reinterpret_cast<const sockaddr*>(&from), size);
    counts_.answers += sent == got ? 1U : 0U;
    counts_.answers_at_the_limit += admission_.stats().in_flight >= limit_ ? 1U : 0U;
    std::move(*permit).finish(weir::Outcome::kOk, monotonic_now());
  }

  /// Works off updates until end().
  void work() {
    weir::io::ThreadParker pretended_work;
    while (weir::Permit permit = backlog_.take()) {
      pretended_work.park_until(monotonic_now() + std::chrono::milliseconds(20));
      std::move(permit).finish(weir::Outcome::kOk, monotonic_now());
      done_.fetch_add(1);
    }
  }
  void end() { backlog_.end(); }
  void tick() { admission_.expire(monotonic_now()); }

  void print() const {
    const auto say = [](const char* name, std::uint64_t n) {
      std::printf("%s %llu\n", name, static_cast<unsigned long long>(n));
    };
    say("probes", counts_.probes);
    say("answers", counts_.answers);
    say("answers_at_the_limit", counts_.answers_at_the_limit);
    say("updates", counts_.updates);
    say("done", done_.load());
    say("shed", counts_.shed);
    say("critical_shed", admission_.stats().critical_shed);
  }

 private:
  weir::io::Fd socket_;
  std::uint32_t limit_;
  weir::AdmissionController admission_;
  Backlog backlog_;
  Counts counts_;  // by the receiving thread
  std::atomic<std::uint64_t> done_{0};
};

}  // namespace

int main(int argc, char** argv) {
  const EndSignals end;

  weir::AdmissionConfig config;
  config.limit.policy = weir::LimitKind::kFixed;
  config.limit.initial_limit = 64;
  config.classes.share_low_permille = 1000;  // nobody but updates wants the limit
  if (argc > 1) {
    const std::string_view text = argv[1];
    std::from_chars(text.data(), text.data() + text.size(), config.limit.initial_limit);
  }
  if (!config.validate().empty()) {
    std::fprintf(stderr, "usage: udp_responder [LIMIT, 1 to 1024]\n");
    return 2;
  }
  weir::io::Fd socket = bind_and_say_where(SOCK_DGRAM);
  if (!socket) return 1;
  const timeval tenth{.tv_sec = 0,
                      .tv_usec = 100'000};  // the receiver looks for its end that often
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &tenth, sizeof tenth);
  Responder responder(std::move(socket), config);
  {
    const std::jthread first_worker([&] { responder.work(); });
    const std::jthread second_worker([&] { responder.work(); });
    std::jthread receiver([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) responder.receive();
    });
    while (!end.came_within_a_tenth()) responder.tick();
    receiver.request_stop();
    receiver.join();
    responder.end();  // the workers finish what was admitted
  }
  responder.print();
  return 0;
}
