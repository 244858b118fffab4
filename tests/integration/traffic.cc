// An open-loop client: sends at the planned times, independent of the answers, and prints the
// result of every request as JSON. It knows nothing of Weir but HTTP/1.1.
//
//   traffic --port 8080 --seconds 5 --connections 500 --class PATH:RATE[:HEADER] …
//
// A request that finds no free connection counts as "unsent": the offered load was not reached.
// --open N opens only N connections at the start and the others when they are needed; --patience S
// abandons a request after S seconds ("late"). --settle S sends for S seconds before it counts: a
// pause between settling and measuring would be part of the measurement.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "traffic_classes.h"

namespace {

using weir_test::as_duration;
using weir_test::Clock;
using weir_test::read_number;
using weir_test::Time;

/// A class, and its request as it is sent.
struct Stream : weir_test::TrafficClass {
  std::string request;
};

struct Connection {
  int fd = -1;
  bool connecting = false;
  Stream* stream = nullptr;  // of the current request
  Time sent{};
  std::string input;
  std::string output;
};

struct Options {
  std::uint16_t port = 0;
  double seconds = 5;   // counted
  double settle = 0;    // before that, not counted
  double grace = 2;     // after the last request, for answers
  double patience = 0;  // 0: unlimited
  std::size_t connections = 100;
  std::size_t open = SIZE_MAX;
  std::vector<Stream> streams;
};

class Traffic {
 public:
  explicit Traffic(Options options) : options_(std::move(options)), epoll_(::epoll_create1(0)) {
    connections_.resize(options_.connections);
    const std::size_t at_once = std::min(options_.open, connections_.size());
    for (std::size_t i = 0; i < at_once; ++i) open(connections_[i]);
  }

  void run() {
    const Time begin = Clock::now();
    counted_from_ = begin + as_duration(options_.settle);
    const Time end = counted_from_ + as_duration(options_.seconds);
    for (Stream& stream : options_.streams) {
      stream.gap = as_duration(1.0 / stream.rate);
      stream.next = begin;
    }
    for (;;) {
      const Time now = Clock::now();
      if (now < end) send_due(now);
      if (now >= end && (under_way_ == 0 || now >= end + as_duration(options_.grace))) break;
      Time wake = now + std::chrono::milliseconds(20);
      if (now < end) {
        for (const Stream& stream : options_.streams) wake = std::min(wake, stream.next);
      }
      poll(wake);
      if (options_.patience > 0) give_up(Clock::now());
    }
    for (Connection& connection : connections_) {
      if (counts(connection)) ++connection.stream->broken;
    }
    seconds_ = std::chrono::duration<double>(std::min(Clock::now(), end) - counted_from_).count();
  }

  void report() {
    std::vector<weir_test::TrafficClass> classes(options_.streams.begin(), options_.streams.end());
    weir_test::print_report(seconds_, classes);
  }

 private:
  bool counts(const Connection& connection) const {
    return connection.stream != nullptr && connection.sent >= counted_from_;
  }

  void open(Connection& connection) {
    connection.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connection.fd < 0) return;
    const int on = 1;
    ::setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(options_.port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int done = ::connect(connection.fd, reinterpret_cast<sockaddr*>(&there), sizeof there);
    if (done != 0 && errno != EINPROGRESS) return close(connection);
    connection.connecting = done != 0;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.ptr = &connection;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event);
    if (!connection.connecting) free_.push_back(&connection);
  }

  void close(Connection& connection) {
    if (counts(connection)) ++connection.stream->broken;
    if (connection.stream != nullptr) --under_way_;
    connection.stream = nullptr;
    std::erase(free_, &connection);
    if (connection.fd >= 0) ::close(connection.fd);
    connection.fd = -1;
    connection.connecting = false;
    connection.input.clear();
    connection.output.clear();
  }

  void send_due(Time now) {
    for (Stream& stream : options_.streams) {
      while (stream.next <= now) {
        send(stream, stream.next);
        stream.next += stream.gap;
      }
    }
  }

  void send(Stream& stream, Time planned) {
    const unsigned counted = planned >= counted_from_ ? 1 : 0;
    stream.offered += counted;
    Connection* found = take_free();
    if (found == nullptr) {
      stream.unsent += counted;
      return;
    }
    Connection& connection = *found;
    connection.stream = &stream;
    connection.sent = planned;
    connection.output = stream.request;
    ++under_way_;
    flush(connection);
  }

  /// An open and free connection, else one that is opened now; null if all are in use.
  Connection* take_free() {
    if (free_.empty()) {
      for (Connection& connection : connections_) {
        if (connection.fd >= 0) continue;
        open(connection);
        if (connection.connecting) return &connection;
        break;
      }
    }
    if (free_.empty()) return nullptr;
    Connection* connection = free_.back();
    free_.pop_back();
    return connection;
  }

