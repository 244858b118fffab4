#include "tls/tls_entry.h"

#include <cstddef>
#include <span>
#include <string_view>

#include "connection.h"
#include "io/client_hello.h"
#include "shard.h"
#include "tls/tls_shared.h"

namespace weir::inline v0::inline server {
namespace {

constexpr std::string_view kSpeaksTls =
    "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 37\r\n"
    "connection: close\r\n\r\n"
    "This port speaks TLS: use https://.\r\n";

/// Every HTTP method and the HTTP/2 preface begin with a capital letter.
bool looks_like_http(std::span<const std::byte> bytes) noexcept {
  const char first = static_cast<char>(bytes.front());
  return first >= 'A' && first <= 'Z';
}

}  // namespace

TlsEntry::TlsEntry(Connection& connection, LoopShard& shard) noexcept
    : Entrant({.loop = shard.index(),
               .source = shard.shared().tls->source_of(connection.peer()),
               .critical = connection.access() == io::Access::kCritical}),
      connection_(connection),
      shard_(shard) {}

bool TlsEntry::advance(TimePoint) {
  if (lost_ && state_ == State::kWaiting) {
    lose_place();
    return false;
  }
  switch (state_) {
    case State::kHello:
      return read_hello();
    case State::kWaiting:
      return granted_ && begin();
    case State::kShaking:
      return shake();
    case State::kOver:
      break;
  }
  return false;
}

bool TlsEntry::read_hello() {
  const std::span<const std::byte> bytes = connection_.input().decrypted();
  if (bytes.empty()) return false;
  switch (io::judge_client_hello(bytes)) {
    case io::ClientHelloStatus::kNeedMore:
      return false;
    case io::ClientHelloStatus::kNotTls:
      over(HandshakeResult::kNotTls);
      refuse_cleartext();
      return true;
    case io::ClientHelloStatus::kReady:
      break;
  }
  if (shard_.shared().tls->slots.enter(*this, shard_.loop().now())) return begin();
  state_ = State::kWaiting;
  return false;
}

void TlsEntry::refuse_cleartext() {
  if (!looks_like_http(connection_.input().decrypted()) ||
      !connection_.output().append_view(kSpeaksTls)) {
    return connection_.fail(CloseReason::kNotTls);
  }
  connection_.finish({.reason = CloseReason::kNotTls, .linger = true});
}

void TlsEntry::on_slot() {
  granted_ = true;
  connection_.schedule();
}

void TlsEntry::on_lost() {
  lost_ = true;
  connection_.schedule();
}

/// Its client had the slot for too long while others waited.
void TlsEntry::lose_slot() {
  over(HandshakeResult::kStalled);
  connection_.fail(CloseReason::kHandshakeTimeout);
}

/// The queue is full, and its source has the most in it.
void TlsEntry::lose_place() {
  shard_.counters().count(RefuseReason::kHandshake);
  over(HandshakeResult::kNoSlot);
  connection_.fail(CloseReason::kHandshakeTimeout);
}

bool TlsEntry::begin() {
  state_ = State::kShaking;
  if (!transport_.begin(shard_.shared().tls->context(), connection_.socket(),
                        connection_.input().decrypted())) {
    over(HandshakeResult::kNoMemory);
    connection_.fail(CloseReason::kHandshake);
    return false;
  }
  connection_.use(transport_);
  return shake();
}

bool TlsEntry::shake() {
  const io::TlsHandshake step = transport_.handshake();
  ConnReadBuf& input = connection_.input();
  const std::size_t staged = input.decrypted().size();
  if (staged > 0) input.consume_decrypted(staged - transport_.stream().staged_left());
  if (step == io::TlsHandshake::kAgain) {
    if (lost_) {
      lose_slot();
    } else {
      shard_.shared().tls->slots.wait_for_client(*this, shard_.loop().now());
    }
    return false;
  }
  // OpenSSL takes the whole stage with its first read; the rest must not be read as HTTP.
  if (step == io::TlsHandshake::kFailed || !input.empty()) {
    fail_handshake();
    return true;
  }
  over(transport_.stream().resumed() ? HandshakeResult::kResumed : HandshakeResult::kFull);
  connection_.begin_http(transport_.stream().protocol());
  return true;
}

void TlsEntry::fail_handshake() {
  const io::IoError why = transport_.stream().failed_by();
  const bool left = why == io::IoError::kEof || why == io::IoError::kReset;
  if (left) {
    over(HandshakeResult::kAborted);
    return connection_.fail(CloseReason::kHandshake);
  }
  over(why == io::IoError::kNoMemory ? HandshakeResult::kNoMemory : HandshakeResult::kFailed);
  // The alert is not received yet: closing with unread bytes would discard it.
  connection_.use_cleartext();
  transport_.end();
  connection_.finish({.reason = CloseReason::kHandshake, .linger = true});
}

/// Counts the result once, and gives back the slot.
void TlsEntry::over(HandshakeResult result) noexcept {
  if (state_ == State::kOver) return;
  state_ = State::kOver;
  ++shard_.counters().handshakes[static_cast<std::size_t>(result)];
  const bool done = result == HandshakeResult::kFull || result == HandshakeResult::kResumed;
  using Left = HandshakeSlots::Left;
  shard_.shared().tls->slots.leave(*this, done ? Left::kDone : Left::kNotDone, shard_.loop().now());
}

bool TlsEntry::critical() const noexcept {
  return connection_.access() == io::Access::kCritical;
}

void TlsEntry::on_end_of_input(TimePoint) {
  over(HandshakeResult::kAborted);
  connection_.fail(CloseReason::kHandshake);
}

TimePoint TlsEntry::deadline() const noexcept {
  if (state_ == State::kOver) return TimePoint::max();
  return connection_.opened_at() + shard_.config().tls.handshake_timeout;
}

void TlsEntry::on_deadline(TimePoint) {
  const bool waited = state_ == State::kWaiting;
  if (waited) {
    shard_.counters().count(RefuseReason::kHandshake);
    if (critical()) ++shard_.counters().critical_shed;
  }
  over(waited ? HandshakeResult::kNoSlot : HandshakeResult::kTimeout);
  connection_.fail(CloseReason::kHandshakeTimeout);
}

void TlsEntry::on_drain() {
  if (state_ == State::kHello && shard_.closes_idle()) connection_.fail(CloseReason::kShutdown);
}

void TlsEntry::end_streams(CloseReason reason) {
  const bool left = reason == CloseReason::kClient || reason == CloseReason::kClientAbort ||
                    reason == CloseReason::kReadError;
  over(left ? HandshakeResult::kAborted : HandshakeResult::kSacrificed);
}

}  // namespace weir::inline v0::inline server
