#include "serve.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <utility>

#include <unistd.h>

#include "weir/base/duration_text.h"
#include "weir/base/errno_text.h"
#include "weir/experimental/gateway/gateway_budget.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/signal.h"
#include "weir/experimental/io/tls_memory.h"
#include "weir/experimental/server/memory_budget.h"

#include "io/service_notice.h"
#include "subcommand.h"
#include "successors.h"

namespace weir::app {
namespace {

constexpr std::array kSignals = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

/// Connections without a request stay this long after a take-over: nearly every client sends its
/// next request meanwhile and is told to close, so that none meets the end of its connection.
constexpr Duration kIdleGrace = std::chrono::seconds(5);
/// How long a process that is ready waits for the one before it.
constexpr Duration kReleaseWithin = std::chrono::seconds(20);

/// The main thread's loop: signals, the take-over, the drain, the status every second.
class Master {
 public:
  Master(const config::Config& config, const Serving& serving, Inheritance inherited)
      : serving_(serving), inherited_(std::move(inherited)), gateway_(config) {
    tick_.on_fire(io::Timer::Fired::to<&Master::on_second>(*this));
    gateway_.on_reload_asked([this]() -> std::string {
      if (!serving_.read_again) return "started without --config, there is no file to read again";
      loop_.post([this] { on_reload(); });
      return {};
    });
    drain_.on_fire(io::Timer::Fired::to<&Master::on_drain_look>(*this));
  }

  int run() {
    // Signals first: one that arrives during start must not end the process half-started.
    std::signal(SIGPIPE, SIG_IGN);  // a closed standard output or error must not end the server
    const auto signalled = io::Callback<int>::to<&Master::on_signal>(*this);
    bool watching = true;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      watching = signals_[i].start(loop_, kSignals[i], signalled) && watching;
    }
    if (!watching) std::cerr << "weir: signals cannot be watched; only SIGKILL will end this\n";
    int status = kFailed;
    if (start()) {
      status = kOk;
      if (serving_.on_started) serving_.on_started(gateway_);
      notify(inherited_.take_over ? "READY=1\nMAINPID=" + std::to_string(::getpid()) : "READY=1");
      if (serving_.on_second) loop_.arm(tick_, std::chrono::seconds(1));
      loop_.run();
    }
    successors_.end();
    gateway_.stop();
    loop_.cancel(tick_);
    loop_.cancel(drain_);
    for (io::SignalWatcher& signal : signals_) signal.close();
    while (successors_.active()) loop_.run_once(true);
    loop_.run_once();
    return status;
  }

 private:
  /// Not to std::cerr: this thread must not block when the reader of standard error has stopped.
  void say(const std::string& line) { gateway_.say("weir: " + line); }
  /// After a take-over the service manager hears of the other process only.
  void notify(const std::string& state) const {
    if (!inherited_.notify_socket.empty() && !released_) {
      static_cast<void>(io::notify_service_manager(inherited_.notify_socket, state));
    }
  }

  /// False, with the reason printed, if nothing is served.
  bool start() {
    const std::string path = gateway_.admin_config().take_over_socket;
    if (const auto started = gateway_.start(std::move(inherited_.passed)); !started) {
      complain(started.error());
      return false;
    }
    if (!finish_take_over()) return false;
    io::Fd listening = inherited_.take_over ? inherited_.take_over->take_listener() : io::Fd();
    return path.empty() || successors_.serve(path, std::move(listening));
  }

  /// Tells the process before this one that it may go.
  bool finish_take_over() {
    if (!inherited_.take_over) return true;
    const auto end = inherited_.take_over->finish(gateway_.taken(), kReleaseWithin);
    if (!end) {
      std::cerr << "weir: " << end.error().message << "\n";
      return false;
    }
    if (*end == gateway::TakeOver::End::kAlone) {
      say("process " + std::to_string(inherited_.take_over->predecessor()) +
          " ended during the take-over");
    }
    gateway_.begin_accepting();
    return true;
  }

  void on_released() {
    released_ = true;
    successors_.end();
    const Duration at_most = gateway_.admin_config().drain_timeout;
    say("another process has taken over; draining for at most " + to_string(at_most));
    draining_ = true;
    accept_until_ = loop_.refresh_now();
    abandon_at_ = accept_until_ + at_most;
    on_drain_look(loop_.now());
  }

  void on_signal(int number) {
    if (number == SIGTERM || number == SIGINT) return on_end();
    if (number == SIGHUP) return on_reload();
    on_user_signal(number);
  }

  void on_end() {
    if (released_ && !std::exchange(told_to_end_, true)) {
      return say("draining already; the same signal again ends at once");
    }
    if (draining_) {
      say("ending now");
      return loop_.stop();
    }
    draining_ = true;
    notify("STOPPING=1");
    successors_.end();
    gateway_.announce_drain();
    const Duration delay = gateway_.admin_config().drain_delay;
    const Duration at_most = gateway_.admin_config().drain_timeout;
    accept_until_ = loop_.refresh_now() + delay;
    abandon_at_ = accept_until_ + at_most;
    if (delay > Duration(0)) {
      say("/readyz is 503; still accepting for " + to_string(delay) + " (admin.drain_delay_ms)");
    }
    say("draining for at most " + to_string(at_most) + "; the same signal again ends at once");
    on_drain_look(loop_.now());
  }

