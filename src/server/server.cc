#include "weir/experimental/server/server.h"

#include <algorithm>
#include <latch>
#include <mutex>
#include <utility>

#include "weir/base/assert.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/listener.h"
#include "weir/experimental/io/thread_parker.h"
#include "weir/experimental/io/tls_memory.h"
#include "weir/experimental/server/memory_budget.h"

#include "acceptor.h"
#include "io/tls_certificate.h"
#include "shard.h"
#include "shared.h"
#include "tls/tls_setup.h"
#include "tls/tls_shared.h"

namespace weir::inline v0::inline server {
namespace {

/// Counts down a latch from a loop callback.
struct Countdown {
  explicit Countdown(std::ptrdiff_t count) : latch(count) {}
  void one() { latch.count_down(); }
  std::latch latch;
};

io::ListenOptions listen_options(const ServerConfig& config) {
  io::ListenOptions options;
  options.socket.receive_buffer_bytes = config.socket_receive_buffer_size;
  options.socket.send_buffer_bytes = config.socket_send_buffer_size;
  options.socket.user_timeout = config.tcp_user_timeout;
  options.backlog = config.listen_backlog;
  options.accept_budget = config.accept_budget;
  return options;
}

std::uint16_t first_port(const std::vector<io::SocketName>& names) {
  for (const io::SocketName& name : names) {
    if (name.address.family != io::Family::kUnix) return name.address.port;
  }
  return 0;
}

}  // namespace

struct Server::Impl {
  Impl(const ServerConfig& given, io::LoopThreads* outside, HandlerFactory make)
      : config(given),
        own_loops(outside == nullptr ? std::make_unique<io::LoopThreads>(io::LoopThreads::Options{
                                           .count = given.loops, .pin = false, .name = "weir"})
                                     : nullptr),
        loops(outside == nullptr ? *own_loops : *outside),
        factory(std::move(make)),
        shared(config, loops.size()) {}

  struct Listening {
    std::string where;
    GivenSocket socket;
    bool tls = false;
    bool proxied = false;  // named in config.proxy_protocol
  };

  /// Every address with the socket that is given for it, if there is one.
  std::vector<Listening> wanted_sockets(GivenSockets given) {
    std::vector<Listening> all;
    const auto add = [&](const std::vector<std::string>& addresses,
                         std::vector<GivenSocket>& sockets, bool tls) {
      sockets.resize(addresses.size());
      for (std::size_t i = 0; i < addresses.size(); ++i) {
        all.push_back({.where = addresses[i],
                       .socket = std::move(sockets[i]),
                       .tls = tls,
                       .proxied = config.requires_proxy_header(addresses[i])});
      }
    };
    add(config.listen, given.listen, false);
    if (config.tls.enabled()) add(config.tls.listen, given.tls_listen, true);
    return all;
  }

  /// Binds the address, or prepares the socket that is given for it.
  static Result<void, io::IoError> open(Listening& one, const io::ListenOptions& options) {
    if (one.socket.fd) return io::adopt_listener(one.socket.fd.get(), options);
    const auto name = io::parse_socket_name(one.where);
    if (!name) return unexpected(name.error());
    Result<io::Fd, io::IoError> fd = io::listen_on(*name, options);
    if (!fd) return unexpected(fd.error());
    one.socket.fd = std::move(*fd);
    return {};
  }

  Result<void, StartError> listen(GivenSockets given) {
    io::ListenOptions options = listen_options(config);
    const bool accept = given.accept;
    std::vector<Listening> sockets = wanted_sockets(std::move(given));
    for (Listening& one : sockets) {
      if (const auto opened = open(one, options); !opened) {
        return unexpected(StartError{opened.error(), one.where, {}});
      }
    }
    for (Listening& one : sockets) {
      (one.tls ? tls_names : names).push_back(io::bound_name(one.socket.fd.get()));
      options.shared = one.socket.shared;
      Result<void, io::IoError> added;
      loops.at(0).call([&, this] {
        added = acceptor->add(std::move(one.socket.fd), options,
                              {.tls = one.tls, .proxied = one.proxied, .paused = !accept});
      });
      if (!added) return unexpected(StartError{added.error(), one.where, {}});
    }
    return {};
  }

  /// Loads certificates and keys, before any socket listens.
  Result<void, StartError> load_tls(const std::string& ticket_keys) {
    if (!config.tls.enabled()) return {};
    io::TlsSetup setup = tls_setup(config.tls, config.http2_enabled);
    setup.ticket_keys = ticket_keys;
    auto context = io::TlsContext::make(setup);
    if (!context) {
      return unexpected(
          StartError{io::IoError::kTls, context.error().where, std::move(context.error().why)});
    }
    shared.tls = std::make_unique<TlsShared>(config, loops.size(), std::move(*context));
    return {};
  }

