#include "connection_pool.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

#include "connect_failure.h"
#include "h2_wire.h"
#include "upstream/upstream.h"

namespace weir::inline v0::upstream {
namespace {

/// Streams that may wait for one HTTP/2 connection whose settings are not known yet.
constexpr std::size_t kStreamsPerNewConnection = 10;

}  // namespace

ConnectionPool::ConnectionPool(const Setup& setup)
    : loop_(setup.loop),
      loop_index_(setup.loop_index),
      upstream_(setup.upstream),
      memory_(setup.memory),
      limits_(setup.limits),
      rng_(setup.rng),
      connections_(setup.upstream.config().max_connections),
      fields_(std::max(setup.limits.header_count_max, setup.limits.trailer_count_max)),
      http2_(H2Wire::limits(setup.memory.regions.block_bytes())),
      queues_(setup.loop, setup.upstream),
      give_(io::Callback<>::to<&ConnectionPool::give>(*this)),
      serve_(
          io::Callback<>([](void* self) { static_cast<ConnectionPool*>(self)->serve(); }, this)) {
  upstream_.add_pool(*this);
}

ConnectionPool::~ConnectionPool() {
  WEIR_ASSERT(stopped());
  upstream_.remove_pool(*this);
}

// ---- lending

Result<ClientStream*, UpstreamFailure> ConnectionPool::acquire(PoolEndpoint& endpoint,
                                                               ConnectionWaiter& waiter,
                                                               const Want& want) {
  const bool may_choose = upstream_.tls() != nullptr && upstream_.protocol() == Protocol::kAuto;
  if (want.http1 && may_choose) return acquire_http1(endpoint, waiter, want);
  // What became free belongs to those who wait: serve() is on its way to them.
  if (endpoint.queue.queued() == 0) {
    if (ClientStream* stream = take(endpoint, want)) return stream;
  }
  if (stopping_ || !want.waits || !queues_.enter(endpoint, waiter, want.entry)) {
    return unexpected(UpstreamFailure::kNoConnection);
  }
  const UpstreamFailure failure = open_more(endpoint, want.entry.access);
  if (failure == UpstreamFailure::kNone) return nullptr;
  if (failure == UpstreamFailure::kNoConnection) {
    make_room();
    return nullptr;  // until a connection is given back, or the queue's timer
  }
  stop_waiting(waiter);
  upstream_.note_health(*endpoint.shared, policy::HealthEvent::kConnectFailed, loop_.now());
  return unexpected(failure);
}

Result<ClientStream*, UpstreamFailure> ConnectionPool::acquire_http1(PoolEndpoint& endpoint,
                                                                     ConnectionWaiter& waiter,
                                                                     const Want& want) noexcept {
  if (endpoint.queue.queued() == 0) {
    if (ClientStream* stream = take_idle(endpoint, want)) return stream;
  }
  const UpstreamFailure failure = connect(endpoint, want.entry.access, &waiter);
  if (failure == UpstreamFailure::kNone) return nullptr;
  if (failure == UpstreamFailure::kNoConnection) {
    make_room();  // for the next one
  } else {
    upstream_.note_health(*endpoint.shared, policy::HealthEvent::kConnectFailed, loop_.now());
  }
  return unexpected(failure);
}

bool ConnectionPool::ready(const PoolEndpoint& endpoint) noexcept {
  if (endpoint.queue.queued() > 0) return false;
  if (!endpoint.idle.empty()) return true;
  for (const ClientConnection& connection : endpoint.multiplexed) {
    if (connection.has_stream()) return true;
  }
  return false;
}

ClientStream* ConnectionPool::take(PoolEndpoint& endpoint, const Want& want) noexcept {
  for (ClientConnection& connection : endpoint.multiplexed) {
    if (ClientStream* stream = connection.take_stream()) return stream;
  }
  return take_idle(endpoint, want);
}

/// An idle connection that speaks HTTP/1.1.
ClientStream* ConnectionPool::take_idle(PoolEndpoint& endpoint, const Want& want) noexcept {
  while (ClientConnection* connection = endpoint.idle.back()) {
    // Bytes that came since its last answer would be taken for the answer of this request.
    if ((want.unused_will_do && connection->unused()) || connection->still_quiet()) {
      connection->set_access(want.entry.access);
      if (ClientStream* stream = connection->take_stream()) return stream;
    }
    connection->close();
  }
  return nullptr;
}

/// Whether the connections that are being opened can serve all waiters.
bool ConnectionPool::enough_connecting(const PoolEndpoint& endpoint) const noexcept {
  const bool may_multiplex =
      endpoint.speaks_http2 ||
      (endpoint.connections == endpoint.connecting && upstream_.protocol() != Protocol::kHttp1 &&
       (upstream_.protocol() == Protocol::kHttp2 || upstream_.tls()));
  const std::size_t each = may_multiplex ? kStreamsPerNewConnection : 1;
  return endpoint.connecting * each >= endpoint.queue.queued();
}

/// Opens a connection if those that are free or being opened are too few for the waiters.
/// kNoConnection: there is no room for one more.
UpstreamFailure ConnectionPool::open_more(PoolEndpoint& endpoint, io::Access access) noexcept {
  if (!endpoint.idle.empty() || enough_connecting(endpoint)) return UpstreamFailure::kNone;
  return connect(endpoint, access);
}

/// An idle connection to another endpoint, or of another loop, holds the place of the one we want.
void ConnectionPool::make_room() noexcept {
  if (upstream_.full() && !close_one_idle() && upstream_.idle() > 0) upstream_.ask_for_idle(*this);
}

/// `alone`: the connection is for this waiter.
UpstreamFailure ConnectionPool::connect(PoolEndpoint& endpoint, io::Access access,
                                        ConnectionWaiter* alone) noexcept {
  if (stopping_ || !upstream_.try_add_connection(access)) return UpstreamFailure::kNoConnection;
  const SlabHandle handle = connections_.acquire(*this, endpoint);
  ClientConnection* connection = connections_.get(handle);
  if (connection == nullptr) {
    upstream_.return_connection();
    return UpstreamFailure::kNoConnection;
  }
  Result<io::Fd, io::IoError> fd = io::connect_to(endpoint.shared->name(), {.keep_alive = true});
  Result<void, io::IoError> opened;
  if (fd) {
    opened = connection->open(std::move(fd).value(), upstream_.timeouts().connect);
  } else {
    opened = unexpected(fd.error());
  }
  if (!opened) {
    const UpstreamFailure failure = connect_failure(opened.error());
    connections_.release(handle);
    // A shortage of ours would hinder other loops too; another failure leaves the place to them.
    if (failure == UpstreamFailure::kNoConnection) {
      upstream_.return_connection();
    } else {
      upstream_.drop_connection();
    }
    return failure;
  }
  if (alone != nullptr) {
    connection->belong_to(*alone);
    connection->set_access(access);
  }
  ++endpoint.connections;
  ++endpoint.connecting;
  endpoint.counters.connects.add();
  endpoint.counters.connections.add();
  endpoint.counters.connecting.add();
  return UpstreamFailure::kNone;
}

// ---- the queue

void ConnectionPool::stop_waiting(ConnectionWaiter& waiter) noexcept {
  if (waiter.own != nullptr) static_cast<void>(waiter.own->release_waiter());
  queues_.leave(waiter);
}

void ConnectionPool::serve() {
  for (std::size_t turns = queues_.wanted(); turns > 0; --turns) {
    PoolEndpoint* endpoint = queues_.next_wanted();
    if (endpoint == nullptr) return;
    serve(*endpoint);
  }
}

void ConnectionPool::serve(PoolEndpoint& endpoint) noexcept {
  while (const ConnectionWaiter* waiter = WaiterQueues::first(endpoint)) {
    // An endpoint that accepts and closes at once must fail the request: a new connection instead
    // of it would be closed too, and so on.
    ClientStream* stream =
        take(endpoint, {.entry = {.access = waiter->access}, .unused_will_do = true});
    if (stream == nullptr) break;
    queues_.take_first(endpoint, control::OutgoingEnd::kSent).on_connection(*stream);
  }
  while (!enough_connecting(endpoint)) {
    const io::Access access = WaiterQueues::first(endpoint)->access;
    const UpstreamFailure failure = connect(endpoint, access);
    if (failure == UpstreamFailure::kNoConnection) return make_room();
    if (failure != UpstreamFailure::kNone) on_connect_failed(endpoint, failure);
  }
}

/// Ends the waiters that the connections being opened cannot serve.
void ConnectionPool::fail_waiters(PoolEndpoint& endpoint, UpstreamFailure failure) noexcept {
  while (!enough_connecting(endpoint)) {
    queues_.take_first(endpoint, control::OutgoingEnd::kFailed).on_no_connection(failure);
  }
}

// ---- what connections report

void ConnectionPool::on_connected(PoolEndpoint& endpoint) noexcept {
  upstream_.note_good(*endpoint.shared, policy::HealthEvent::kConnected, loop_.now());
  if (endpoint.queue.queued() > 0) serve(endpoint);
}

void ConnectionPool::on_connect_failed(PoolEndpoint& endpoint, UpstreamFailure failure) noexcept {
  upstream_.note_health(*endpoint.shared, policy::HealthEvent::kConnectFailed, loop_.now());
  fail_waiters(endpoint, failure);
}

void ConnectionPool::on_no_session(PoolEndpoint& endpoint) noexcept {
  fail_waiters(endpoint, UpstreamFailure::kNoBuffer);
}

void ConnectionPool::on_idle(ClientConnection& connection) noexcept {
  PoolEndpoint& endpoint = connection.endpoint();
  endpoint.idle.push_back(connection);
  endpoint.counters.idle.add();
  idle_.push_back(connection);
  ++idle_count_;
  const bool kept_back = upstream_.reserve_in_use();
  const ConnectionWaiter* next = WaiterQueues::first(endpoint);
  const bool for_next = next != nullptr && (!kept_back || connection.unused() ||
                                            next->access == io::Access::kCritical);
  if (for_next) return loop_.defer(serve_);
  const bool few = idle_count_ <= upstream_.config().max_idle_connections;
  if (few && !wanted_elsewhere() && !stopping_ && !kept_back && endpoint.in_set) return;
  // Too many: closes the one that was idle longest at this endpoint.
  endpoint.idle.front()->close();
}

/// All places are taken, and somebody waits for one.
bool ConnectionPool::wanted_elsewhere() const noexcept {
  return upstream_.full() && upstream_.waiting() > 0;
}

void ConnectionPool::on_no_streams(ClientConnection& connection) noexcept {
  if (connection.all_hook.linked()) return;
  connection.endpoint().counters.idle.add();
  idle_.push_back(connection);
  ++idle_count_;
  if (connection.endpoint().queue.queued() == 0 && wanted_elsewhere()) connection.close();
}

void ConnectionPool::leave_idle(ClientConnection& connection) noexcept {
  PoolEndpoint& endpoint = connection.endpoint();
  if (connection.idle_hook.linked()) endpoint.idle.remove(connection);
  endpoint.counters.idle.sub();
  idle_.remove(connection);
  --idle_count_;
}

void ConnectionPool::on_streams_free(PoolEndpoint& endpoint) noexcept {
  if (endpoint.queue.queued() > 0) loop_.defer(serve_);
}

void ConnectionPool::on_gone(ClientConnection& connection) noexcept {
  PoolEndpoint& endpoint = connection.endpoint();
  --endpoint.connections;
  endpoint.counters.connections.sub();
  connections_.release(connections_.handle_of(&connection));
  upstream_.drop_connection();
  if (endpoint.queue.queued() > 0) loop_.defer(serve_);
}

// ---- keeping and giving

Duration ConnectionPool::draw_idle() noexcept {
  const Duration idle = upstream_.timeouts().idle;
  return rng_.between(idle - idle / 5, idle);
}

Duration ConnectionPool::draw_age() noexcept {
  const Duration age = upstream_.timeouts().age;
  return rng_.between(age - age / 5, age + age / 5);
}

void ConnectionPool::warm(PoolEndpoint& endpoint) noexcept {
  if (stopping_ || !endpoint.in_set || !endpoint.shared->open()) return;
  if (endpoint.connections >= upstream_.config().warm_connections) return;
  // Requests need places too: with many endpoints, warm connections would take them all.
  if (upstream_.connections() >= upstream_.config().max_connections / 2) return;
  probe(endpoint);
}

void ConnectionPool::probe(PoolEndpoint& endpoint) noexcept {
  if (endpoint.connecting > 0) return;
  const UpstreamFailure failure = connect(endpoint, io::Access::kOrdinary);
  if (failure == UpstreamFailure::kNone || failure == UpstreamFailure::kNoConnection) return;
  on_connect_failed(endpoint, failure);
}

void ConnectionPool::ping(PoolEndpoint& endpoint) noexcept {
  for (ClientConnection& connection : endpoint.multiplexed) connection.ping();
}

void ConnectionPool::close_idle(PoolEndpoint& endpoint) noexcept {
  ClientConnection* connection = idle_.front();
  while (connection != nullptr) {
    ClientConnection* const next = idle_.next(*connection);
    if (&connection->endpoint() == &endpoint) connection->close();
    connection = next;
  }
}

void ConnectionPool::retire(PoolEndpoint& endpoint) noexcept {
  while (ClientConnection* connection = endpoint.idle.front()) connection->close();
  ClientConnection* connection = endpoint.multiplexed.front();
  while (connection != nullptr) {
    ClientConnection* const next = endpoint.multiplexed.next(*connection);
    connection->retire();
    connection = next;
  }
}

/// Closes the connection that was idle longest.
bool ConnectionPool::close_one_idle() noexcept {
  ClientConnection* oldest = idle_.front();
  if (oldest == nullptr) return false;
  oldest->close();
  return true;
}

void ConnectionPool::give() {
  if (upstream_.full() && upstream_.waiting() > 0) close_one_idle();
}

void ConnectionPool::stop() noexcept {
  stopping_ = true;
  upstream_.remove_pool(*this);  // no new posts; stopped() covers the queued ones
  queues_.close();
  connections_.for_each([](ClientConnection& connection) {
    if (!connection.connecting()) return connection.retire();
    ConnectionWaiter* const waiter = connection.release_waiter();
    connection.close();
    if (waiter != nullptr) waiter->on_no_connection(UpstreamFailure::kNoConnection);
  });
}

}  // namespace weir::inline v0::upstream
