// WebSocket over HTTP/1.1: a service that sends every message back, and clients of it that keep
// --window messages under way on each connection.
//
//   socket_traffic --serve 1                      prints "port N"
//   socket_traffic --port 8080 --connections 32 --window 4 --size 64 --seconds 3
//
// The clients number their messages, compare what comes back with what they sent, and print
// {"messages": N, "seconds": S}; they exit with 1 if an answer is wrong or a connection ends.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "traffic_classes.h"

namespace {

using weir_test::Clock;
using weir_test::read_number;

constexpr std::size_t kSizeMax = 125;  // of a message: one byte of length
constexpr char kMask[] = {0x12, 0x34, 0x56, 0x78};
constexpr std::string_view kKey = "dGhlIHNhbXBsZSBub25jZQ==";

struct Options {
  std::uint16_t port = 0;
  int serve = 0;
  double seconds = 3;
  std::size_t connections = 32;
  std::size_t window = 4;
  std::size_t size = 64;
};

struct Peer {
  int fd = -1;
  bool open = false;  // the protocol is switched
  std::string input;
  std::string output;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

/// Writes what it can; false if the connection is gone.
bool flush(Peer& peer) {
  while (!peer.output.empty()) {
    const ssize_t n = ::send(peer.fd, peer.output.data(), peer.output.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    peer.output.erase(0, static_cast<std::size_t>(n));
  }
  return true;
}

/// Reads what has come; false if the connection is gone.
bool fill(Peer& peer) {
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t n = ::recv(peer.fd, block.data(), block.size(), 0);
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    peer.input.append(block.data(), static_cast<std::size_t>(n));
  }
}

void watch(int epoll, Peer& peer) {
  const int on = 1;
  ::setsockopt(peer.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLET;
  event.data.ptr = &peer;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, peer.fd, &event);
}

/// The head before an empty line, taken off the input; empty if it is not complete.
std::string take_head(Peer& peer) {
  const std::size_t end = peer.input.find("\r\n\r\n");
  if (end == std::string::npos) return {};
  std::string head = peer.input.substr(0, end + 2);
  peer.input.erase(0, end + 4);
  return head;
}

std::string accept_of(std::string_view key) {
  const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest;
  ::SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::array<unsigned char, 29> encoded;
  ::EVP_EncodeBlock(encoded.data(), digest.data(), static_cast<int>(digest.size()));
  return reinterpret_cast<const char*>(encoded.data());
}

/// The next whole frame of at most kSizeMax bytes; its payload is at `payload` in the input.
struct Frame {
  std::size_t payload = 0;
  std::size_t size = 0;
  std::size_t whole = 0;  // 0: not complete
};

Frame next_frame(std::string_view input, bool masked) {
  const std::size_t head = masked ? 6 : 2;
  if (input.size() < head) return {};
  const std::size_t size = static_cast<unsigned char>(input[1]) & 0x7f;
  if (input.size() < head + size) return {};
  return {.payload = head, .size = size, .whole = head + size};
}

// ---- the service

bool answer_head(Peer& peer) {
  const std::string head = take_head(peer);
  if (head.empty()) return true;
  constexpr std::string_view kName = "sec-websocket-key: ";
  std::string lower = head;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const std::size_t at = lower.find(kName);
  if (at == std::string::npos) return false;
  const std::size_t from = at + kName.size();
  peer.output =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: " +
      accept_of(head.substr(from, head.find("\r\n", from) - from)) + "\r\n\r\n";
  peer.open = true;
  return true;
}

void echo(Peer& peer) {
  std::size_t at = 0;
  for (;;) {
    const std::string_view rest = std::string_view(peer.input).substr(at);
    const Frame frame = next_frame(rest, true);
    if (frame.whole == 0) break;
    peer.output.push_back(rest[0]);
    peer.output.push_back(static_cast<char>(frame.size));
    for (std::size_t i = 0; i < frame.size; ++i) {
      peer.output.push_back(static_cast<char>(rest[frame.payload + i] ^ rest[2 + (i & 3)]));
    }
    at += frame.whole;
  }
  peer.input.erase(0, at);
}

bool serve_one(Peer& peer) {
  if (!fill(peer)) return false;
  if (!peer.open && !answer_head(peer)) return false;
  if (peer.open) echo(peer);
  return flush(peer);
}

[[noreturn]] void serve() {
  const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof here;
  ::bind(listening, reinterpret_cast<sockaddr*>(&here), sizeof here);
  ::listen(listening, 1024);
  ::getsockname(listening, reinterpret_cast<sockaddr*>(&here), &size);
  std::printf("port %u\n", static_cast<unsigned>(ntohs(here.sin_port)));
  std::fflush(stdout);
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, listening, &event);
  std::array<epoll_event, 256> events;
  for (;;) {
    const int count = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      auto* peer = static_cast<Peer*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (peer == nullptr) {
        peer = new Peer;
        peer->fd = ::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        watch(epoll, *peer);
      } else if (!serve_one(*peer)) {
        ::close(peer->fd);
        delete peer;
      }
    }
  }
}

