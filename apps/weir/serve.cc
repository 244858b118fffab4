#include "serve.h"

#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>

#include "weir/base/duration_text.h"
#include "weir/experimental/gateway/gateway_budget.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/signal.h"
#include "weir/experimental/io/tls_memory.h"
#include "weir/experimental/server/memory_budget.h"

#include "subcommand.h"

namespace weir::app {
namespace {

/// The main thread's loop: signals, the drain, the second hand.
class Master {
 public:
  Master(const config::Config& config, const Serving& serving)
      : drain_timeout_(config.admin.drain_timeout), serving_(serving), gateway_(config) {
    tick_.on_fire(io::Timer::Fired::to<&Master::on_second>(*this));
    drain_.on_fire(io::Timer::Fired::to<&Master::on_drain_look>(*this));
  }

  int run() {
    // Signals first: one that comes while we start must not kill us half-way.
    std::signal(SIGPIPE, SIG_IGN);  // whoever read what we say may leave; what we serve goes on
    const auto end = io::Callback<int>::to<&Master::on_end>(*this);
    const auto reload = io::Callback<int>::to<&Master::on_reload>(*this);
    const bool watching = term_.start(loop_, SIGTERM, end) &&
                          interrupt_.start(loop_, SIGINT, end) &&
                          hangup_.start(loop_, SIGHUP, reload);
    if (!watching) std::cerr << "weir: signals cannot be watched; only SIGKILL will end this\n";
    int status = kOk;
    if (const auto started = gateway_.start(); !started) {
      complain(started.error());
      status = kFailed;
    } else {
      if (serving_.on_started) serving_.on_started(gateway_);
      if (serving_.on_second) loop_.arm(tick_, std::chrono::seconds(1));
      loop_.run();
      gateway_.stop();
    }
    loop_.cancel(tick_);
    loop_.cancel(drain_);
    term_.close();
    interrupt_.close();
    hangup_.close();
    loop_.run_once();
    return status;
  }

 private:
  void on_end(int) {
    if (draining_) {
      std::cerr << "weir: ending now\n";
      return loop_.stop();
    }
    draining_ = true;
    abandon_at_ = loop_.now() + drain_timeout_;
    std::cerr << "weir: draining for at most " << to_string(drain_timeout_)
              << "; the same signal again ends at once\n";
    on_drain_look(loop_.now());
  }

  void on_drain_look(TimePoint) {
    constexpr Duration kLook = std::chrono::milliseconds(20);
    if (gateway_.drain(Duration(0))) {
      std::cerr << "weir: drained\n";
      return loop_.stop();
    }
    if (loop_.refresh_now() >= abandon_at_) {
      std::cerr << "weir: " << gateway_.status().active
                << " requests were not finished in time (admin.drain_timeout_ms)\n";
      return loop_.stop();
    }
    loop_.arm(drain_, kLook);
  }

  void on_reload(int) {
    if (!serving_.read_again) {
      std::cerr << "weir: SIGHUP: started without --config, nothing to read again\n";
      return;
    }
    const std::optional<config::Config> next = serving_.read_again();
    if (!next) {
      std::cerr << "weir: reload refused; the old configuration stays\n";
      return gateway_.note_failed_reload();
    }
    const gateway::ReloadReport report = gateway_.reload(*next);
    tell(report);
    if (report.ok()) drain_timeout_ = next->admin.drain_timeout;
  }

  static void tell(const gateway::ReloadReport& report) {
    if (!report.ok()) {
      std::cerr << "weir: reload refused: " << report.refused << "; the old configuration stays\n";
      return;
    }
    for (const config::ConfigChange& change : report.applied) {
      std::cerr << "weir: " << change.key << ": " << change.before << " -> " << change.after
                << "\n";
    }
    for (const config::ConfigChange& change : report.deferred) {
      std::cerr << "weir: " << change.key << ": stays " << change.before
                << " until a restart (the file says " << change.after << ")\n";
    }
    if (!report.trouble.empty()) std::cerr << "weir: " << report.trouble << "\n";
    std::cerr << "weir: reloaded: " << report.applied.size()
              << (report.applied.size() == 1 ? " option" : " options") << " changed, "
              << report.deferred.size() << " waiting for a restart\n";
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

  Duration drain_timeout_;
  const Serving& serving_;
  io::Loop loop_;
  io::SignalWatcher term_;
  io::SignalWatcher interrupt_;
  io::SignalWatcher hangup_;
  io::Timer tick_;
  io::Timer drain_;
  TimePoint abandon_at_{};
  bool draining_ = false;
  gateway::Gateway gateway_;
};

}  // namespace

int serve(const config::Config& config, const Serving& serving) {
  const std::uint64_t wanted = gateway::gateway_descriptors(config);
  if (const std::uint64_t allowed = io::allow_descriptors(wanted); allowed < wanted) {
    std::cerr << "warning: " << allowed << " descriptors are allowed (ulimit -n), " << wanted
              << " can be needed for server.max_connections and those of the upstreams: clients "
                 "will wait, and upstreams seem unreachable\n";
  }
  if (const std::uint64_t bytes = tls_memory_bytes(config.server); bytes > 0) {
    io::set_tls_memory_budget(bytes);
  }
  return Master(config, serving).run();
}

}  // namespace weir::app
