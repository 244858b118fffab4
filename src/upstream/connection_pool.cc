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
      give_(io::Callback<>::to<&ConnectionPool::give>(*this)),
      serve_(io::Callback<>([](void* self) { static_cast<ConnectionPool*>(self)->serve(); }, this)),
      queue_timer_(io::Timer::Fired::to<&ConnectionPool::on_queue_timer>(*this)) {
  upstream_.add_pool(*this);
}

ConnectionPool::~ConnectionPool() {
  WEIR_ASSERT(stopped() && queue_.empty());
  upstream_.remove_pool(*this);
  loop_.cancel(queue_timer_);
}

// ---- lending

Result<ClientStream*, UpstreamFailure> ConnectionPool::acquire(PoolEndpoint& endpoint,
                                                               ConnectionWaiter& waiter,
                                                               Want want) {
  // What became free belongs to those who wait: serve() is on its way to them.
  if (endpoint.waiting.empty()) {
    if (ClientStream* stream = take(endpoint, want)) return stream;
  }
  if (stopping_ || !want.waits || queue_.size() >= upstream_.config().connection_queue_max) {
    return unexpected(UpstreamFailure::kNoConnection);
  }
  waiter.access = want.access;
  enqueue(endpoint, waiter);
  const UpstreamFailure failure = open_more(endpoint, want.access);
  if (failure == UpstreamFailure::kNone) return nullptr;
  if (failure == UpstreamFailure::kNoConnection) {
    make_room();
    return nullptr;  // until a connection is given back, or the queue's timer
  }
  stop_waiting(waiter);
  upstream_.note_health(*endpoint.shared, policy::HealthEvent::kConnectFailed, loop_.now());
  return unexpected(failure);
}

bool ConnectionPool::ready(const PoolEndpoint& endpoint) noexcept {
  if (!endpoint.waiting.empty()) return false;
  if (!endpoint.idle.empty()) return true;
  for (const ClientConnection& connection : endpoint.multiplexed) {
    if (connection.has_stream()) return true;
  }
  return false;
}