// ---- the clients

class Clients {
 public:
  explicit Clients(const Options& options)
      : options_(options), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

  /// True if every answer was right.
  bool run() {
    for (std::size_t i = 0; i < options_.connections; ++i) {
      peers_.push_back(std::make_unique<Peer>());
      if (!connect(*peers_.back())) return false;
    }
    const Clock::time_point begin = Clock::now();
    const Clock::time_point end = begin + std::chrono::duration_cast<Clock::duration>(
                                              std::chrono::duration<double>(options_.seconds));
    std::array<epoll_event, 256> events;
    while (Clock::now() < end) {
      const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 20);
      for (int i = 0; i < count; ++i) {
        if (!handle(*static_cast<Peer*>(events[static_cast<std::size_t>(i)].data.ptr))) {
          return false;
        }
      }
    }
    std::uint64_t messages = 0;
    for (const auto& peer : peers_) messages += peer->received;
    std::printf("{\"messages\": %llu, \"seconds\": %.3f}\n",
                static_cast<unsigned long long>(messages),
                std::chrono::duration<double>(Clock::now() - begin).count());
    return messages > 0;
  }

 private:
  bool connect(Peer& peer) {
    peer.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(options_.port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(peer.fd, reinterpret_cast<sockaddr*>(&there), sizeof there) != 0 &&
        errno != EINPROGRESS) {
      return false;
    }
    peer.output =
        "GET /echo HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " +
        std::string(kKey) + "\r\n\r\n";
    watch(epoll_, peer);
    return true;
  }

  bool handle(Peer& peer) {
    if (!flush(peer)) return false;
    if (!fill(peer)) return false;
    if (!peer.open) {
      const std::string head = take_head(peer);
      if (head.empty()) return true;
      if (!head.starts_with("HTTP/1.1 101") || head.find(accept_of(kKey)) == std::string::npos) {
        std::fprintf(stderr, "socket_traffic: not opened: %s\n", head.c_str());
        return false;
      }
      peer.open = true;
    }
    if (!take_answers(peer)) return false;
    while (peer.sent - peer.received < options_.window) ask(peer);
    return flush(peer);
  }

  /// The number of the message, again and again.
  char byte_of(std::uint64_t number, std::size_t i) const {
    return static_cast<char>(number >> (8 * (i & 7)) & 0xff);
  }

  void ask(Peer& peer) {
    peer.output.push_back(static_cast<char>(0x82));
    peer.output.push_back(static_cast<char>(0x80 | options_.size));
    peer.output.append(kMask, sizeof kMask);
    for (std::size_t i = 0; i < options_.size; ++i) {
      peer.output.push_back(static_cast<char>(byte_of(peer.sent, i) ^ kMask[i & 3]));
    }
    ++peer.sent;
  }

  bool take_answers(Peer& peer) {
    std::size_t at = 0;
    for (;;) {
      const std::string_view rest = std::string_view(peer.input).substr(at);
      const Frame frame = next_frame(rest, false);
      if (frame.whole == 0) break;
      bool same = frame.size == options_.size;
      for (std::size_t i = 0; same && i < frame.size; ++i) {
        same = rest[frame.payload + i] == byte_of(peer.received, i);
      }
      if (!same) {
        std::fprintf(stderr, "socket_traffic: another message came back\n");
        return false;
      }
      ++peer.received;
      at += frame.whole;
    }
    peer.input.erase(0, at);
    return true;
  }

  const Options options_;
  const int epoll_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    const bool good = (name == "--port" && read_number(value, options.port)) ||
                      (name == "--serve" && read_number(value, options.serve)) ||
                      (name == "--seconds" && read_number(value, options.seconds)) ||
                      (name == "--connections" && read_number(value, options.connections)) ||
                      (name == "--window" && read_number(value, options.window)) ||
                      (name == "--size" && read_number(value, options.size) && options.size >= 8 &&
                       options.size <= kSizeMax);
    if (!good) {
      std::fprintf(stderr, "socket_traffic: cannot read %s %s\n", argv[i], argv[i + 1]);
      return 2;
    }
  }
  if (options.serve != 0) serve();
  return Clients(options).run() ? 0 : 1;
}
