#include "upstream/pool.h"

#include <algorithm>

#include "weir/base/assert.h"

namespace weir::inline v0::upstream {

namespace {
constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::uint32_t kBlocksCachedPerLoop = 4;

UpstreamFailure failure_of(io::IoError error) noexcept {
  switch (error) {
    case io::IoError::kRefused:
      return UpstreamFailure::kConnectRefused;
    case io::IoError::kTimedOut:
      return UpstreamFailure::kConnectTimeout;
    case io::IoError::kNoFds:
    case io::IoError::kNoMemory:  // this process lacks it, not the endpoint
      return UpstreamFailure::kNoConnection;
    default:
      return UpstreamFailure::kConnectFailed;
  }
}
/// Whether the failure is the endpoint's fault, not caused by the client or by our own bounds.
bool speaks_against_endpoint(UpstreamFailure failure) noexcept {
  switch (failure) {
    case UpstreamFailure::kClosedEarly:
    case UpstreamFailure::kFirstByteTimeout:
    case UpstreamFailure::kBadResponse:
    case UpstreamFailure::kTruncated:
    case UpstreamFailure::kStalled:
      return true;
    default:
      return false;
  }
}
}  // namespace

UpstreamMemory::UpstreamMemory(std::uint32_t requests_max, std::uint32_t connections_max,
                               std::size_t request_bytes, std::size_t region_bytes,
                               std::uint32_t loops, std::uint32_t reserved)
    : requests({.count = requests_max,
                .bytes_each = request_bytes,
                .reserved = reserved,
                .loops = loops,
                .cached_max = kBlocksCachedPerLoop}),
      regions({.count = connections_max,
               .bytes_each = region_bytes,
               .reserved = reserved,
               .loops = loops,
               .cached_max = 0}) {}

UpstreamPool::UpstreamPool(io::Loop& loop, std::uint32_t loop_index, Upstream& upstream,
                           UpstreamMemory& memory, const http::HttpLimits& response_limits)
    : loop_(loop),
      loop_index_(loop_index),
      upstream_(upstream),
      memory_(memory),
      limits_(response_limits),
      connections_(upstream.config().max_connections),
      idle_(upstream.size()),
      fields_(std::max(response_limits.header_count_max, response_limits.trailer_count_max)),
      give_(io::Callback<>::to<&UpstreamPool::give>(*this)),
      serve_waiting_(io::Callback<>::to<&UpstreamPool::serve_waiting>(*this)),
      wait_timer_(io::Timer::Fired::to<&UpstreamPool::on_wait_timer>(*this)),
      turn_(loop_index) {
  upstream.add_pool(*this);
}

UpstreamPool::~UpstreamPool() {
  WEIR_ASSERT(stopped() && waiting_.empty());
  upstream_.remove_pool(*this);
  loop_.cancel(wait_timer_);
}

bool UpstreamPool::open(Exchange& exchange, io::Access access) noexcept {
  WEIR_ASSERT(!exchange.active());
  std::byte* block = memory_.requests.acquire(loop_index_, access);
  if (block == nullptr) return false;
  exchange.buffer_ = reinterpret_cast<char*>(block);
  exchange.begin_ = exchange.end_ = exchange.head_bytes_ = 0;
  exchange.attempts_ = 0;
  exchange.access_ = access;
  exchange.endpoint_ = nullptr;
  exchange.request_complete_ = exchange.body_given_ = exchange.response_started_ = false;
  exchange.tunnel_ = exchange.owes_writable_ = exchange.waited_for_owner_ = false;
  exchange.pool_ = this;
  return true;
}

Result<void, UpstreamFailure> UpstreamPool::start(Exchange& exchange, const Start& start) noexcept {
  WEIR_ASSERT(exchange.pool_ == this && exchange.head_bytes_ > 0);
  const Duration overall = start.overall.value_or(upstream_.timeouts().overall);
  const TimePoint limit = overall > Duration(0) ? loop_.now() + overall : TimePoint::max();
  exchange.plan_ = {
      .method = start.method,
      .framing = start.framing,
      .upgrade = start.upgrade,
      .patient = false,
      .deadline = start.deadline == TimePoint{} ? limit : std::min(limit, start.deadline),
      .caller_deadline = start.deadline};
  exchange.request_complete_ = start.framing == RequestFraming::kNone && !start.upgrade;
  Result<void, UpstreamFailure> started = attempt(exchange);
  if (started) return started;
  if (started.error() == UpstreamFailure::kNoConnection && wait_for_connection(exchange)) return {};
  note_unserved(started.error());
  detach(exchange);
  return started;
}

// The bound covers all endpoints; the failure is counted at the endpoint chosen last.
void UpstreamPool::note_unserved(UpstreamFailure failure) noexcept {
  if (failure != UpstreamFailure::kNoConnection) return;
  Endpoint& endpoint = upstream_.at((turn_ - 1) % upstream_.size());
  endpoint.failures[index_of(failure)].fetch_add(1, kRelaxed);
}

// Tries the next endpoint, and the ones after it while connecting fails at once.
Result<void, UpstreamFailure> UpstreamPool::attempt(Exchange& exchange) noexcept {
  const auto attempts_max =
      std::min(kAttemptsMax, std::max<std::uint32_t>(2, static_cast<std::uint32_t>(idle_.size())));
  UpstreamFailure why = UpstreamFailure::kNoEndpoint;
  while (exchange.attempts_ < attempts_max) {
    ++exchange.attempts_;
    const std::uint32_t at = upstream_.choose(turn_, loop_.now());
    Endpoint& endpoint = upstream_.at(at);
    UpstreamConnection* connection = take_idle(at, exchange);
    if (connection == nullptr) {
      connection = connect(at, exchange.access_, why);
      if (connection == nullptr) {
        if (why == UpstreamFailure::kNoConnection) break;  // the caller counts it, if final
        endpoint.failures[index_of(why)].fetch_add(1, kRelaxed);
        continue;
      }
    }
    endpoint.attempts.fetch_add(1, kRelaxed);
    if (exchange.attempts_ > 1) endpoint.retries.fetch_add(1, kRelaxed);
    endpoint.in_flight.fetch_add(1, kRelaxed);
    exchange.endpoint_ = &endpoint;
    connection->carry(exchange);
    return {};
  }
  return unexpected(why);
}

/// The idle connection used last. Before a request that cannot be repeated, dead ones are closed.
UpstreamConnection* UpstreamPool::take_idle(std::uint32_t endpoint_index,
                                            const Exchange& exchange) noexcept {
  const bool repeatable = is_safe(exchange.plan_.method) &&
                          exchange.plan_.framing == RequestFraming::kNone &&
                          !exchange.plan_.upgrade;
  while (UpstreamConnection* connection = idle_[endpoint_index].back()) {
    if (repeatable || connection->still_quiet()) {
      take_from_idle(*connection);
      return connection;
    }
    connection->close();
  }
  return nullptr;
}

UpstreamConnection* UpstreamPool::connect(std::uint32_t endpoint_index, io::Access access,
                                          UpstreamFailure& why) noexcept {
  why = UpstreamFailure::kNoConnection;
  if (stopping_ || !upstream_.try_add_connection(access)) return nullptr;
  const SlabHandle handle = connections_.acquire(*this, endpoint_index);
  UpstreamConnection* connection = connections_.get(handle);
  if (connection == nullptr) {
    upstream_.drop_connection();
    return nullptr;
  }
  Endpoint& endpoint = upstream_.at(endpoint_index);
  Result<io::Fd, io::IoError> fd = io::connect_to(endpoint.name(), {.keep_alive = true});
  Result<void, io::IoError> opened;
  if (fd) {
    opened = connection->open(std::move(fd).value());
  } else {
    opened = unexpected(fd.error());
  }
  if (!opened) {
    why = failure_of(opened.error());
    if (why != UpstreamFailure::kNoConnection) endpoint.note_connect_failed(loop_.now());
    connections_.release(handle);
    upstream_.drop_connection();
    return nullptr;
  }
  endpoint.connects.fetch_add(1, kRelaxed);
  endpoint.connections.fetch_add(1, kRelaxed);
  endpoint.connecting.fetch_add(1, kRelaxed);
  return connection;
}

void UpstreamPool::keep_idle(UpstreamConnection& connection) noexcept {
  idle_[connection.endpoint_index()].push_back(connection);
  upstream_.at(connection.endpoint_index()).idle.fetch_add(1, kRelaxed);
  ++idle_count_;
  const bool kept_back = upstream_.reserve_in_use();
  if (!waiting_.empty() && !kept_back) return loop_.defer(serve_waiting_);
  const bool wanted_elsewhere = upstream_.waiting() > 0;
  const bool few = idle_count_ <= upstream_.config().max_idle_connections;
  if (few && !wanted_elsewhere && !stopping_ && !kept_back) return;
  // Too many: closes the connection that was idle longest at this endpoint.
  idle_[connection.endpoint_index()].front()->close();
}

void UpstreamPool::take_from_idle(UpstreamConnection& connection) noexcept {
  idle_[connection.endpoint_index()].remove(connection);
  upstream_.at(connection.endpoint_index()).idle.fetch_sub(1, kRelaxed);
  --idle_count_;
}

void UpstreamPool::gone(UpstreamConnection& connection) noexcept {
  upstream_.at(connection.endpoint_index()).connections.fetch_sub(1, kRelaxed);
  upstream_.drop_connection();
  connections_.release(connections_.handle_of(&connection));
}

void UpstreamPool::retry(Exchange& exchange, UpstreamFailure failure) noexcept {
  exchange.endpoint_->in_flight.fetch_sub(1, kRelaxed);
  exchange.endpoint_->failures[index_of(failure)].fetch_add(1, kRelaxed);
  exchange.connection_ = nullptr;
  exchange.begin_ = 0;  // restart at the first byte of the head
  const bool in_time = loop_.now() < exchange.plan_.deadline;
  Result<void, UpstreamFailure> again =
      in_time ? attempt(exchange) : Result<void, UpstreamFailure>(unexpected(failure));
  if (again) return;
  if (again.error() == UpstreamFailure::kNoConnection && wait_for_connection(exchange)) return;
  const UpstreamFailure told =
      again.error() == UpstreamFailure::kNoEndpoint ? failure : again.error();
  note_unserved(told);
  detach(exchange);
  exchange.events_.on_upstream_failed(told);
}

void UpstreamPool::end(Exchange& exchange, UpstreamFailure failure) noexcept {
  Endpoint& endpoint = *exchange.endpoint_;
  endpoint.in_flight.fetch_sub(1, kRelaxed);
  if (failure == UpstreamFailure::kNone) {
    endpoint.answered.fetch_add(1, kRelaxed);
    endpoint.note_answered();
  } else {
    endpoint.failures[index_of(failure)].fetch_add(1, kRelaxed);
    if (speaks_against_endpoint(failure)) endpoint.note_bad_answer(loop_.now());
  }
  detach(exchange);
}

void UpstreamPool::detach(Exchange& exchange) noexcept {
  exchange.release_buffer();
  exchange.connection_ = nullptr;
  exchange.pool_ = nullptr;
}

// ---- blocked on an upstream connection that is idle on another loop

bool UpstreamPool::wait_for_connection(Exchange& exchange) noexcept {
  if (stopping_ || upstream_.idle() == 0) return false;
  exchange.connection_ = nullptr;
  exchange.wait_until_ = loop_.now() + upstream_.timeouts().connect;
  waiting_.push_back(exchange);
  upstream_.add_waiting(1);
  if (!wait_timer_.armed()) loop_.arm(wait_timer_, exchange.wait_until_);
  if (!close_one_idle()) upstream_.ask_for_idle(*this);
  return true;
}

void UpstreamPool::stop_waiting(Exchange& exchange) noexcept {
  if (!exchange.wait_hook_.linked()) return;
  waiting_.remove(exchange);
  upstream_.add_waiting(-1);
}

void UpstreamPool::fail_waiting(Exchange& exchange, UpstreamFailure failure) noexcept {
  stop_waiting(exchange);
  note_unserved(failure);
  detach(exchange);
  exchange.events_.on_upstream_failed(failure);
}

/// Closes the connection that was idle longest at the first endpoint that has one.
bool UpstreamPool::close_one_idle() noexcept {
  for (IdleList& list : idle_) {
    if (UpstreamConnection* connection = list.front()) {
      connection->close();
      return true;
    }
  }
  return false;
}

void UpstreamPool::give() {
  if (upstream_.waiting() > 0) close_one_idle();
}

void UpstreamPool::serve_waiting() {
  while (Exchange* exchange = waiting_.front()) {
    exchange->attempts_ = 0;
    const Result<void, UpstreamFailure> fed = attempt(*exchange);
    if (fed) {
      stop_waiting(*exchange);
    } else if (fed.error() == UpstreamFailure::kNoConnection && upstream_.idle() > 0) {
      return upstream_.ask_for_idle(*this);
    } else {
      fail_waiting(*exchange, fed.error());
    }
  }
}

void UpstreamPool::on_wait_timer(TimePoint now) {
  while (Exchange* exchange = waiting_.front()) {
    if (exchange->wait_until_ > now) return loop_.arm(wait_timer_, exchange->wait_until_);
    fail_waiting(*exchange, UpstreamFailure::kNoConnection);
  }
}

void UpstreamPool::stop() noexcept {
  stopping_ = true;
  upstream_.remove_pool(*this);  // no new posts; stopped() covers the queued ones
  while (Exchange* exchange = waiting_.front()) {
    fail_waiting(*exchange, UpstreamFailure::kNoConnection);
  }
  for (IdleList& list : idle_) {
    while (UpstreamConnection* connection = list.front()) connection->close();
  }
}

}  // namespace weir::inline v0::upstream
