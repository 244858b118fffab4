#include "client_connection.h"

#include <utility>

#include "weir/base/assert.h"

#include "connect_failure.h"
#include "connection_pool.h"
#include "h2_wire.h"
#include "pool_endpoint.h"
#include "upstream/upstream.h"

namespace weir::inline v0::upstream {
namespace {

constexpr Duration kDiscardTime = std::chrono::seconds(1);

}  // namespace

ClientConnection::ClientConnection(ConnectionPool& pool, PoolEndpoint& endpoint) noexcept
    : pool_(pool),
      endpoint_(endpoint),
      plain_(socket_),
      transport_(&plain_),
      timer_(io::Timer::Fired::to<&ClientConnection::on_timer>(*this)),
      read_again_(io::Callback<>::to<&ClientConnection::on_read_again>(*this)),
      flush_(io::Callback<>::to<&ClientConnection::on_flush>(*this)),
      h1_(*this, pool.limits()) {}

ClientConnection::~ClientConnection() {
  WEIR_ASSERT(h2_ == nullptr);
}

TimePoint ClientConnection::now() noexcept {
  return loop().now();
}

// ---- opening

Result<void, io::IoError> ClientConnection::open(io::Fd fd, Duration timeout) {
  Result<void, io::IoError> opened = socket_.open(pool_.loop(), std::move(fd), *this);
  if (!opened) return opened;
  socket_.watch({.read = false, .write = true});
  pool_.loop().arm(timer_, pool_.loop().now() + timeout);
  retire_at_ = pool_.loop().now() + pool_.draw_age();
  return opened;
}

void ClientConnection::belong_to(ConnectionWaiter& waiter) noexcept {
  waiter_ = &waiter;
  waiter.own = this;
  http1_only_ = true;
}

ConnectionWaiter* ClientConnection::release_waiter() noexcept {
  if (waiter_ != nullptr) waiter_->own = nullptr;
  return std::exchange(waiter_, nullptr);
}

void ClientConnection::on_connected() noexcept {
  const Result<void, io::IoError> connected = socket_.connected();
  if (!connected) return connect_failed(connect_failure(connected.error()));
  const io::TlsContext::Ptr context = pool_.upstream().tls();
  if (context == nullptr) {
    return open_protocol(pool_.upstream().protocol() == Protocol::kHttp2);
  }
  state_ = State::kHandshake;
  tls_.emplace();
  if (!tls_->begin(context, socket_,
                   {.name = endpoint_.shared->host(),
                    .sessions = &endpoint_.sessions,
                    .http1_only = http1_only_})) {
    return connect_failed(UpstreamFailure::kTlsFailed);
  }
  transport_ = &*tls_;
  continue_handshake();
}

void ClientConnection::continue_handshake() noexcept {
  switch (tls_->handshake()) {
    case io::TlsHandshake::kAgain:
      return update_watch();
    case io::TlsHandshake::kFailed:
      return connect_failed(UpstreamFailure::kTlsFailed);
    case io::TlsHandshake::kDone:
      return open_protocol(tls_->stream().protocol() == io::TlsProtocol::kHttp2);
  }
}

void ClientConnection::open_protocol(bool http2) noexcept {
  state_ = State::kOpen;
  --endpoint_.connecting;
  endpoint_.counters.connecting.sub();
  if (!http1_only_) endpoint_.speaks_http2 = http2;
  pool_.loop().cancel(timer_);
  if (http2) {
    h2_ = H2Wire::make(*this, pool_);
    if (h2_ == nullptr) {
      close();
      return pool_.on_no_session(endpoint_);
    }
    endpoint_.multiplexed.push_back(*this);
    update_watch();
    pool_.on_no_streams(*this);  // may close this connection
  } else if (ConnectionWaiter* waiter = release_waiter()) {
    update_watch();
    ConnectionPool& pool = pool_;
    PoolEndpoint& endpoint = endpoint_;
    waiter->on_connection(h1_);
    return pool.on_connected(endpoint);
  } else {
    become_idle();
  }
  pool_.on_connected(endpoint_);
}

void ClientConnection::connect_failed(UpstreamFailure failure) noexcept {
  const std::string_view why = tls_ ? tls_->stream().failure() : std::string_view{};
  PoolEndpoint& endpoint = endpoint_;
  ConnectionPool& pool = pool_;
  if (failure == UpstreamFailure::kTlsFailed) pool_.upstream().note_tls_failure(endpoint, why);
  ConnectionWaiter* const waiter = release_waiter();
  close();
  pool.on_connect_failed(endpoint, failure);
  if (waiter != nullptr) waiter->on_no_connection(failure);
}

// ---- lending

ClientStream* ClientConnection::take_stream() noexcept {
  if (state_ != State::kOpen || retiring_) return nullptr;
  if (h2_ != nullptr) {
    ClientStream* stream = h2_->take_stream();
    if (stream != nullptr && all_hook.linked()) pool_.leave_idle(*this);
    return stream;
  }
  if (!h1_.idle()) return nullptr;
  pool_.loop().cancel(timer_);
  if (all_hook.linked()) pool_.leave_idle(*this);
  return &h1_;
}

bool ClientConnection::has_stream() const noexcept {
  if (state_ != State::kOpen || retiring_) return false;
  return h2_ != nullptr ? h2_->has_stream() : h1_.idle();
}

bool ClientConnection::too_old() const noexcept {
  return retire_at_ <= pool_.loop().now();
}

void ClientConnection::on_stream_over(bool reusable) noexcept {
  if (!reusable || retiring_ || too_old() || pool_.stopping()) return close();
  become_idle();
}

void ClientConnection::become_idle() noexcept {
  update_watch();
  pool_.loop().arm(timer_, pool_.loop().now() + pool_.draw_idle());
  pool_.on_idle(*this);  // may close this connection
}

void ClientConnection::on_streams_free() noexcept {
  if (h2_->empty() && (retiring_ || too_old() || pool_.stopping())) return h2_->shut_down();
  PoolEndpoint& endpoint = endpoint_;
  ConnectionPool& pool = pool_;
  if (h2_->empty()) pool.on_no_streams(*this);  // may close this connection
  pool.on_streams_free(endpoint);
}

void ClientConnection::retire() noexcept {
  retiring_ = true;
  if (closing()) return;
  if (h2_ != nullptr ? h2_->empty() : h1_.idle()) close();
}

void ClientConnection::close_idle() noexcept {
  std::byte stray{};
  const io::IoResult got = transport_->read({&stray, 1});
  if (!got && got.error() == io::IoError::kAgain) return;  // TLS: a ticket, no content
  if (got) endpoint_.counters.strays.add();
  close();
}

bool ClientConnection::still_quiet() noexcept {
  std::byte stray{};
  const io::IoResult got = transport_->read({&stray, 1});
  if (got) endpoint_.counters.strays.add();
  return !got && got.error() == io::IoError::kAgain;
}

void ClientConnection::discard_rest() noexcept {
  update_watch();
  arm(now() + kDiscardTime);
  read_again();
}

void ClientConnection::abandon() noexcept {
  socket_.reset_on_close();
  close(false);
}

void ClientConnection::ping() noexcept {
  if (h2_ != nullptr) h2_->ping();
}

void ClientConnection::close(bool orderly) noexcept {
  if (state_ == State::kClosing) return;
  if (all_hook.linked()) pool_.leave_idle(*this);
  if (open_hook.linked()) endpoint_.multiplexed.remove(*this);
  if (connecting()) {
    --endpoint_.connecting;
    endpoint_.counters.connecting.sub();
  }
  state_ = State::kClosing;
  pool_.loop().cancel(timer_);
  h1_.drop_region();
  if (h2_ != nullptr) std::exchange(h2_, nullptr)->destroy();
  transport_->close(orderly);
  socket_.close(io::Callback<>::to<&ClientConnection::on_closed>(*this));
}

void ClientConnection::on_closed() {
  socket_closed_ = true;
  if (read_again_.queued() || flush_.queued()) return;  // they must run before this is destroyed
  if (tls_) tls_->end();
  pool_.on_gone(*this);
}

// ---- events

void ClientConnection::on_readable() {
  if (state_ == State::kHandshake) return continue_handshake();
  if (h2_ != nullptr) return h2_->on_readable();
  h1_.on_readable();
}

void ClientConnection::on_writable() {
  transport_->on_writable();
  if (state_ == State::kConnecting) return on_connected();
  if (state_ == State::kHandshake) return continue_handshake();
  if (h2_ != nullptr) return h2_->on_writable();
  h1_.on_writable();
  if (!closing()) update_watch();
}

void ClientConnection::on_disconnected() {
  // Reading is off because the client is slow. What the endpoint sent before it disconnected is
  // still in the kernel and is read after resume().
}

void ClientConnection::on_timer(TimePoint now) {
  if (connecting()) return connect_failed(UpstreamFailure::kConnectTimeout);
  if (h2_ != nullptr) return h2_->on_timer(now);
  close();  // idle for long, or the rest of a cancelled response did not come
}

void ClientConnection::update_watch() noexcept {
  if (state_ == State::kClosing) return;
  io::Socket::Interest wanted{.read = true, .write = true};
  if (state_ == State::kOpen) {
    wanted = h2_ != nullptr
                 ? h2_->interest()
                 : io::Socket::Interest{.read = h1_.wants_read(), .write = h1_.wants_write()};
  }
  socket_.watch(transport_->interest(wanted));
}

void ClientConnection::read_again() noexcept {
  update_watch();
  if (!read_again_.queued()) loop().defer(read_again_);
}

void ClientConnection::on_read_again() {
  if (state_ == State::kOpen) return on_readable();
  if (socket_closed_) on_closed();
}

void ClientConnection::flush_later() noexcept {
  if (!flush_.queued()) loop().defer(flush_);
}

void ClientConnection::on_flush() {
  if (h2_ != nullptr) return h2_->on_flush();
  if (socket_closed_) on_closed();
}

void ClientConnection::heard() noexcept {
  endpoint_.shared->heard(now());
  pool_.upstream().note_good(*endpoint_.shared, policy::HealthEvent::kHeard, now());
}

void ClientConnection::arm(TimePoint at) noexcept {
  loop().arm(timer_, at);
}

void ClientConnection::disarm() noexcept {
  loop().cancel(timer_);
}

// ---- memory

char* ClientConnection::acquire_region() noexcept {
  return reinterpret_cast<char*>(pool_.memory().regions.acquire(pool_.loop_index(), access_));
}

void ClientConnection::note_discarded(std::size_t bytes) noexcept {
  pool_.upstream().counters(pool_.loop_index()).discarded_bytes.add(bytes);
}

void ClientConnection::release_region(char* region) noexcept {
  pool_.memory().regions.release(pool_.loop_index(), reinterpret_cast<std::byte*>(region));
}

std::size_t ClientConnection::region_bytes() const noexcept {
  return pool_.memory().regions.block_bytes();
}

std::span<http::HeaderView> ClientConnection::field_storage() noexcept {
  return pool_.field_storage();
}

}  // namespace weir::inline v0::upstream
