#include "weir/experimental/gateway/gateway.h"

#include <algorithm>
#include <array>
#include <functional>
#include <latch>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/errno_text.h"
#include "weir/base/net_address.h"
#include "weir/experimental/gateway/gateway_budget.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/entropy.h"
#include "weir/experimental/io/line_writer.h"
#include "weir/experimental/io/loop_threads.h"
#include "weir/experimental/io/memory_reader.h"
#include "weir/experimental/io/thread_parker.h"
#include "weir/experimental/server/server.h"

#include "admin_pages.h"
#include "admin_server.h"
#include "core.h"
#include "dial_tls.h"
#include "discoveries.h"
#include "endpoint_log.h"
#include "gateway_loop.h"
#include "gateway_view.h"
#include "live_options.h"
#include "operator_log.h"
#include "upstream_watch.h"

namespace weir::inline v0::gateway {
namespace {

constexpr Duration kExpireEvery = std::chrono::milliseconds(50);

void run_on(io::Loop& loop, const std::function<void()>& work) {
  std::latch done(1);
  loop.post([&] {
    work();
    done.count_down();
  });
  done.wait();
}

/// Asks every millisecond.
void wait_until(const std::function<bool()>& reached) {
  io::ThreadParker parker;
  while (!reached()) parker.park_until(io::monotonic_now() + std::chrono::milliseconds(1));
}

/// Periodic work: closing measurement windows, reading memory usage, telling the upstreams their
/// limits.
class Housekeeping {
 public:
  Housekeeping(GatewayCore& core, OperatorLog& log, Discoveries& discoveries, io::Loop& loop,
               Duration memory_interval)
      : core_(core),
        watch_(core.names, core.upstreams, log),
        discoveries_(discoveries),
        loop_(loop),
        memory_interval_(memory_interval) {
    expire_.on_fire(io::Timer::Fired::to<&Housekeeping::expire>(*this));
    memory_.on_fire(io::Timer::Fired::to<&Housekeeping::read_memory>(*this));
  }
  void start() {
    expire(loop_.now());
    read_memory(loop_.now());
  }
  void stop() {
    loop_.cancel(expire_);
    loop_.cancel(memory_);
  }

 private:
  void expire(TimePoint now) {
    core_.controller.expire(now);
    watch_.look(now);
    discoveries_.look();
    for (std::size_t i = 0; i < core_.upstreams.size(); ++i) {
      core_.upstreams[i]->set_limit(core_.controller.scope_stats(core_.scope_of(i), now).limit);
    }
    loop_.arm(expire_, now + kExpireEvery);
  }
  void read_memory(TimePoint now) {
    const MemoryRules rules = core_.controller.config().memory;
    const io::MemoryReading reading =
        reader_.read(now, rules.memory_pressure_threshold - rules.leave_margin);
    core_.controller.set_memory(reading.usage, reading.readable);
    loop_.arm(memory_, now + memory_interval_);
  }

  GatewayCore& core_;
  UpstreamWatch watch_;
  Discoveries& discoveries_;
  io::Loop& loop_;
  Duration memory_interval_;
  io::MemoryReader reader_;
  io::Timer expire_;
  io::Timer memory_;
};

/// The kernel's error for a listening socket, and the remedy.
std::string why_no_listener(io::IoError error) {
  switch (error) {
    case io::IoError::kInUse:
      return errno_text(std::errc::address_in_use);
    case io::IoError::kDenied:
      return errno_text(std::errc::permission_denied) +
             "; ports below 1024 need CAP_NET_BIND_SERVICE";
    case io::IoError::kInvalid:
      return errno_text(std::errc::address_not_available) + "; no interface of this machine has it";
    case io::IoError::kRefused:
      return errno_text(std::errc::no_such_file_or_directory) + "; create the folder of the socket";
    case io::IoError::kNoFds:
      return errno_text(std::errc::too_many_files_open) + "; raise the limit (ulimit -n)";
    default:
      return std::string(name_of(error));
  }
}

GatewayError cannot_listen(GatewayError::About about, const StartError& error) {
  if (error.error == io::IoError::kTls) {
    return {GatewayError::About::kTls, "cannot speak TLS with " + error.where + ": " + error.why};
  }
  return {about, "cannot listen on " + error.where + ": " + why_no_listener(error.error)};
}

bool is_loopback(const io::Address& address) noexcept {
  constexpr std::array<std::uint8_t, 16> kV6 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  if (address.family == io::Family::kV6) return address.ip == kV6;
  return address.family == io::Family::kV4 && address.ip[0] == 127;
}

/// Whether connecting to `there` reaches a socket that listens on `own`. If `own` is every address
/// of this machine, only loopback addresses are known to be among them.
bool leads_to(const io::SocketName& there, const io::SocketName& own) noexcept {
  if (there == own) return true;
  const bool everywhere = own.path.empty() && own.address.ip == io::Address{}.ip;
  return everywhere && there.address.port == own.address.port && is_loopback(there.address);
}

}  // namespace

struct Gateway::Impl {
  explicit Impl(const config::Config& given) : config(given) {}