  bool drained() {
    if (!released_) return gateway_.drain(Duration(0));
    const Duration grace = std::min(kIdleGrace, gateway_.admin_config().drain_timeout / 2);
    return gateway_.drain_everything({.at_most = {}, .idle_grace = grace});
  }

  void on_drain_look(TimePoint now) {
    constexpr Duration kLook = std::chrono::milliseconds(20);
    if (now < accept_until_) return loop_.arm(drain_, accept_until_);
    if (drained()) {
      say("drained");
      return loop_.stop();
    }
    if (loop_.refresh_now() >= abandon_at_) {
      say(std::to_string(gateway_.status().active) +
          " requests were not finished in time (admin.drain_timeout_ms)");
      return loop_.stop();
    }
    loop_.arm(drain_, kLook);
  }

  void on_reload() {
    if (!serving_.read_again) {
      return say("SIGHUP: started without --config, there is no file to read again");
    }
    notify("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(to_ns(io::monotonic_now()) / 1000));
    const std::optional<config::Config> next = serving_.read_again();
    if (next) {
      tell(gateway_.reload(*next));
    } else {
      say("reload refused; the old configuration stays");
      gateway_.note_failed_reload();
    }
    notify("READY=1");
  }

  void on_user_signal(int number) {
    if (number == SIGUSR2) {
      return say(
          "SIGUSR2 does nothing; SIGHUP reads the configuration again, SIGUSR1 reopens the access "
          "log, SIGTERM drains and ends");
    }
    const std::string trouble = gateway_.reopen_logs();
    say("SIGUSR1: " + (trouble.empty() ? "the access log is reopened" : trouble));
  }

  static std::string shown(const std::string& value) { return value.empty() ? "none" : value; }

  void tell(const gateway::ReloadReport& report) {
    if (!report.ok()) {
      return say("reload refused: " + report.refused + "; the old configuration stays");
    }
    for (const config::ConfigChange& change : report.applied) {
      say(change.key + ": " + shown(change.before) + " -> " + shown(change.after));
    }
    for (const config::ConfigChange& change : report.deferred) {
      say(change.key + ": stays " + shown(change.before) + " until a restart (the file says " +
          shown(change.after) + ")");
    }
    for (const std::string& one : report.upstreams) say(one);
    for (const std::string& one : report.overrides) say(one);
    for (const std::string& one : report.rotated) say(one);
    if (!report.trouble.empty()) say(report.trouble);
    say("reloaded: " + std::to_string(report.applied.size()) +
        (report.applied.size() == 1 ? " option" : " options") + " changed, " +
        std::to_string(report.deferred.size()) + " waiting for a restart");
  }

  void complain(const gateway::GatewayError& error) const {
    std::cerr << "weir: " << error.message;
    if (error.about == gateway::GatewayError::About::kListen) {
      std::cerr << "; choose another address with " << serving_.listen_option;
    } else if (error.about == gateway::GatewayError::About::kAdmin) {
      std::cerr << "; choose another address for the admin endpoint with " << serving_.admin_option;
    }
    std::cerr << "\n";
  }

  void on_second(TimePoint) {
    serving_.on_second(gateway_);
    loop_.arm(tick_, std::chrono::seconds(1));
  }

  const Serving& serving_;
  Inheritance inherited_;
  io::Loop loop_;
  std::array<io::SignalWatcher, kSignals.size()> signals_;
  io::Timer tick_;
  io::Timer drain_;
  TimePoint accept_until_{};
  TimePoint abandon_at_{};
  bool draining_ = false;
  bool released_ = false;  // another process serves now
  bool told_to_end_ = false;
  gateway::Gateway gateway_;
  Successors successors_{{.loop = loop_,
                          .gateway = gateway_,
                          .say = [this](const std::string& line) { say(line); },
                          .released = [this] { on_released(); }}};
};

}  // namespace

int serve(const config::Config& config, const Serving& serving, Inheritance inherited) {
  const std::uint64_t wanted = gateway::gateway_descriptors(config);
  const std::uint64_t allowed = io::allow_descriptors(wanted);
  if (const std::uint64_t least = gateway::gateway_descriptors_min(config);
      !io::can_open_descriptors(least)) {
    std::cerr << "weir: " << errno_text(std::errc::too_many_files_open) << ": " << allowed
              << " descriptors are allowed, and " << least
              << " beside those already open are needed to start; raise the limit to " << wanted
              << " (ulimit -n " << wanted << ", or LimitNOFILE=" << wanted
              << " of a systemd unit)\n";
    return kFailed;
  }
  if (allowed < wanted) {
    std::cerr << "warning: " << allowed << " descriptors are allowed (ulimit -n), " << wanted
              << " can be needed for server.max_connections and those of the upstreams: clients "
                 "will wait, and upstreams seem unreachable\n";
  }
  if (const std::uint64_t bytes = gateway::gateway_tls_bytes(config); bytes > 0) {
    io::set_tls_memory_budget(bytes);
  }
  return Master(config, serving, std::move(inherited)).run();
}

}  // namespace weir::app
