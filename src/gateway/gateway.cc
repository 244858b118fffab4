#include "weir/experimental/gateway/gateway.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <unistd.h>

#include "weir/base/assert.h"
#include "weir/base/errno_text.h"
#include "weir/base/net_address.h"
#include "weir/experimental/gateway/gateway_budget.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/entropy.h"
#include "weir/experimental/io/line_writer.h"
#include "weir/experimental/io/loop_threads.h"
#include "weir/experimental/io/thread_parker.h"
#include "weir/experimental/server/server.h"

#include "admin_pages.h"
#include "admin_server.h"
#include "circle.h"
#include "core.h"
#include "dial_tls.h"
#include "discoveries.h"
#include "endpoint_log.h"
#include "gateway_loop.h"
#include "gateway_sockets.h"
#include "gateway_view.h"
#include "housekeeping.h"
#include "io/background.h"
#include "live/live_sampler.h"
#include "live_options.h"
#include "operator_actions.h"
#include "operator_log.h"
#include "recorder_files.h"

namespace weir::inline v0::gateway {
namespace {

using About = GatewayError::About;

auto fault(About about, std::string message) {
  return unexpected(GatewayError{about, std::move(message)});
}

/// Asks every millisecond.
void wait_until(const std::function<bool()>& reached, TimePoint end = TimePoint::max()) {
  io::ThreadParker parker;
  while (!reached() && io::monotonic_now() < end) {
    parker.park_until(io::monotonic_now() + std::chrono::milliseconds(1));
  }
}

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

GatewayError cannot_listen(About about, const StartError& error) {
  if (error.error == io::IoError::kTls) {
    return {About::kTls, "cannot speak TLS with " + error.where + ": " + error.why};
  }
  return {about, "cannot listen on " + error.where + ": " + why_no_listener(error.error)};
}

std::vector<std::string> texts_of(const std::vector<io::SocketName>& names) {
  std::vector<std::string> all;
  all.reserve(names.size());
  for (const io::SocketName& name : names) all.push_back(name.to_string());
  return all;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

struct Gateway::Impl {
  explicit Impl(const config::Config& given) : config(given) {}

  Result<void, GatewayError> open_logs();
  Result<void, GatewayError> build();
  Result<void, GatewayError> listen(PassedSockets passed);
  void make_live();
  void make_actions();
  void find_endpoints(const UpstreamSet& upstreams, const config::Config& next);
  [[nodiscard]] std::string circle_in(const UpstreamSet& upstreams) const;
  [[nodiscard]] std::vector<io::SocketName> admin_names() const;
  void each_loop(const std::function<void(GatewayLoop&)>& work);
  void wait_quiet();
  [[nodiscard]] GatewaySockets::Servers servers() const {
    return {.clients = *server, .admin = admin ? &admin->server() : nullptr};
  }
  void leave_tunnels();
  void keep_recorder_files();

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
  std::unique_ptr<RecorderFiles> recorder_files;
  std::unique_ptr<io::Background> recorder_disk;
  std::unique_ptr<Server> server;
  std::unique_ptr<LiveSampler> history;
  std::unique_ptr<AdminServer> admin;
  std::shared_ptr<const Rules> first_rules;
  std::unique_ptr<LiveOptions> live;
  std::unique_ptr<OperatorActions> actions;
  std::function<std::string()> reload_asked;
  GatewaySockets sockets;
  bool started = false;
  bool tunnels_left = false;
};

Result<void, GatewayError> Gateway::Impl::open_logs() {
  auto errors = io::LineWriter::open({.path = "!", .buffer_bytes = kLogBufferBytes});
  if (errors) error_log = std::move(*errors);
  auto opened =
      io::LineWriter::open({.path = config.admin.access_log_file, .buffer_bytes = kLogBufferBytes});
  if (!opened) {
    return fault(About::kLog, "cannot write the access log to " + config.admin.access_log_file +
                                  ": " + errno_text(opened.error()) +
                                  "; set admin.access_log_file");
  }
  access_log = std::move(*opened);
  return {};
}

Result<void, GatewayError> Gateway::Impl::build() {
  if (std::string objection = actions_objection(config); !objection.empty()) {
    return fault(About::kIdentity, std::move(objection));
  }
  const auto contexts = dial_contexts(config);
  if (!contexts) {
    return unexpected(GatewayError{GatewayError::About::kUpstream, contexts.error()});
  }
  auto identity = read_identity_files(config.actors);
  if (!identity) {
    return unexpected(GatewayError{GatewayError::About::kIdentity, identity.error()});
  }
  if (auto opened = open_logs(); !opened) return opened;
  std::vector<std::string> names;
  for (const upstream::UpstreamConfig& upstream : config.upstreams) names.push_back(upstream.name);
  operators = std::make_unique<OperatorLog>(names, error_log.get());
  endpoint_log = std::make_unique<EndpointLog>(*operators);
  threads = std::make_unique<io::LoopThreads>(
      io::LoopThreads::Options{.count = config.server.loops, .pin = false, .name = "weir"});
  core = std::make_unique<GatewayCore>(
      config, threads->size(), Rng(io::random_seed()),
      GatewayCore::Parts{.events = operators.get(),
                         .observer = endpoint_log.get(),
                         .access_log = access_log.get(),
                         .tls = *contexts,
                         .on_upstream_gone = [this](const std::string& name) {
                           operators->on_upstream_gone(name);
                         }});
  discoveries =
      std::make_unique<Discoveries>(config.dns, *endpoint_log, threads->at(0), core->rng.fork());
  view = std::make_unique<GatewayView>(*core, *operators);
  view->budget = gateway_budget(config);
  view->started_unix_seconds = io::unix_seconds();
  view->host_name = host_name();
  view->config_at_start = config;
  const std::shared_ptr<const UpstreamSet> upstreams = core->upstreams.in_force();
  first_rules = std::make_shared<const Rules>(config, upstreams->names(), std::move(*identity));
  const GatewayLoop::Table table{.upstreams = upstreams, .rules = first_rules};
  threads->start();
  for (std::uint32_t i = 0; i < threads->size(); ++i) {
    // On its own thread: it arms timers, and the loop runs.
    threads->at(i).call(
        [&] { loops.push_back(std::make_unique<GatewayLoop>(*core, threads->at(i), i, table)); });
  }
  housekeeping = std::make_unique<Housekeeping>(*core, *operators, *discoveries, threads->at(0));
  threads->at(0).call([this] { housekeeping->start(); });
  find_endpoints(*upstreams, config);
  if (!config.recorder.folder.empty()) keep_recorder_files();
  return {};
}

/// On a thread of its own, because a disk may be slow. Ten times a second the rings of the loops
/// hold what came meanwhile, up to 260,000 decisions per second.
void Gateway::Impl::keep_recorder_files() {
  constexpr Duration kEvery = std::chrono::milliseconds(100);
  recorder_files = std::make_unique<RecorderFiles>(RecorderFiles::Setup{
      .config = config.recorder,
      .header = [this](std::uint64_t capacity) { return recording_header(*core, capacity); },
      .say = [this](const std::string& line) { operators->say(line); },
      .unix_seconds = io::unix_seconds,
      .rng = Rng(io::random_seed())});
  view->recorder_files = recorder_files.get();
  recorder_disk = std::make_unique<io::Background>(
      kEvery, [this, positions = std::vector<std::uint64_t>(),
               fresh = std::vector<policy::DecisionWords>()]() mutable {
        const TimePoint now = io::monotonic_now();
        const Duration since = core->recorder.since_start(now);
        std::uint64_t lost = 0;
        fresh.clear();
        core->recorder.copy_new(positions, fresh, lost);
        recorder_files->write(fresh, lost, since);
        bool overloaded = false;
        const std::shared_ptr<const UpstreamSet> upstreams = core->upstreams.in_force();
        for (const auto& one : upstreams->all) {
          overloaded = overloaded || core->controller.is_overloaded(one->scope(), now);
        }
        recorder_files->watch_overload(overloaded, since);
      });
}

Result<void, GatewayError> Gateway::Impl::listen(PassedSockets passed) {
  auto given = sockets.assign(config, std::move(passed));
  if (!given) return fault(About::kSockets, std::move(given.error()));
  server = std::make_unique<Server>(
      gateway_server_config(config), *threads,
      [this](const HandlerPlace& place) { return loops[place.index]->make_front_handler(); });
  view->server_stats = [this] { return server->stats(); };
  view->sources = [this](const ServedUpstream& upstream) {
    std::vector<upstream::SourceStatus> found;
    threads->at(0).call([&] { found = discoveries->status(upstream); });
    return found;
  };
  make_live();
  // Called on the first loop; only that loop changes its rules.
  server->set_critical_peers(
      [this](const io::Address& peer) { return loops[0]->rules().trust.is_peer(peer); });
  server->set_proxy_senders(
      {.trusted =
           [this](const io::Address& sender) { return loops[0]->rules().trust.is_proxy(sender); },
       .on_refused =
           [this](const ProxyRefusal& refusal) { operators->on_proxy_refusal(refusal); }});
  if (config.admin.actions != ActionsMode::kOff) make_actions();
  if (config.admin.serves()) {
    history = std::make_unique<LiveSampler>(*view, live_bounds(config));
    history->second(io::monotonic_now(), io::unix_seconds());
    view->live = history.get();
    admin = std::make_unique<AdminServer>(
        config, AdminWork{.pages =
                              [this](const AdminRequest& request) {
                                return admin_page(*view, request, io::monotonic_now());
                              },
                          .every_second =
                              [this](TimePoint now) {
                                if (actions) actions->expire(now);
                                history->second(now, io::unix_seconds());
                              },
                          .say = [this](const std::string& line) { operators->say(line); }});
    if (auto started_admin = admin->start(std::move(given->admin)); !started_admin) {
      admin.reset();
      return unexpected(cannot_listen(About::kAdmin, started_admin.error()));
    }
  }
  if (auto listening = server->start(std::move(given->clients)); !listening) {
    return unexpected(cannot_listen(About::kListen, listening.error()));
  }
  if (std::string circle = circle_in(*core->upstreams.in_force()); !circle.empty()) {
    return fault(About::kUpstream, std::move(circle));
  }
  return {};
}

void Gateway::Impl::make_actions() {
  actions = std::make_unique<OperatorActions>(OperatorActions::Setup{
      .core = *core,
      .live = *live,
      .log = *operators,
      .unix_seconds = io::unix_seconds,
      .reload = [this] {
        return reload_asked ? reload_asked() : "there is no file to read again";
      }});
  view->actions = actions.get();
}

void Gateway::Impl::make_live() {
  live = std::make_unique<LiveOptions>(
      *core,
      LiveOptions::Consumers{
          .set_tls = [this](const io::TlsConfig& next) { return server->reload_tls(next); },
          .read_dial_tls = dial_contexts,
          .find_endpoints =
              [this](const UpstreamSet& upstreams, const config::Config& next) {
                find_endpoints(upstreams, next);
                return circle_in(upstreams);
              },
          .keep_endpoints =
              [this](const UpstreamSet& upstreams) {
                threads->at(0).call([&] { discoveries->keep(upstreams); });
              },
          .set_endpoints =
              [this](const UpstreamSet& upstreams, const config::Config& next) {
                threads->at(0).call([&] { discoveries->set(upstreams, next); });
              },
          .take =
              [this](const GatewayLoop::Table& table) {
                operators->set_scopes(table.upstreams->names());
                each_loop([&](GatewayLoop& loop) { loop.take(table); });
              },
          .wait_briefly =
              [](const std::function<bool()>& reached) {
                wait_until(reached, io::monotonic_now() + std::chrono::seconds(2));
              }},
      first_rules);
}

/// Starts the sources of new upstreams and waits until they have answered, or have had their time.
void Gateway::Impl::find_endpoints(const UpstreamSet& upstreams, const config::Config& next) {
  threads->at(0).call([&] { discoveries->add(upstreams, next); });
  wait_until([&] {
    bool settled = false;
    threads->at(0).call([&] { settled = discoveries->settled(upstreams); });
    return settled;
  });
}

/// A gateway that is its own upstream would forward every request to itself.
std::string Gateway::Impl::circle_in(const UpstreamSet& upstreams) const {
  std::vector<io::SocketName> own = server->addresses();
  const std::vector<io::SocketName> secure = server->tls_addresses();
  own.insert(own.end(), secure.begin(), secure.end());
  return circle_objection(upstreams, {.own = own, .admin = admin_names()});
}

std::vector<io::SocketName> Gateway::Impl::admin_names() const {
  if (!admin) return {};
  const auto name = io::parse_socket_name(admin->address());
  return name ? std::vector<io::SocketName>{*name} : std::vector<io::SocketName>{};
}

void Gateway::Impl::each_loop(const std::function<void(GatewayLoop&)>& work) {
  for (std::uint32_t i = 0; i < loops.size(); ++i) {
    threads->at(i).call([&] { work(*loops[i]); });
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

/// Once per drain. Clients and endpoints answer a Close frame within a round trip.
void Gateway::Impl::leave_tunnels() {
  if (std::exchange(tunnels_left, true)) return;
  constexpr Duration kGraceMax = std::chrono::seconds(5);
  const Duration grace = std::min(kGraceMax, core->config_in_force().admin.drain_timeout);
  each_loop([&](GatewayLoop& loop) { loop.drain(grace); });
}

Gateway::Gateway(const config::Config& config) : impl_(std::make_unique<Impl>(config)) {
  WEIR_ASSERT(config.validate().empty());
}

Gateway::~Gateway() {
  stop();
}

Result<void, GatewayError> Gateway::start(PassedSockets passed) {
  Impl& self = *impl_;
  WEIR_ASSERT(!self.started);
  if (std::string objection = budget_objection(self.config, own_cgroup_limit());
      !objection.empty()) {
    return fault(About::kBudget, std::move(objection));
  }
  self.started = true;
  Result<void, GatewayError> done = self.build();
  if (done) done = self.listen(std::move(passed));
  if (!done) stop();
  return done;
}

std::vector<std::string> Gateway::listening() const {
  return texts_of(impl_->server->addresses());
}

std::vector<std::string> Gateway::tls_listening() const {
  return texts_of(impl_->server->tls_addresses());
}

std::string Gateway::admin_listening() const {
  return impl_->admin ? impl_->admin->address() : std::string();
}

const std::vector<bool>& Gateway::taken() const noexcept {
  return impl_->sockets.taken();
}

void Gateway::begin_accepting() {
  impl_->server->begin_accepting();
  if (impl_->admin) impl_->admin->server().begin_accepting();
}

std::vector<PassedSocket> Gateway::listening_sockets() const {
  if (!impl_->started) return {};
  return impl_->sockets.duplicates(impl_->servers());
}

std::string Gateway::ticket_keys() const {
  return impl_->started ? impl_->server->ticket_keys() : std::string();
}

void Gateway::share_sockets(const std::vector<bool>& shared) {
  if (impl_->started) impl_->sockets.share(impl_->servers(), shared);
}

void Gateway::announce_drain() noexcept {
  if (impl_->started) impl_->view->draining.store(true);
}

bool Gateway::drain(const DrainOptions& options) {
  if (!impl_->started) return true;
  announce_drain();
  impl_->leave_tunnels();
  return impl_->server->drain(options);
}

bool Gateway::drain_everything(const DrainOptions& options) {
  if (!impl_->started) return true;
  if (impl_->admin) static_cast<void>(impl_->admin->server().drain(Duration(0)));
  return drain(options);
}

void Gateway::stop() {
  Impl& self = *impl_;
  if (!self.started) return;
  self.started = false;
  if (self.server) self.server->stop();
  if (self.admin) self.admin->stop();
  if (self.actions) self.actions->end();
  if (!self.loops.empty()) {
    self.each_loop([](GatewayLoop& loop) { loop.stop(); });
    self.wait_quiet();
  }
  if (self.discoveries) self.threads->at(0).call([&] { self.discoveries->stop(); });
  if (self.housekeeping) self.threads->at(0).call([&] { self.housekeeping->stop(); });
  if (self.threads) self.threads->stop();
  self.actions.reset();
  self.recorder_disk.reset();
  self.live.reset();
  self.admin.reset();
  self.history.reset();
  self.server.reset();
  self.loops.clear();
  self.housekeeping.reset();
  self.view.reset();
  self.recorder_files.reset();
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
  std::vector<std::string> waiting;
  for (const config::ConfigChange& change : report.deferred) waiting.push_back(change.key);
  self.view->set_waiting_for_restart(std::move(waiting));
  report.trouble = reopen_logs();
  self.view->reloads_ok.fetch_add(1);
  return report;
}

void Gateway::on_reload_asked(std::function<std::string()> read_again) {
  WEIR_ASSERT(!impl_->started);
  impl_->reload_asked = std::move(read_again);
}

AdminConfig Gateway::admin_config() const {
  return impl_->core ? impl_->core->config_in_force().admin : impl_->config.admin;
}

GatewayStatus Gateway::status() const {
  GatewayStatus status;
  if (!impl_->started) return status;
  const RequestTotals totals = impl_->core->totals();
  const AdmissionStats all = impl_->core->controller.stats();
  status.received = totals.received;
  status.answered = totals.answered;
  status.refused = totals.refused;
  status.aborted = totals.aborted;
  status.active = totals.active();
  status.memory_usage = all.memory_usage;
  status.connections = impl_->server->stats().connections.used;
  const std::shared_ptr<const UpstreamSet> upstreams = impl_->core->upstreams.in_force();
  if (!upstreams->all.empty()) {
    const ScopeStats scope =
        impl_->core->controller.scope_stats(upstreams->all.front()->scope(), io::monotonic_now());
    status.in_flight = scope.in_flight;
    status.limit = scope.limit;
  }
  return status;
}

}  // namespace weir::inline v0::gateway
