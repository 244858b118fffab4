#include "upstream/pool.h"

#include <algorithm>

#include "weir/base/assert.h"

namespace weir::inline v0 {

namespace {
constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::uint32_t kBlocksCachedPerLoop = 4;

UpstreamFailure failure_of(io::IoError error) noexcept {
  switch (error) {
    case io::IoError::kRefused:
      return UpstreamFailure::kConnectRefused;
    case io::IoError::kTimedOut:
      return UpstreamFailure::kConnectTimeout;
    default:
      return UpstreamFailure::kConnectFailed;
  }
}
}  // namespace

UpstreamMemory::UpstreamMemory(std::uint32_t requests_max, std::uint32_t connections_max,
                               std::size_t request_bytes, std::size_t region_bytes,
                               std::uint32_t loops)
    : requests({.count = requests_max,
                .bytes_each = request_bytes,
                .reserved = 0,
                .loops = loops,
                .cached_max = kBlocksCachedPerLoop}),
      regions({.count = connections_max,
               .bytes_each = region_bytes,
               .reserved = 0,
               .loops = loops,
               .cached_max = 0}) {}

UpstreamPool::UpstreamPool(io::Loop& loop, std::uint32_t loop_index, Upstream& upstream,
                           UpstreamMemory& memory, const HttpLimits& response_limits)
    : loop_(loop),
      loop_index_(loop_index),
      upstream_(upstream),
      memory_(memory),
      limits_(response_limits),
      connections_(upstream.config().max_connections),
      idle_(upstream.size()),
      fields_(std::max(response_limits.header_count_max, response_limits.trailer_count_max)),
      turn_(loop_index) {}

UpstreamPool::~UpstreamPool() {
  WEIR_ASSERT(stopped());
}

bool UpstreamPool::open(Exchange& exchange) noexcept {
  WEIR_ASSERT(!exchange.active());
  std::byte* block = memory_.requests.acquire(loop_index_, Access::kOrdinary);
  if (block == nullptr) return false;
  exchange.buffer_ = reinterpret_cast<char*>(block);
  exchange.begin_ = exchange.end_ = exchange.head_bytes_ = 0;
  exchange.attempts_ = 0;
  exchange.endpoint_ = nullptr;
  exchange.request_complete_ = exchange.body_given_ = exchange.response_started_ = false;
  exchange.tunnel_ = exchange.owes_writable_ = false;
  exchange.pool_ = this;
  return true;
}

Result<void, UpstreamFailure> UpstreamPool::start(Exchange& exchange, const Start& start) noexcept {
  WEIR_ASSERT(exchange.pool_ == this && exchange.head_bytes_ > 0);
  const TimePoint limit = loop_.now() + upstream_.patience().overall;
  exchange.plan_ = {
      .method = start.method,
      .framing = start.framing,
      .upgrade = start.upgrade,
      .patient = false,
      .deadline = start.deadline == TimePoint{} ? limit : std::min(limit, start.deadline)};
  exchange.request_complete_ = start.framing == RequestFraming::kNone && !start.upgrade;
  Result<void, UpstreamFailure> started = attempt(exchange);
  if (!started) detach(exchange);
  return started;
}

// One attempt at the next endpoint, and at the ones after it while connecting fails at once.
Result<void, UpstreamFailure> UpstreamPool::attempt(Exchange& exchange) noexcept {
  const auto attempts_max =
      std::min(kAttemptsMax, std::max<std::uint32_t>(2, static_cast<std::uint32_t>(idle_.size())));
  UpstreamFailure why = UpstreamFailure::kNoEndpoint;
  while (exchange.attempts_ < attempts_max) {
    ++exchange.attempts_;
    const std::uint32_t at = upstream_.choose(turn_, loop_.now());
    Endpoint& endpoint = upstream_.at(at);
    UpstreamConnection* connection = idle_[at].back();
    if (connection != nullptr) {
      unpark(*connection);
    } else {
      connection = connect(at, why);
      if (connection == nullptr) {
        endpoint.failures[index_of(why)].fetch_add(1, kRelaxed);
        if (why == UpstreamFailure::kNoConnection) break;
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

UpstreamConnection* UpstreamPool::connect(std::uint32_t endpoint_index,
                                          UpstreamFailure& why) noexcept {
  why = UpstreamFailure::kNoConnection;
  if (stopping_ || !upstream_.try_add_connection()) return nullptr;
  const SlabHandle handle = connections_.acquire(*this, endpoint_index);
  UpstreamConnection* connection = connections_.get(handle);
  if (connection == nullptr) {
    upstream_.drop_connection();
    return nullptr;
  }
  Endpoint& endpoint = upstream_.at(endpoint_index);
  Result<io::Fd, io::IoError> fd = io::connect_to(endpoint.name(), {.keep_alive = true});
  Result<void, io::IoError> opened;
  if (fd) opened = connection->open(std::move(fd).value());
  if (!fd || !opened) {
    why = failure_of(fd ? opened.error() : fd.error());
    endpoint.note_connect_failed(loop_.now());
    connections_.release(handle);
    upstream_.drop_connection();
    return nullptr;
  }
  endpoint.connects.fetch_add(1, kRelaxed);
  endpoint.connections.fetch_add(1, kRelaxed);
  endpoint.connecting.fetch_add(1, kRelaxed);
  return connection;
}

void UpstreamPool::park(UpstreamConnection& connection) noexcept {
  idle_[connection.endpoint_index()].push_back(connection);
  upstream_.at(connection.endpoint_index()).idle.fetch_add(1, kRelaxed);
  ++idle_count_;
  if (idle_count_ <= upstream_.config().max_idle_connections && !stopping_) return;
  // Too many: the one that waited longest at this endpoint goes.
  idle_[connection.endpoint_index()].front()->close();
}

void UpstreamPool::unpark(UpstreamConnection& connection) noexcept {
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
  exchange.begin_ = 0;  // from the first byte of the head again
  const bool in_time = loop_.now() < exchange.plan_.deadline;
  Result<void, UpstreamFailure> again =
      in_time ? attempt(exchange) : Result<void, UpstreamFailure>(unexpected(failure));
  if (again) return;
  const UpstreamFailure told =
      again.error() == UpstreamFailure::kNoEndpoint ? failure : again.error();
  detach(exchange);
  exchange.events_.on_upstream_failed(told);
}

void UpstreamPool::end(Exchange& exchange, UpstreamFailure failure) noexcept {
  Endpoint& endpoint = *exchange.endpoint_;
  endpoint.in_flight.fetch_sub(1, kRelaxed);
  if (failure == UpstreamFailure::kNone) {
    endpoint.answered.fetch_add(1, kRelaxed);
  } else {
    endpoint.failures[index_of(failure)].fetch_add(1, kRelaxed);
  }
  detach(exchange);
}

void UpstreamPool::detach(Exchange& exchange) noexcept {
  exchange.release_buffer();
  exchange.connection_ = nullptr;
  exchange.pool_ = nullptr;
}

void UpstreamPool::stop() noexcept {
  stopping_ = true;
  for (IdleList& list : idle_) {
    while (UpstreamConnection* connection = list.front()) connection->close();
  }
}

}  // namespace weir::inline v0
