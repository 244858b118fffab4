// A UDP service that answers probes under any load.
//
//   udp_responder [LIMIT]    prints "port N"
//
// A datagram "P…" is a probe: it is critical, so it is never refused, and it is sent back as "A…".
// A datagram "U…" is an update: it is low, takes 20 ms of a worker, and when LIMIT of them (64) are
// in flight the next one is dropped without an answer. On SIGTERM it ends and prints its counts.
//
// Admission sees only what was read; the kernel drops what does not fit the socket's queue. So
// probes have a socket of their own, on the same port: a flood of updates cannot fill its queue.
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

#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

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

/// Updates that were admitted and are queued for a worker. It needs no bound of its own: every
/// entry holds a permit, so admission bounds it.
class Backlog {
 public:
  void put(weir::Permit permit) {
    const std::scoped_lock lock(mutex_);
    permits_.push_back(std::move(permit));
    changed_.notify_one();
  }
  /// Returns an empty permit at the end.
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

struct Sockets {
  Fd probes;
  Fd updates;
};

/// Two sockets on one port. The kernel chooses by a datagram's first byte: 'P' goes to the one that
/// was bound first. On failure prints why and returns an empty Fd.
Sockets bind_lanes() {
  Sockets lanes{bind_and_say_where(SOCK_DGRAM),
                Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0))};
  if (!lanes.probes) return lanes;
  std::array<sock_filter, 4> choose{{{BPF_LD | BPF_B | BPF_ABS, 0, 0, 0},
                                     {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 'P'},
                                     {BPF_RET | BPF_K, 0, 0, 0},
                                     {BPF_RET | BPF_K, 0, 0, 1}}};
  const sock_fprog program{.len = choose.size(), .filter = choose.data()};
  const int shared = 1;
  sockaddr_in name{};
  socklen_t size = sizeof name;
  auto* const address = reinterpret_cast<sockaddr*>(&name);
  const int fd = lanes.updates.get();
  if (::getsockname(lanes.probes.get(), address, &size) != 0 ||
      ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &shared, sizeof shared) != 0 ||
      ::bind(fd, address, size) != 0 ||
      ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program) != 0) {
    std::perror("second socket");
    lanes.probes = Fd();
  }
  return lanes;
}

struct Counts {
  std::uint64_t probes = 0;
  std::uint64_t answers = 0;
  std::uint64_t answers_at_the_limit = 0;  // sent while no further update would have been admitted
  std::uint64_t updates = 0;
  std::uint64_t shed = 0;
};

class Responder {
 public:
  Responder(Sockets sockets, const weir::AdmissionConfig& config)
      : sockets_(std::move(sockets)),
        limit_(config.limit.initial_limit),
        admission_(config, weir::Rng(weir::io::random_seed())) {}

  /// Waits up to a tenth of a second and reads at most one datagram of each kind.
  void receive() {
    std::array<pollfd, 2> ready{
        {{sockets_.probes.get(), POLLIN, 0}, {sockets_.updates.get(), POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), 100) <= 0) return;
    for (const pollfd& one : ready) {
      if (one.revents != 0) take(one.fd);
    }
  }

  void take(int fd) {
    std::array<char, 2048> buffer;
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const long got = ::recvfrom(fd, buffer.data(), buffer.size(), MSG_DONTWAIT,
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
    const long sent = ::sendto(fd, buffer.data(), static_cast<std::size_t>(got), 0,
                               reinterpret_cast<const sockaddr*>(&from), size);
    counts_.answers += sent == got ? 1U : 0U;
    counts_.answers_at_the_limit += admission_.stats().in_flight >= limit_ ? 1U : 0U;
    std::move(*permit).finish(weir::Outcome::kOk, monotonic_now());
  }

  /// Processes updates until end().
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
  Sockets sockets_;
  std::uint32_t limit_;
  weir::AdmissionController admission_;
  Backlog backlog_;
  Counts counts_;  // written by the receiving thread
  std::atomic<std::uint64_t> done_{0};
};

}  // namespace

int main(int argc, char** argv) {
  const EndSignals end;

  weir::AdmissionConfig config;
  config.limit.policy = weir::LimitKind::kFixed;
  config.limit.initial_limit = 64;
  config.classes.share_low_permille = 1000;  // only updates use the limit
  if (argc > 1) {
    const std::string_view text = argv[1];
    std::from_chars(text.data(), text.data() + text.size(), config.limit.initial_limit);
  }
  if (!config.validate().empty()) {
    std::fprintf(stderr, "usage: udp_responder [LIMIT, 1 to 1024]\n");
    return 2;
  }
  Sockets sockets = bind_lanes();
  if (!sockets.probes) return 1;
  Responder responder(std::move(sockets), config);
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
