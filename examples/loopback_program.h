#pragma once

// Helpers of the examples: a port on loopback, and ending by signal.

#include <csignal>
#include <cstdio>
#include <ctime>

#include <netinet/in.h>
#include <sys/socket.h>

#include "weir/experimental/io/fd.h"

/// Waits for SIGTERM and SIGINT. Construct it before any thread, which would else receive them.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  /// Sleeps for a tenth of a second, or until one arrives.
  [[nodiscard]] bool came_within_a_tenth() const {
    const timespec tenth{.tv_sec = 0, .tv_nsec = 100'000'000};
    return ::sigtimedwait(&set_, nullptr, &tenth) >= 0;
  }

 private:
  sigset_t set_{};
};

/// A socket of this type (SOCK_STREAM, SOCK_DGRAM) on a loopback port that the system chooses;
/// prints the port. On failure prints why and returns an empty Fd. Further datagram sockets of this
/// program may be bound to the same port.
inline weir::io::Fd bind_and_say_where(int type) {
  weir::io::Fd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  auto* const address = reinterpret_cast<sockaddr*>(&name);
  const int shared = type == SOCK_DGRAM ? 1 : 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &shared, sizeof shared);
  if (::bind(socket.get(), address, size) != 0 ||
      (type == SOCK_STREAM && ::listen(socket.get(), 1024) != 0) ||
      ::getsockname(socket.get(), address, &size) != 0) {
    std::perror("bind");
    return {};
  }
  std::printf("port %d\n", ntohs(name.sin_port));
  std::fflush(stdout);
  return socket;
}
