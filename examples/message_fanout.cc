// Messages to 100 destinations over UDP, each with a queue of its own: one destination is dead, one
// is slow, and the others do not notice.
//
//   message_fanout [--seconds N] [--rate N]      RATE messages a second to each destination
//
// The destinations are sockets on loopback that a second thread answers for: each message is
// acknowledged by its number. The dead one never answers, the slow one after 300 ms. A message is
// sent when its queue says so (at most 64 to one destination are not acknowledged yet), fails
// without an acknowledgement within a second, and is useless after three seconds in the queue.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "weir/base/intrusive_list.h"
#include "weir/control/outgoing_queues.h"
#include "weir/embed/clock.h"
#include "weir/experimental/io/fd.h"

namespace {

using std::chrono::milliseconds;
using weir::OutgoingEnd;
using weir::OutgoingItem;
using weir::TimePoint;
using weir::io::Fd;

constexpr std::size_t kDestinations = 100;
constexpr std::size_t kDead = 0;
constexpr std::size_t kSlow = 1;
constexpr weir::Duration kSlowBy = milliseconds(300);
constexpr weir::Duration kAckTimeout = std::chrono::seconds(1);
constexpr weir::Duration kUseless = std::chrono::seconds(3);

Fd bound_socket(sockaddr_in& name) {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  name.sin_family = AF_INET;
  name.sin_port = 0;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  auto* const address = reinterpret_cast<sockaddr*>(&name);
  const bool ok =
      ::bind(socket.get(), address, size) == 0 && ::getsockname(socket.get(), address, &size) == 0;
  return ok ? std::move(socket) : Fd();
}

// ---- the other side

/// All destinations: sends each datagram back, except at the dead one.
class Destinations {
 public:
  [[nodiscard]] bool open() {
    for (std::size_t i = 0; i < kDestinations; ++i) {
      sockets_[i] = bound_socket(names[i]);
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

// ---- the sender

class Sender;

/// A message; the queues hold nothing but the item in it.
struct Message {
  explicit Message(Sender& owner) : item(&Message::on_end, this), sender(owner) {}
  static void on_end(OutgoingItem& ended, OutgoingEnd how) noexcept;

  OutgoingItem item;
  Sender& sender;
  std::size_t destination = 0;
  std::uint64_t number = 0;
  TimePoint made_at{};
  TimePoint sent_at{};
  weir::ListHook<Message> hook;  // free, or not acknowledged
};

class Sender {
 public:
  explicit Sender(const Destinations& others) : queues_(directory_) {
    // As many as queues and windows can hold: making a message never allocates.
    const weir::OutgoingConfig& config = directory_.config();
    const std::size_t each = config.queue_size + config.overflow_size + config.in_flight_max + 1;
    for (std::size_t i = 0; i < kDestinations * each; ++i) {
      messages_.push_back(std::make_unique<Message>(*this));
      free_.push_back(*messages_.back());
    }
    for (std::size_t i = 0; i < kDestinations; ++i) {
      sockaddr_in own{};
      sockets_[i] = bound_socket(own);
      ::connect(sockets_[i].get(), reinterpret_cast<const sockaddr*>(&others.names[i]),
                sizeof others.names[i]);
    }
  }

  // [fan out]
  /// Offers one message; the queue never blocks and says what to do next.
  weir::OutgoingPut offer(std::size_t destination, TimePoint now) {
    Message& message = *free_.front();
    free_.remove(message);
    message.destination = destination;
    message.number = next_number_++;
    message.made_at = now;
    message.item.bytes = sizeof message.number;
    message.item.deadline = now + kUseless;
    const weir::OutgoingPut put = queues_.put(destination, message.item, now);
    worst_[destination] = std::max(worst_[destination], put.state);
    if (!put.accepted()) free_.push_back(message);  // it has ended already
    return put;
  }

  /// Sends what the queues allow: a destination with a full window is passed over.
  void pump(TimePoint now) {
    queues_.expire(now);
    while (OutgoingItem* item = queues_.next(now)) {
      Message& message = *static_cast<Message*>(item->context());
      message.sent_at = now;
      ::send(sockets_[message.destination].get(), &message.number, sizeof message.number, 0);
      unanswered_[message.destination].push_back(message);
    }
  }
  // [end]

  /// Ends messages that were acknowledged, or not in time.
  void take_answers(TimePoint now) {
    for (std::size_t i = 0; i < kDestinations; ++i) {
      std::uint64_t number = 0;
      while (::recv(sockets_[i].get(), &number, sizeof number, 0) == sizeof number) {
        acknowledged(i, number, now);
      }
      while (Message* oldest = unanswered_[i].front()) {
        if (oldest->sent_at + kAckTimeout > now) break;
        unanswered_[i].remove(*oldest);
        queues_.finish(oldest->item, OutgoingEnd::kFailed);
      }
    }
  }
  void close() {
    queues_.close();
    for (auto& messages : unanswered_) {
      while (Message* message = messages.front()) {
        messages.remove(*message);
        queues_.finish(message->item, OutgoingEnd::kFailed);
      }
    }
  }
  [[nodiscard]] bool idle() const {
    const weir::OutgoingStats stats = queues_.stats();
    return stats.queued + stats.in_flight == 0;
  }
  void ended(Message& message) noexcept { free_.push_back(message); }
  void print() const;

 private:
  void acknowledged(std::size_t from, std::uint64_t number, TimePoint now) {
    for (Message& message : unanswered_[from]) {
      if (message.number != number) continue;
      unanswered_[from].remove(message);
      if (from > kSlow) took_.push_back(now - message.made_at);
      queues_.finish(message.item, OutgoingEnd::kSent);
      return;
    }
  }

  weir::OutgoingDirectory directory_{weir::OutgoingConfig{}};
  weir::OutgoingQueues queues_;
  using Messages = weir::IntrusiveList<Message, &Message::hook>;
  std::vector<std::unique_ptr<Message>> messages_;
  Messages free_;
  std::array<Messages, kDestinations> unanswered_;  // oldest first
  std::array<Fd, kDestinations> sockets_;
  std::array<weir::OutgoingState, kDestinations> worst_{};
  std::vector<weir::Duration> took_;  // by the others
  std::uint64_t next_number_ = 0;
};

void Message::on_end(OutgoingItem& ended, OutgoingEnd) noexcept {
  Message& message = *static_cast<Message*>(ended.context());
  message.sender.ended(message);
}

void print_row(const char* name, weir::OutgoingState state, const weir::OutgoingStats& s) {
  const auto n = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf("%-6s %-10s %8llu %8llu %8llu %8llu %8llu %8llu\n", name, name_of(state).data(),
              n(s.offered), n(s.sent), n(s.failed), n(s.dropped), n(s.refused), n(s.expired));
}

void Sender::print() const {
  std::printf("%-6s %-10s %8s %8s %8s %8s %8s %8s\n", "to", "worst", "offered", "sent", "failed",
              "dropped", "refused", "expired");
  weir::OutgoingStats others;
  auto worst = weir::OutgoingState::kHealthy;
  for (std::size_t i = 0; i < kDestinations; ++i) {
    const weir::OutgoingStats stats = queues_.find(i)->stats();
    if (i <= kSlow) {
      print_row(i == kDead ? "dead" : "slow", worst_[i], stats);
      continue;
    }
    worst = std::max(worst, worst_[i]);
    others.offered += stats.offered;
    others.sent += stats.sent;
    others.failed += stats.failed;
    others.dropped += stats.dropped;
    others.refused += stats.refused;
    others.expired += stats.expired;
  }
  print_row("others", worst, others);
  std::vector<weir::Duration> sorted = took_;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](std::size_t percent) {
    if (sorted.empty()) return 0.0;
    const weir::Duration took = sorted[(sorted.size() - 1) * percent / 100];
    return std::chrono::duration<double, std::milli>(took).count();
  };
  std::printf("others acknowledged after: p50 %.3f ms, p99 %.3f ms\n", at(50), at(99));
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

void wait_a_millisecond() {
  ::poll(nullptr, 0, 1);
}

/// RATE messages a second to each destination, in turn; then what is under way may finish.
void run(Sender& sender, const Options& options) {
  const TimePoint begin = weir::embed::now();
  const TimePoint end = begin + std::chrono::seconds(options.seconds);
  const weir::Duration between = weir::Duration(std::chrono::seconds(1)) / options.rate;
  const TimePoint last_call = end + 2 * kAckTimeout;
  TimePoint due = begin;
  for (TimePoint now = begin; now < last_call; now = weir::embed::now()) {
    for (; due <= std::min(now, end); due += between) {
      for (std::size_t i = 0; i < kDestinations; ++i) static_cast<void>(sender.offer(i, now));
    }
    sender.pump(now);
    sender.take_answers(now);
    if (now >= end && sender.idle()) break;
    wait_a_millisecond();
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
  Sender sender(destinations);
  run(sender, options);
  destinations.stop = true;
  other_side.join();
  sender.print();
  return 0;
}