  Result<void, GatewayError> open_logs();
  Result<void, GatewayError> build();
  Result<void, GatewayError> listen();
  Result<void, GatewayError> check_no_circle() const;
  Result<std::function<void()>, std::string> read_dial_tls(const config::Config& next);
  void each_loop(const std::function<void(GatewayLoop&)>& work);
  void wait_quiet();

  config::Config config;  // as given to the constructor
  std::unique_ptr<io::LineWriter> access_log;
  std::unique_ptr<io::LineWriter> error_log;
  std::unique_ptr<io::LoopThreads> threads;
  std::unique_ptr<OperatorLog> operators;
  std::unique_ptr<EndpointLog> endpoint_log;
  std::unique_ptr<GatewayCore> core;
  std::unique_ptr<Discoveries> discoveries;
  std::unique_ptr<GatewayView> view;
  std::vector<std::unique_ptr<GatewayLoop>> loops;
  std::unique_ptr<Housekeeping> housekeeping;
  std::unique_ptr<Server> server;
  std::unique_ptr<AdminServer> admin;
  std::unique_ptr<LiveOptions> live;
  bool started = false;
};

Result<void, GatewayError> Gateway::Impl::open_logs() {
  auto errors = io::LineWriter::open({.path = "!", .buffer_bytes = kLogBufferBytes});
  if (errors) error_log = std::move(*errors);
  auto opened =
      io::LineWriter::open({.path = config.admin.access_log_file, .buffer_bytes = kLogBufferBytes});
  if (!opened) {
    return unexpected(GatewayError{GatewayError::About::kLog,
                                   "cannot write the access log to " +
                                       config.admin.access_log_file + ": " +
                                       errno_text(opened.error()) + "; set admin.access_log_file"});
  }
  access_log = std::move(*opened);
  return {};
}

Result<void, GatewayError> Gateway::Impl::build() {
  const auto contexts = dial_contexts(config);
  if (!contexts) {
    return unexpected(GatewayError{GatewayError::About::kUpstream, contexts.error()});
  }
  if (auto opened = open_logs(); !opened) return opened;
  std::vector<std::string> names;
  for (const upstream::UpstreamConfig& upstream : config.upstreams) names.push_back(upstream.name);
  operators = std::make_unique<OperatorLog>(names, error_log.get());
  endpoint_log = std::make_unique<EndpointLog>(*operators);
  threads = std::make_unique<io::LoopThreads>(
      io::LoopThreads::Options{.count = config.server.loops, .pin = false, .name = "weir"});
  core = std::make_unique<GatewayCore>(config, threads->size(), Rng(io::random_seed()),
                                       GatewayCore::Parts{.events = operators.get(),
                                                          .observer = endpoint_log.get(),
                                                          .access_log = access_log.get(),
                                                          .tls = *contexts});
  discoveries =
      std::make_unique<Discoveries>(*core, *endpoint_log, threads->at(0), core->rng.fork());
  view = std::make_unique<GatewayView>(*core, *operators);
  view->budget = gateway_budget(config);
  view->started_unix_seconds = io::unix_seconds();
  const auto rules = std::make_shared<const Rules>(config, core->names);
  threads->start();
  for (std::uint32_t i = 0; i < threads->size(); ++i) {
    // On its own thread: it arms timers, and the loop runs.
    run_on(threads->at(i), [&] {
      loops.push_back(std::make_unique<GatewayLoop>(*core, threads->at(i), i, rules));
    });
  }
  housekeeping = std::make_unique<Housekeeping>(*core, *operators, *discoveries, threads->at(0),
                                                config.memory.poll_interval);
  run_on(threads->at(0), [this] {
    discoveries->set(config);
    housekeeping->start();
  });
  wait_until([this] {
    bool settled = false;
    run_on(threads->at(0), [&] { settled = discoveries->settled(); });
    return settled;
  });
  return {};
}

Result<void, GatewayError> Gateway::Impl::listen() {
  server = std::make_unique<Server>(
      gateway_server_config(config), *threads,
      [this](const HandlerPlace& place) { return loops[place.index]->make_front_handler(); });
  view->server_stats = [this] { return server->stats(); };
  view->sources = [this](std::size_t upstream) {
    std::vector<upstream::SourceStatus> found;
    run_on(threads->at(0), [&] { found = discoveries->status(upstream); });
    return found;
  };
  live = std::make_unique<LiveOptions>(
      *core,
      LiveOptions::Consumers{
          .set_tls = [this](const io::TlsConfig& next) { return server->reload_tls(next); },
          .read_dial_tls = [this](const config::Config& next) { return read_dial_tls(next); },
          .set_rules =
              [this](const std::shared_ptr<const Rules>& rules) {
                each_loop([&](GatewayLoop& loop) { loop.set_rules(rules); });
              },
          .set_endpoints =
              [this](const config::Config& next) {
                run_on(threads->at(0), [&] { discoveries->set(next); });
              }});
  // Called on the first loop; only that loop changes its rules.
  server->set_critical_peers(
      [this](const io::Address& peer) { return loops[0]->rules().trust.is_peer(peer); });
  if (config.admin.listen) {
    admin = std::make_unique<AdminServer>(config, [this](const AdminRequest& request) {
      return admin_page(*view, request, io::monotonic_now());
    });
    if (auto started_admin = admin->start(); !started_admin) {
      admin.reset();
      return unexpected(cannot_listen(GatewayError::About::kAdmin, started_admin.error()));
    }
  }
  if (auto listening = server->start(); !listening) {
    return unexpected(cannot_listen(GatewayError::About::kListen, listening.error()));
  }
  return check_no_circle();
}

Result<std::function<void()>, std::string> Gateway::Impl::read_dial_tls(
    const config::Config& next) {
  auto contexts = dial_contexts(next);
  if (!contexts) return unexpected(contexts.error());
  return std::function<void()>([this, all = std::move(*contexts)] {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] != nullptr) core->upstreams[i]->set_tls(all[i]);
    }
  });
}

