#pragma once

#include <cstdint>
#include <mutex>

#include "weir/base/siphash.h"
#include "weir/base/slab.h"
#include "weir/experimental/server/server_config.h"

#include "io/tls_context.h"
#include "source_table.h"
#include "tls/handshake_slots.h"
#include "tls/tls_entry.h"

namespace weir::inline v0::inline server {

/// The TLS state that all loops share: certificates, handshake slots.
///
/// Thread-safety: any thread. Cost: a mutex pair, when a connection opens, does its handshake or
/// closes.
struct TlsShared {
  TlsShared(const ServerConfig& config, std::uint32_t loops, io::TlsContext::Ptr made);

  /// The TLS context for new handshakes.
  [[nodiscard]] io::TlsContext::Ptr context() const;
  void set_context(io::TlsContext::Ptr made);

  /// A keyed hash of the source; zero for a socket without one.
  [[nodiscard]] std::uint64_t source_of(const io::Address& peer) const noexcept {
    return source_hash(secret_, peer);
  }
  [[nodiscard]] TlsEntry& acquire(Connection& connection, LoopShard& shard);
  void release(TlsEntry& entry);

  /// Of the connections, one in so many may be queued for a slot: others need places, too.
  static constexpr std::uint32_t kQueuedPart = 4;

  HandshakeSlots slots;

 private:
  const SipKey secret_;
  mutable std::mutex mutex_;
  io::TlsContext::Ptr context_;
  Slab<TlsEntry> entries_;
};

}  // namespace weir::inline v0::inline server