  void give_up(Time now) {
    const Time oldest = now - as_duration(options_.patience);
    for (Connection& connection : connections_) {
      if (connection.stream == nullptr || connection.sent > oldest) continue;
      if (counts(connection)) ++connection.stream->late;
      connection.stream = nullptr;
      --under_way_;
      close(connection);
    }
  }

  void flush(Connection& connection) {
    if (connection.connecting) return;
    while (!connection.output.empty()) {
      const ssize_t n =
          ::send(connection.fd, connection.output.data(), connection.output.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) return reopen(connection);
      connection.output.erase(0, static_cast<std::size_t>(n));
    }
  }

  void reopen(Connection& connection) {
    close(connection);
    open(connection);
  }

  void poll(Time wake) {
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(wake - Clock::now());
    const int ms = std::max(0, static_cast<int>((left.count() + 999) / 1000));
    std::array<epoll_event, 256> events;
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), ms);
    for (int i = 0; i < count; ++i) {
      Connection& connection =
          *static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
      handle(connection, events[static_cast<std::size_t>(i)].events);
    }
  }

  void handle(Connection& connection, std::uint32_t events) {
    if (connection.fd < 0) return;
    if (connection.connecting && (events & EPOLLOUT) != 0) {
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(connection.fd, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) return close(connection);
      connection.connecting = false;
      if (connection.stream == nullptr) free_.push_back(&connection);
    }
    if ((events & EPOLLOUT) != 0) flush(connection);
    if (connection.fd >= 0 && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read(connection);
  }

  void read(Connection& connection) {
    std::array<char, 16384> block;
    for (;;) {
      const ssize_t n = ::recv(connection.fd, block.data(), block.size(), 0);
      if (n < 0 && errno == EAGAIN) break;
      if (n <= 0) return reopen(connection);
      connection.input.append(block.data(), static_cast<std::size_t>(n));
    }
    parse(connection);
  }

  void parse(Connection& connection) {
    const std::size_t end = connection.input.find("\r\n\r\n");
    if (end == std::string::npos || connection.stream == nullptr) return;
    // Field names have no case.
    std::string head = connection.input.substr(0, end);
    std::transform(head.begin(), head.end(), head.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    std::size_t length = 0;
    if (const std::size_t at = head.find("content-length: "); at != std::string::npos) {
      std::from_chars(head.data() + at + 16, head.data() + head.size(), length);
    }
    if (connection.input.size() < end + 4 + length) return;
    int status = 0;
    std::from_chars(head.data() + 9, head.data() + 12, status);
    const bool closes = head.find("connection: close") != std::string::npos;
    const double ms =
        std::chrono::duration<double, std::milli>(Clock::now() - connection.sent).count();
    if (counts(connection)) record(*connection.stream, status, ms);
    connection.stream = nullptr;
    --under_way_;
    connection.input.erase(0, end + 4 + length);
    if (closes) return reopen(connection);
    free_.push_back(&connection);
  }

  static void record(Stream& stream, int status, double ms) {
    if (status >= 200 && status < 300) {
      ++stream.ok;
      stream.ok_ms.push_back(ms);
    } else if (status == 503 || status == 429) {
      ++stream.refused;
      stream.refused_ms.push_back(ms);
    } else {
      ++stream.other;
    }
  }

  Options options_;
  int epoll_;
  std::vector<Connection> connections_;
  std::vector<Connection*> free_;
  std::size_t under_way_ = 0;
  Time counted_from_{};
  double seconds_ = 0;
};

bool add_class(Options& options, std::string_view text) {
  const std::optional<weir_test::TrafficClass> one = weir_test::read_class(text);
  if (!one) return false;
  Stream stream{*one, {}};
  stream.request = "GET " + one->path + " HTTP/1.1\r\nhost: test\r\n";
  if (!one->field.empty()) stream.request.append(one->field).append("\r\n");
  stream.request += "\r\n";
  options.streams.push_back(std::move(stream));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    const bool good = (name == "--port" && read_number(value, options.port)) ||
                      (name == "--seconds" && read_number(value, options.seconds)) ||
                      (name == "--settle" && read_number(value, options.settle)) ||
                      (name == "--grace" && read_number(value, options.grace)) ||
                      (name == "--patience" && read_number(value, options.patience)) ||
                      (name == "--open" && read_number(value, options.open)) ||
                      (name == "--connections" && read_number(value, options.connections)) ||
                      (name == "--class" && add_class(options, value));
    if (!good) {
      std::fprintf(stderr, "traffic: cannot read %s %s\n", argv[i], argv[i + 1]);
      return 2;
    }
  }
  Traffic traffic(std::move(options));
  traffic.run();
  traffic.report();
  return 0;
}