/// A gateway that is its own upstream would forward every request to itself.
Result<void, GatewayError> Gateway::Impl::check_no_circle() const {
  std::vector<io::SocketName> own = server->addresses();
  const std::vector<io::SocketName> secure = server->tls_addresses();
  own.insert(own.end(), secure.begin(), secure.end());
  for (std::size_t i = 0; i < core->upstreams.size(); ++i) {
    for (const upstream::EndpointSet::Member& member : core->upstreams[i]->endpoints()->members) {
      const upstream::Endpoint& endpoint = *member.endpoint;
      const auto leads_here = [&](const auto& name) { return leads_to(endpoint.name(), name); };
      if (std::none_of(own.begin(), own.end(), leads_here)) continue;
      return unexpected(GatewayError{GatewayError::About::kUpstream,
                                     "upstream " + core->names[i] + ": endpoint " +
                                         endpoint.label() + " is this gateway itself"});
    }
  }
  return {};
}

void Gateway::Impl::each_loop(const std::function<void(GatewayLoop&)>& work) {
  for (std::uint32_t i = 0; i < loops.size(); ++i) {
    run_on(threads->at(i), [&] { work(*loops[i]); });
  }
}

/// Returns when no loop has a request or an upstream connection left.
void Gateway::Impl::wait_quiet() {
  wait_until([this] {
    bool quiet = true;
    each_loop([&](GatewayLoop& loop) { quiet = quiet && loop.quiet(); });
    return quiet;
  });
}

Gateway::Gateway(const config::Config& config) : impl_(std::make_unique<Impl>(config)) {
  WEIR_ASSERT(config.validate().empty());
}

