#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include <sys/time.h>
#include <unistd.h>

#include "admin_client.h"
#include "subcommand.h"

namespace weir::app {
namespace {

constexpr int kStatusGood = 200;

/// The end of the whole probe, whatever it waits for: a name, a connection, the next byte.
void give_up_after(std::uint32_t milliseconds) {
  struct sigaction action {};
  action.sa_handler = [](int) {
    constexpr char kText[] = "weir probe: no answer within --timeout-ms\n";
    if (::write(STDERR_FILENO, kText, sizeof kText - 1) < 0) ::_exit(kFailed);
    ::_exit(kFailed);
  };
  ::sigaction(SIGALRM, &action, nullptr);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::sigprocmask(SIG_UNBLOCK, &alarm, nullptr);
  itimerval timer{};
  timer.it_value.tv_sec = milliseconds / 1000;
  timer.it_value.tv_usec = static_cast<suseconds_t>(milliseconds % 1000) * 1000;
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

int probe(const std::string& place, bool ready) {
  // What listens on all addresses (":9901") is asked on this machine.
  const auto client = AdminClient::at(place.starts_with(':') ? place.substr(1) : place);
  if (!client) {
    std::cerr << "weir probe: --admin " << client.error() << "\n";
    return kUsageError;
  }
  const auto answer = client->get(ready ? "/readyz" : "/healthz");
  if (!answer) {
    std::cerr << "weir probe: " << answer.error() << "\n";
    return kFailed;
  }
  const std::string first_line = answer->body.substr(0, answer->body.find('\n'));
  std::ostream& out = answer->status == kStatusGood ? std::cout : std::cerr;
  out << client->name() << ": " << answer->status << " " << first_line << "\n";
  return answer->status == kStatusGood ? kOk : kFailed;
}

}  // namespace

void add_probe(CLI::App& program, int& status) {
  struct Options {
    std::string admin = "127.0.0.1:9901";
    bool ready = false;
    std::uint32_t timeout_ms = 2000;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "probe", "Ask a running gateway whether it is well, for health checks");
  command
      ->add_option("--admin", options->admin,
                   "Its admin endpoint: HOST:PORT, http://HOST:PORT, PORT or unix:/path "
                   "[WEIR_ADMIN_LISTEN, or 127.0.0.1:9901]")
      ->envname("WEIR_ADMIN_LISTEN");
  command->add_flag("--ready", options->ready,
                    "Ask whether it takes requests (/readyz), not only whether it runs (/healthz)");
  command
      ->add_option("--timeout-ms", options->timeout_ms, "Longest time to wait for all of it [2000]")
      ->check(CLI::Range(1U, 600'000U));
  command->footer(R"(Example: HEALTHCHECK CMD ["/usr/bin/weir", "probe"]
Exit status: 0 it is well, 1 it is not or does not answer, 2 wrong option.)");
  command->callback([options, &status] {
    give_up_after(options->timeout_ms);
    status = probe(options->admin, options->ready);
  });
}

}  // namespace weir::app
