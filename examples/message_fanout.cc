// Messages to 100 destinations over UDP, each with a queue of its own: one destination is dead, one
// is slow, and the others do not notice.
//
//   message_fanout [--seconds N] [--rate N]      RATE messages a second to each destination
//
// The destinations are sockets on loopback that a second thread answers for: each message is
// acknowledged by its number. The sender is in datagram_sender.h. The dead one never answers, the
// slow one after 300 ms. A message is sent when its queue says so (at most 64 to one destination
// are not acknowledged yet), fails without an acknowledgement within a second, and is useless after
// three seconds in the queue.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string_view>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "weir/control/outgoing_queues.h"
#include "weir/embed/clock.h"
#include "weir/experimental/io/fd.h"

#include "datagram_sender.h"

namespace {

using std::chrono::milliseconds;
using weir::TimePoint;
using weir::io::Fd;

constexpr std::size_t kDestinations = 100;
constexpr std::size_t kDead = 0;
constexpr std::size_t kSlow = 1;
constexpr weir::Duration kSlowBy = milliseconds(300);

// ---- the other side

/// All destinations: sends each datagram back, except at the dead one.
class Destinations {
 public:
  [[nodiscard]] bool open() {
    for (std::size_t i = 0; i < kDestinations; ++i) {
      sockets_[i] = datagram_socket(names[i]);
      if (!sockets_[i]) return false;
    }
    return true;
  }
  void run() {
    std::array<pollfd, kDestinations> polled{};
    for (std::size_t i = 0; i < kDestinations; ++i) {
      polled[i] = {.fd = i == kDead ? -1 : sockets_[i].get(), .events = POLLIN, .revents = 0};
    }
    while (!stop) {
      ::poll(polled.data(), polled.size(), 5);
      for (std::size_t i = 1; i < kDestinations; ++i) {
        if (polled[i].revents != 0) receive(i);
      }
      while (!late_.empty() && late_.front().at <= weir::embed::now()) {
        answer(kSlow, late_.front().datagram);
        late_.pop_front();
      }
    }
  }

  std::array<sockaddr_in, kDestinations> names{};
  std::atomic<bool> stop{false};

 private:
  struct Datagram {
    std::array<char, 64> bytes;
    std::size_t size = 0;
    sockaddr_in from{};
  };
  struct Late {
    TimePoint at;
    Datagram datagram;
  };
  void receive(std::size_t i) {
    Datagram got;
    socklen_t size = sizeof got.from;
    for (;;) {
      const ssize_t n = ::recvfrom(sockets_[i].get(), got.bytes.data(), got.bytes.size(), 0,
                                   reinterpret_cast<sockaddr*>(&got.from), &size);
      if (n <= 0) return;
      got.size = static_cast<std::size_t>(n);
      if (i == kSlow) {
        late_.push_back({weir::embed::now() + kSlowBy, got});
      } else {
        answer(i, got);
      }
    }
  }
  void answer(std::size_t i, const Datagram& datagram) {
    ::sendto(sockets_[i].get(), datagram.bytes.data(), datagram.size, 0,
             reinterpret_cast<const sockaddr*>(&datagram.from), sizeof datagram.from);
  }

  std::array<Fd, kDestinations> sockets_;
  std::deque<Late> late_;
};

// ---- what it shows

void print_row(const char* name, weir::OutgoingState worst, const weir::OutgoingStats& s) {
  const auto n = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf("%-6s %-10s %8llu %8llu %8llu %8llu %8llu %8llu\n", name, name_of(worst).data(),
              n(s.offered), n(s.sent), n(s.failed), n(s.dropped), n(s.refused), n(s.expired));
}

void print_times(std::vector<weir::Duration>& took) {
  std::sort(took.begin(), took.end());
  const auto at = [&](std::size_t percent) {
    if (took.empty()) return 0.0;
    const weir::Duration one = took[(took.size() - 1) * percent / 100];
    return std::chrono::duration<double, std::milli>(one).count();
  };
  std::printf("others acknowledged after: p50 %.3f ms, p99 %.3f ms\n", at(50), at(99));
}

void print(const DatagramSender& sender) {
  std::printf("%-6s %-10s %8s %8s %8s %8s %8s %8s\n", "to", "worst", "offered", "sent", "failed",
              "dropped", "refused", "expired");
  print_row("dead", sender.seen(kDead).worst, sender.stats(kDead));
  print_row("slow", sender.seen(kSlow).worst, sender.stats(kSlow));
  weir::OutgoingStats sum;
  auto worst = weir::OutgoingState::kHealthy;
  std::vector<weir::Duration> took;
  for (std::size_t i = kSlow + 1; i < kDestinations; ++i) {
    const weir::OutgoingStats stats = sender.stats(i);
    sum.offered += stats.offered;
    sum.sent += stats.sent;
    sum.failed += stats.failed;
    sum.dropped += stats.dropped;
    sum.refused += stats.refused;
    sum.expired += stats.expired;
    worst = std::max(worst, sender.seen(i).worst);
    took.insert(took.end(), sender.seen(i).took.begin(), sender.seen(i).took.end());
  }
  print_row("others", worst, sum);
  print_times(took);
}

struct Options {
  std::uint32_t seconds = 4;
  std::uint32_t rate = 400;
};

bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    const std::string_view text = argv[i + 1];
    std::uint32_t* value = key == "--seconds" ? &options.seconds
                           : key == "--rate"  ? &options.rate
                                              : nullptr;
    if (value == nullptr) return false;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), *value);
    if (read.ec != std::errc() || *value == 0) return false;
  }
  return argc % 2 == 1;
}

/// RATE messages a second to each destination, in turn; then what is under way may finish.
void run(DatagramSender& sender, const Options& options) {
  const TimePoint begin = weir::embed::now();
  const TimePoint end = begin + std::chrono::seconds(options.seconds);
  const weir::Duration between = weir::Duration(std::chrono::seconds(1)) / options.rate;
  const TimePoint last_call = end + std::chrono::seconds(2);
  TimePoint due = begin;
  for (TimePoint now = begin; now < last_call; now = weir::embed::now()) {
    for (; due <= std::min(now, end); due += between) {
      for (std::size_t i = 0; i < kDestinations; ++i) {
        static_cast<void>(sender.offer(i, weir::Priority::kNormal, now));
      }
    }
    sender.pump(now);
    sender.take_answers();
    if (now >= end && sender.idle()) break;
  }
  sender.close();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) {
    std::fputs("message_fanout [--seconds N] [--rate N]\n", stderr);
    return 2;
  }
  Destinations destinations;
  if (!destinations.open()) {
    std::perror("bind");
    return 1;
  }
  std::thread other_side([&] { destinations.run(); });
  DatagramSender sender({destinations.names.begin(), destinations.names.end()}, {});
  run(sender, options);
  destinations.stop = true;
  other_side.join();
  print(sender);
  return 0;
}