ClientStream* ConnectionPool::take(PoolEndpoint& endpoint, Want want) noexcept {
  for (ClientConnection& connection : endpoint.multiplexed) {
    if (ClientStream* stream = connection.take_stream()) return stream;
  }
  while (ClientConnection* connection = endpoint.idle.back()) {
    // Bytes that came since its last answer would be taken for the answer of this request.
    if ((want.unused_will_do && connection->unused()) || connection->still_quiet()) {
      connection->set_access(want.access);
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
  return endpoint.connecting * each >= endpoint.waiting.size();
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

UpstreamFailure ConnectionPool::connect(PoolEndpoint& endpoint, io::Access access) noexcept {
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
  ++endpoint.connections;
  ++endpoint.connecting;
  endpoint.counters.connects.add();
  endpoint.counters.connections.add();
  endpoint.counters.connecting.add();
  return UpstreamFailure::kNone;
}

// ---- the queue

void ConnectionPool::enqueue(PoolEndpoint& endpoint, ConnectionWaiter& waiter) noexcept {
  waiter.wanted = &endpoint;
  waiter.wait_until = loop_.now() + upstream_.timeouts().connect;
  queue_.push_back(waiter);
  // Critical ones first: an ordinary one must not get the connection that was reserved for them.
  ConnectionWaiter* behind = nullptr;
  if (waiter.access == io::Access::kCritical) {
    behind = endpoint.waiting.front();
    while (behind != nullptr && behind->access == io::Access::kCritical) {
      behind = endpoint.waiting.next(*behind);
    }
  }
  if (behind != nullptr) {
    endpoint.waiting.insert_before(*behind, waiter);
  } else {
    endpoint.waiting.push_back(waiter);
  }
  endpoint.counters.waiting.add();
  upstream_.add_waiting(1);
  if (!endpoint.wanted_hook.linked()) wanted_.push_back(endpoint);
  if (!queue_timer_.armed()) loop_.arm(queue_timer_, waiter.wait_until);
}

void ConnectionPool::stop_waiting(ConnectionWaiter& waiter) noexcept {
  if (!waiter.queue_hook.linked()) return;
  PoolEndpoint& endpoint = *std::exchange(waiter.wanted, nullptr);
  queue_.remove(waiter);
  endpoint.waiting.remove(waiter);
  endpoint.counters.waiting.sub();
  upstream_.add_waiting(-1);
  if (endpoint.waiting.empty()) wanted_.remove(endpoint);
}

void ConnectionPool::fail(ConnectionWaiter& waiter, UpstreamFailure failure) noexcept {
  stop_waiting(waiter);
  waiter.on_no_connection(failure);
}

void ConnectionPool::serve() {
  for (std::size_t turns = wanted_.size(); turns > 0; --turns) {
    PoolEndpoint* endpoint = wanted_.front();
    if (endpoint == nullptr) return;
    wanted_.remove(*endpoint);  // to the end of the line
    wanted_.push_back(*endpoint);
    serve(*endpoint);
  }
}

void ConnectionPool::serve(PoolEndpoint& endpoint) noexcept {
  while (ConnectionWaiter* waiter = endpoint.waiting.front()) {
    // An endpoint that accepts and closes at once must fail the request: a new connection instead
    // of it would be closed too, and so on.
    ClientStream* stream = take(endpoint, {.access = waiter->access, .unused_will_do = true});
    if (stream == nullptr) break;
    stop_waiting(*waiter);
    waiter->on_connection(*stream);
  }
  while (!enough_connecting(endpoint)) {
    const UpstreamFailure failure = connect(endpoint, endpoint.waiting.front()->access);
    if (failure == UpstreamFailure::kNoConnection) return make_room();
    if (failure != UpstreamFailure::kNone) on_connect_failed(endpoint, failure);
  }
}

void ConnectionPool::on_queue_timer(TimePoint now) {
  while (ConnectionWaiter* waiter = queue_.front()) {
    if (waiter->wait_until > now) return loop_.arm(queue_timer_, waiter->wait_until);
    fail(*waiter, waiter->wanted->connecting > 0 ? UpstreamFailure::kConnectTimeout
                                                 : UpstreamFailure::kNoConnection);
  }
}

// ---- what connections report

void ConnectionPool::on_connected(PoolEndpoint& endpoint) noexcept {
  upstream_.note_good(*endpoint.shared, policy::HealthEvent::kConnected, loop_.now());
  if (!endpoint.waiting.empty()) serve(endpoint);
}

// The waiters that the remaining connections cannot serve fail with it.
void ConnectionPool::on_connect_failed(PoolEndpoint& endpoint, UpstreamFailure failure) noexcept {
  upstream_.note_health(*endpoint.shared, policy::HealthEvent::kConnectFailed, loop_.now());
  while (!enough_connecting(endpoint)) {
    ConnectionWaiter* waiter = endpoint.waiting.front();
    fail(*waiter, failure);
  }
}

void ConnectionPool::on_no_session(PoolEndpoint& endpoint) noexcept {
  while (!enough_connecting(endpoint)) fail(*endpoint.waiting.front(), UpstreamFailure::kNoBuffer);
}

void ConnectionPool::on_idle(ClientConnection& connection) noexcept {
  PoolEndpoint& endpoint = connection.endpoint();
  endpoint.idle.push_back(connection);
  endpoint.counters.idle.add();
  idle_.push_back(connection);
  ++idle_count_;
  const bool kept_back = upstream_.reserve_in_use();
  const ConnectionWaiter* next = endpoint.waiting.front();
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
  if (connection.endpoint().waiting.empty() && wanted_elsewhere()) connection.close();
}

void ConnectionPool::leave_idle(ClientConnection& connection) noexcept {
  PoolEndpoint& endpoint = connection.endpoint();
  if (connection.idle_hook.linked()) endpoint.idle.remove(connection);
  endpoint.counters.idle.sub();
  idle_.remove(connection);
  --idle_count_;
}

void ConnectionPool::on_streams_free(PoolEndpoint& endpoint) noexcept {
  if (!endpoint.waiting.empty()) loop_.defer(serve_);
}

void ConnectionPool::on_gone(ClientConnection& connection) noexcept {
  PoolEndpoint& endpoint = connection.endpoint();
  --endpoint.connections;
  endpoint.counters.connections.sub();
  connections_.release(connections_.handle_of(&connection));
  upstream_.drop_connection();
  if (!endpoint.waiting.empty()) loop_.defer(serve_);
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
  while (ConnectionWaiter* waiter = queue_.front()) fail(*waiter, UpstreamFailure::kNoConnection);
  connections_.for_each([](ClientConnection& connection) {
    if (connection.connecting()) return connection.close();
    connection.retire();
  });
}

}  // namespace weir::inline v0::upstream
