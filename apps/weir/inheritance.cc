#include "inheritance.h"

#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>

#include "weir/experimental/io/listener.h"

namespace weir::app {
namespace {

constexpr Duration kAnswerWithin = std::chrono::seconds(10);

/// The value of an environment variable, which is removed. No other thread runs yet.
std::string take_variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): the only thread
  std::string taken = value == nullptr ? "" : value;
  ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe): the same
  return taken;
}

/// False, with the reason printed, if one of them cannot be used.
bool take_activated(gateway::PassedSockets& passed) {
  const std::string fds = take_variable("LISTEN_FDS");
  const std::string pid = take_variable("LISTEN_PID");
  const std::string names = take_variable("LISTEN_FDNAMES");
  for (io::InheritedSocket& one : io::inherited_sockets({.fds = fds, .pid = pid, .names = names})) {
    if (!io::adopt_listener(one.fd.get(), {})) {
      std::cerr << "weir: descriptor " << one.fd.get() << " (" << one.name
                << "), passed by the service manager, is not a stream socket that listens: use "
                   "ListenStream= and Accept=no in its socket unit\n";
      return false;
    }
    passed.sockets.push_back({.fd = std::move(one.fd),
                              .role = named<gateway::SocketRole>(one.name),
                              .configured = {},
                              .name = std::move(one.name),
                              .held = true});
  }
  return true;
}

/// The same for those of the running process.
bool take_from_running(Inheritance& all, const std::string& path) {
  if (path.empty()) {
    std::cerr << "weir run: --take-over needs admin.take_over_socket, the path at which the "
                 "running process is asked\n";
    return false;
  }
  auto over = gateway::TakeOver::begin(path, kAnswerWithin);
  if (!over) {
    if (over.error().nobody) {
      std::cerr << "weir: " << over.error().message << ": starting without a take-over\n";
      return true;
    }
    std::cerr << "weir: " << over.error().message << "\n";
    return false;
  }
  all.passed = {.sockets = over->take_sockets(),
                .from_predecessor = true,
                .ticket_keys = over->ticket_keys()};
  std::cerr << "weir: taking over " << all.passed.sockets.size() << " listening sockets of process "
            << over->predecessor() << "\n";
  all.take_over = std::move(*over);
  return true;
}

}  // namespace

std::optional<Inheritance> inherit(const config::Config& config, bool take_over) {
  Inheritance all;
  all.notify_socket = take_variable("NOTIFY_SOCKET");
  if (!take_activated(all.passed)) return std::nullopt;
  if (take_over && !take_from_running(all, config.admin.take_over_socket)) return std::nullopt;
  return all;
}

}  // namespace weir::app
