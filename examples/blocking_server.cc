// A thread-per-request TCP server that keeps answering under overload.
//
//   blocking_server [LIMIT]    prints "port N"; then try: curl -i http://127.0.0.1:N/20
//
// Each request simulates work for as many milliseconds as its path says. LIMIT of them (4) may run
// at once; the next ones wait in their threads for up to 50 ms; a request that cannot be served in
// time is refused at once with a retry hint. On SIGTERM it ends and prints its counts.
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "weir/control/admission_controller.h"
#include "weir/embed/thread_parker.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/entropy.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/memory_reader.h"
#include "weir/policy/retry_hint.h"

#include "loopback_program.h"

namespace {

constexpr int kThreads = 128;

using weir::embed::ThreadParker;
using weir::io::Fd;
using weir::io::monotonic_now;

std::uint32_t number_in(std::string_view text, std::uint32_t otherwise) {
  std::uint32_t value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void answer(const weir::io::Fd& connection, const std::string& head, std::string_view body) {
  const std::string response = "HTTP/1.1 " + head + "\r\nconnection: close\r\ncontent-length: " +
                               std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  static_cast<void>(::send(connection.get(), response.data(), response.size(), MSG_NOSIGNAL));
}

void refuse(const weir::io::Fd& connection, weir::AdmissionController& admission,
            weir::Reason reason) {
  static thread_local weir::Rng rng(weir::io::random_seed());
  const weir::Duration hint = admission.retry_after(weir::ScopeId::kFirst, monotonic_now(), rng);
  answer(connection,
         std::to_string(weir::facts_of(reason).http) +
             " Refused\r\nretry-after: " + std::to_string(weir::retry_after_seconds(hint)) +
             "\r\nx-weir-reason: " + std::string(weir::name_of(reason)),
         "come back later\n");
}

/// The work of your server: here, "GET /20 …" takes 20 milliseconds.
std::string_view handle(std::string_view request) {
  const std::size_t path = request.find('/');
  const std::uint32_t ms = path < request.size() ? number_in(request.substr(path + 1), 0) : 0;
  ThreadParker().park_until(monotonic_now() + std::chrono::milliseconds(ms));
  return "done\n";
}

void serve(weir::AdmissionController& admission, const weir::io::Fd& connection) {
  char buffer[4096];
  const long got = ::recv(connection.get(), buffer, sizeof buffer, 0);
  if (got <= 0) return;
  const std::string_view http(buffer, static_cast<std::size_t>(got));
  weir::AdmissionRequest request;
  request.priority = weir::Priority::kNormal;

  ThreadParker parker;  // blocks for up to 50 ms if there is no room now
  auto permit = admission.admit(request, parker, monotonic_now());
  if (!permit) return refuse(connection, admission, permit.error());

  const std::string_view body = handle(http);
  std::move(*permit).finish(weir::Outcome::kOk, monotonic_now());
  answer(connection, "200 OK", body);
}

}  // namespace

int main(int argc, char** argv) {
  const EndSignals end;

  weir::AdmissionConfig config;
  config.limit.policy = weir::LimitKind::kFixed;
  config.limit.initial_limit = number_in(argc > 1 ? argv[1] : "", 4);
  auto created = weir::AdmissionController::create(config, weir::Rng(weir::io::random_seed()));
  if (!created) {
    std::fprintf(stderr, "usage: blocking_server [LIMIT, 1 to 1024]\n");
    return 2;
  }
  weir::AdmissionController& admission = **created;
  const Fd listener = bind_and_say_where(SOCK_STREAM);
  if (!listener) return 1;
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (;;) {
          const weir::io::Fd connection(::accept(listener.get(), nullptr, nullptr));
          if (!connection) return;
          serve(admission, connection);
        }
      });
    }
    weir::io::MemoryReader reader;
    // Ten times a second: close windows, expire waiters; twice a second: read the memory usage.
    for (int turn = 0; !end.came_within_a_tenth(); ++turn) {
      admission.expire(monotonic_now());
      if (turn % 5 != 0) continue;
      const weir::io::MemoryReading memory = reader.read(monotonic_now(), 0.82);
      admission.set_memory(memory.usage, memory.readable);
    }
    ::shutdown(listener.get(), SHUT_RDWR);  // every accept() ends
  }
  const weir::AdmissionStats stats = admission.stats();
  std::printf("admitted %llu refused %llu\n", static_cast<unsigned long long>(stats.admitted),
              static_cast<unsigned long long>(stats.rejected));
  return 0;
}
