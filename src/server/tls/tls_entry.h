#pragma once

#include <cstdint>

#include "weir/base/time.h"
#include "weir/experimental/server/handshake_result.h"

#include "io/tls_transport.h"
#include "session.h"
#include "tls/handshake_slots.h"

namespace weir::inline v0::inline server {

class Connection;
class LoopShard;

/// The first session of a connection to a TLS listener: from its first byte to the end of the
/// handshake. Then the HTTP session begins.
///
///   state     meaning                          holds                     ends with
///   kHello    the ClientHello is incomplete    a stage buffer of 2 KB    its end, or enough of it
///   kWaiting  all handshake slots are taken    the stage buffer          a slot
///   kShaking  the handshake                    a slot, a TLS object      its end
///   kOver     it failed, or was never TLS      nothing
///
/// All states have one deadline, counted from the accept. While others wait for a slot, a handshake
/// that waits for its client may lose its slot before; bytes that have come are read first. A
/// client that sends plain HTTP gets an HTTP answer that says so; a failed handshake gets its TLS
/// alert.
class TlsEntry final : public Session, private HandshakeSlots::Entrant {
 public:
  TlsEntry(Connection& connection, LoopShard& shard) noexcept;
  TlsEntry(const TlsEntry&) = delete;
  TlsEntry& operator=(const TlsEntry&) = delete;
  ~TlsEntry() override = default;

  bool advance(TimePoint now) override;
  bool on_flushed(TimePoint) override { return false; }
  void on_end_of_input(TimePoint now) override;
  void on_disconnected(TimePoint now) override { on_end_of_input(now); }
  void end_streams(CloseReason reason) override;
  bool wants_input() const noexcept override {
    return state_ == State::kHello || state_ == State::kShaking;
  }
  /// A connection with an incomplete ClientHello counts as idle under pressure.
  bool idle() const noexcept override { return state_ == State::kHello; }
  bool unused() const noexcept override { return true; }
  bool critical() const noexcept override;
  bool wants_room() const noexcept override { return false; }
  TimePoint deadline() const noexcept override;
  void on_deadline(TimePoint now) override;
  void on_drain() override;

  [[nodiscard]] io::TlsTransport& transport() noexcept { return transport_; }

 private:
  enum class State : std::uint8_t { kHello, kWaiting, kShaking, kOver };

  void on_slot() override;
  void on_lost() override;
  [[nodiscard]] bool read_hello();
  [[nodiscard]] bool begin();
  [[nodiscard]] bool shake();
  void refuse_cleartext();
  void fail_handshake();
  void lose_slot();
  void lose_place();
  void over(HandshakeResult result) noexcept;

  Connection& connection_;
  LoopShard& shard_;
  io::TlsTransport transport_;
  State state_ = State::kHello;
  bool granted_ = false;
  bool lost_ = false;
};

}  // namespace weir::inline v0::inline server