Gateway::~Gateway() {
  stop();
}

Result<void, GatewayError> Gateway::start() {
  Impl& self = *impl_;
  WEIR_ASSERT(!self.started);
  if (std::string objection = budget_objection(self.config, own_cgroup_limit());
      !objection.empty()) {
    return unexpected(GatewayError{GatewayError::About::kBudget, std::move(objection)});
  }
  self.started = true;
  Result<void, GatewayError> done = self.build();
  if (done) done = self.listen();
  if (!done) stop();
  return done;
}

std::vector<std::string> Gateway::listening() const {
  std::vector<std::string> all;
  for (const io::SocketName& name : impl_->server->addresses()) all.push_back(name.to_string());
  return all;
}

std::vector<std::string> Gateway::tls_listening() const {
  std::vector<std::string> all;
  for (const io::SocketName& name : impl_->server->tls_addresses()) all.push_back(name.to_string());
  return all;
}

std::string Gateway::admin_listening() const {
  return impl_->admin ? impl_->admin->address() : std::string();
}

void Gateway::announce_drain() noexcept {
  if (impl_->started) impl_->view->draining.store(true);
}

bool Gateway::drain(Duration at_most) {
  if (!impl_->started) return true;
  announce_drain();
  return impl_->server->drain(at_most);
}

void Gateway::stop() {
  Impl& self = *impl_;
  if (!self.started) return;
  self.started = false;
  if (self.server) self.server->stop();
  if (self.admin) self.admin->stop();
  if (!self.loops.empty()) {
    self.each_loop([](GatewayLoop& loop) { loop.stop(); });
    self.wait_quiet();
  }
  if (self.discoveries) run_on(self.threads->at(0), [&] { self.discoveries->stop(); });
  if (self.housekeeping) run_on(self.threads->at(0), [&] { self.housekeeping->stop(); });
  if (self.threads) self.threads->stop();
  self.live.reset();
  self.admin.reset();
  self.server.reset();
  self.loops.clear();
  self.housekeeping.reset();
  self.view.reset();
  self.discoveries.reset();
  self.core.reset();
  self.threads.reset();
  self.endpoint_log.reset();
  self.operators.reset();
  self.access_log.reset();
  self.error_log.reset();
}

void Gateway::say(std::string_view line) noexcept {
  if (impl_->started) impl_->operators->say(line);
}

std::string Gateway::reopen_logs() {
  if (!impl_->started) return {};
  const auto opened = impl_->access_log->reopen();
  if (opened) return {};
  return "the access log is still written to the old file: " + impl_->config.admin.access_log_file +
         " cannot be opened: " + errno_text(opened.error()) +
         "; make its folder writable and send SIGUSR1";
}

void Gateway::note_failed_reload() noexcept {
  if (impl_->view) impl_->view->reloads_refused.fetch_add(1);
}

ReloadReport Gateway::reload(const config::Config& next) {
  Impl& self = *impl_;
  WEIR_ASSERT(self.started && next.validate().empty());
  ReloadReport report = self.live->reload(next);
  if (!report.ok()) {
    note_failed_reload();
    return report;
  }
  report.trouble = reopen_logs();
  self.view->reloads_ok.fetch_add(1);
  return report;
}

AdminConfig Gateway::admin_config() const {
  return impl_->core ? impl_->core->config_in_force().admin : impl_->config.admin;
}

GatewayStatus Gateway::status() const {
  GatewayStatus status;
  if (!impl_->started) return status;
  const RequestTotals totals = totals_of(impl_->core->counters);
  const AdmissionStats all = impl_->core->controller.stats();
  status.received = totals.received;
  status.answered = totals.answered;
  status.refused = totals.refused;
  status.aborted = totals.aborted;
  status.active = totals.active();
  status.memory_usage = all.memory_usage;
  status.connections = impl_->server->stats().connections.used;
  if (!impl_->core->upstreams.empty()) {
    const ScopeStats scope =
        impl_->core->controller.scope_stats(ScopeId::kFirst, io::monotonic_now());
    status.in_flight = scope.in_flight;
    status.limit = scope.limit;
  }
  return status;
}

}  // namespace weir::inline v0::gateway