  void close_acceptor(Acceptor::Queued queued) {
    if (acceptor == nullptr || acceptor_closed) return;
    acceptor_closed = true;
    Countdown closed(1);
    loops.at(0).post([&] { acceptor->close(queued, io::Callback<>::to<&Countdown::one>(closed)); });
    closed.latch.wait();
  }

  const ServerConfig config;
  std::unique_ptr<io::LoopThreads> own_loops;
  io::LoopThreads& loops;
  HandlerFactory factory;
  CriticalPeer is_critical;
  ServerShared shared;
  std::vector<std::unique_ptr<LoopShard>> shards;
  std::unique_ptr<Acceptor> acceptor;
  std::vector<io::SocketName> names;
  mutable std::mutex counters_mutex;
  LoopCounters past;  // of shards that have stopped
  std::vector<io::SocketName> tls_names;
  bool started = false;
  bool acceptor_closed = false;
};

Server::Server(const ServerConfig& config, HandlerFactory factory)
    : impl_(std::make_unique<Impl>(config, nullptr, std::move(factory))) {}

Server::Server(const ServerConfig& config, io::LoopThreads& loops, HandlerFactory factory)
    : impl_(std::make_unique<Impl>(config, &loops, std::move(factory))) {}

Server::~Server() {
  stop();
}

void Server::set_critical_peers(CriticalPeer is_critical) {
  WEIR_ASSERT(!impl_->started);
  impl_->is_critical = std::move(is_critical);
}

void Server::set_proxy_senders(ProxySenders senders) {
  WEIR_ASSERT(!impl_->started);
  impl_->shared.proxy_senders = std::move(senders);
}

Result<void, StartError> Server::start(GivenSockets given) {
  Impl& self = *impl_;
  WEIR_ASSERT(!self.started);
  if (self.config.memory_max > 0 && worst_case_bytes(self.config) > self.config.memory_max) {
    return unexpected(StartError{io::IoError::kNoMemory, "server.memory_max", {}});
  }
  if (Result<void, StartError> loaded = self.load_tls(given.ticket_keys); !loaded) return loaded;
  self.started = true;
  if (self.own_loops) self.own_loops->start();
  self.shards.resize(self.loops.size());
  for (std::uint32_t i = 0; i < self.loops.size(); ++i) {
    io::Loop& loop = self.loops.at(i);
    loop.call([&] {
      self.shards[i] = std::make_unique<LoopShard>(self.shared, loop, i,
                                                   self.factory({.loop = loop, .index = i}));
    });
    self.shared.shards.push_back(self.shards[i].get());
  }
  const auto seed = static_cast<std::uint64_t>(to_ns(io::monotonic_now()));
  self.acceptor =
      std::make_unique<Acceptor>(self.shared, self.loops.at(0), self.is_critical, Rng(seed));
  for (std::uint32_t i = 0; i < self.loops.size(); ++i) {
    self.loops.at(i).call([&] { self.shards[i]->start(); });
  }
  Result<void, StartError> listening = self.listen(std::move(given));
  if (!listening) stop();
  return listening;
}

void Server::begin_accepting() {
  if (impl_->started) impl_->loops.at(0).call([this] { impl_->acceptor->resume(); });
}

std::vector<io::Fd> Server::duplicate_listeners() const {
  std::vector<io::Fd> all;
  if (impl_->started) {
    impl_->loops.at(0).call([&] { all = impl_->acceptor->duplicate_listeners(); });
  }
  return all;
}

std::string Server::ticket_keys() const {
  return impl_->shared.tls ? impl_->shared.tls->context()->ticket_keys() : std::string();
}

void Server::share_listener(std::size_t index, bool shared) {
  if (!impl_->started) return;
  impl_->loops.at(0).call([&] { impl_->acceptor->share_listener(index, shared); });
}

std::vector<io::SocketName> Server::addresses() const {
  return impl_->names;
}

std::vector<io::SocketName> Server::tls_addresses() const {
  return impl_->tls_names;
}

std::uint16_t Server::port() const {
  return first_port(impl_->names);
}

std::uint16_t Server::tls_port() const {
  return first_port(impl_->tls_names);
}

Result<std::vector<RotatedCertificate>, ConfigError> Server::reload_tls(const io::TlsConfig& next) {
  std::vector<RotatedCertificate> rotated;
  TlsShared* tls = impl_->shared.tls.get();
  if (tls == nullptr) return rotated;
  const io::TlsContext::Ptr before = tls->context();
  auto made = io::TlsContext::make(tls_setup(next, impl_->config.http2_enabled), before.get());
  if (!made) return unexpected(tls_fault(next, made.error()));
  const std::vector<io::TlsCertificate> old_ones = io::certificates_of(*before);
  const std::vector<io::TlsCertificate> new_ones = io::certificates_of(**made);
  for (std::size_t i = 0; i < new_ones.size(); ++i) {
    const io::TlsCertificate was = i < old_ones.size() ? old_ones[i] : io::TlsCertificate{};
    if (new_ones[i].digest == was.digest) continue;
    rotated.push_back({.file = new_ones[i].file,
                       .subject = new_ones[i].subject,
                       .expires = new_ones[i].expires,
                       .subject_before = was.subject,
                       .expires_before = was.expires});
  }
  tls->set_context(std::move(*made));
  return rotated;
}

bool Server::drain(const DrainOptions& options) {
  Impl& self = *impl_;
  if (!self.started) return true;
  if (!self.shared.draining.load(std::memory_order_relaxed)) {
    self.shared.idle_until_ns.store(to_ns(io::monotonic_now() + options.idle_grace));
    self.shared.draining.store(true, std::memory_order_release);
  }
  self.close_acceptor(Acceptor::Queued::kServed);
  for (auto& shard : self.shards) {
    shard->loop().call([&] { shard->drain(); });
  }
  constexpr Duration kLook = std::chrono::milliseconds(5);
  io::ThreadParker parker;
  const TimePoint deadline = io::monotonic_now() + options.at_most;
  for (TimePoint now = io::monotonic_now(); self.shared.connections.stats().used > 0;) {
    if (now >= deadline) return false;
    now = parker.park_until(std::min(deadline, now + kLook));
  }
  return true;
}

void Server::stop() {
  Impl& self = *impl_;
  if (!self.started) return;
  self.close_acceptor(Acceptor::Queued::kReset);
  if (!self.shards.empty()) {
    Countdown stopped(static_cast<std::ptrdiff_t>(self.shards.size()));
    for (auto& shard : self.shards) {
      shard->loop().post(
          [&shard, &stopped] { shard->stop(io::Callback<>::to<&Countdown::one>(stopped)); });
    }
    stopped.latch.wait();
    // All tasks that loops have posted to each other have run after this: none refers to a shard.
    for (std::uint32_t i = 0; i < self.loops.size(); ++i) self.loops.at(i).call([] {});
    {
      const std::lock_guard lock(self.counters_mutex);
      for (const auto& shard : self.shards) self.past.take_over(shard->counters());
      self.shared.shards.clear();
    }
    for (std::uint32_t i = 0; i < self.loops.size(); ++i) {
      self.loops.at(i).call([&] { self.shards[i].reset(); });
    }
    self.shards.clear();
  }
  self.acceptor.reset();
  if (self.own_loops) self.own_loops->stop();
  self.started = false;
}

ServerStats Server::stats() const {
  const ServerShared& shared = impl_->shared;
  ServerStats stats;
  stats.connections = shared.connections.stats();
  stats.read_regions.capacity = shared.config.max_connections;
  stats.write_buffers = shared.writes.blocks().stats();
  stats.arenas = shared.arenas.stats();
  stats.pending_streams = shared.arenas.pending_stats();
  stats.h2_sessions = shared.h2_sessions.stats();
  stats.streams = shared.streams.stats();
  stats.tunnel_places = shared.tunnels.stats();
  stats.h2_tunnel_places = shared.h2_tunnels.stats();
  stats.body_leases = shared.body_leases.stats();
  stats.backpressure.capacity = shared.config.backpressure_list_max;
  stats.write_slab_exhaustion_count = stats.write_buffers.exhausted;
  if (shared.tls) {
    stats.tls.handshake_slots = shared.tls->slots.stats();
    stats.tls.handshakes_waiting = shared.tls->slots.waiting();
    const io::TlsMemoryStats memory = io::tls_memory_stats();
    stats.tls.memory_budget_bytes = memory.budget_bytes;
    stats.tls.memory_bytes = memory.taken_bytes;
    stats.tls.memory_peak_bytes = memory.peak_bytes;
    stats.tls.memory_refused = memory.refused;
  }
  stats.pressure = shared.level.load(std::memory_order_relaxed);
  const std::lock_guard lock(impl_->counters_mutex);
  impl_->past.add_to(stats);
  for (const LoopShard* shard : shared.shards) shard->counters().add_to(stats);
  return stats;
}

const ServerConfig& Server::config() const noexcept {
  return impl_->config;
}

}  // namespace weir::inline v0::inline server
