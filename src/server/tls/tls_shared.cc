#include "tls/tls_shared.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"
#include "weir/experimental/io/entropy.h"

namespace weir::inline v0::inline server {

TlsShared::TlsShared(const ServerConfig& config, std::uint32_t loops, io::TlsContext::Ptr made)
    : slots({.count = config.handshake_slots,
             .reserved = config.reserved_handshakes,
             .loops = loops,
             .waiting_max = std::max(config.max_connections / kQueuedPart, 1U)},
            {.least = std::min(policy::HandshakeRule{}.least, config.stall_grace),
             .most = config.stall_grace}),
      secret_{io::random_seed(), io::random_seed()},
      context_(std::move(made)),
      entries_(config.max_connections) {}

io::TlsContext::Ptr TlsShared::context() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

void TlsShared::set_context(io::TlsContext::Ptr made) {
  const std::lock_guard lock(mutex_);
  context_.swap(made);  // the old one is freed after the lock, or with its last connection
}

TlsEntry& TlsShared::acquire(Connection& connection, LoopShard& shard) {
  const std::lock_guard lock(mutex_);
  TlsEntry* entry = entries_.get(entries_.acquire(connection, shard));
  WEIR_ASSERT(entry != nullptr);  // there is one per connection
  return *entry;
}

void TlsShared::release(TlsEntry& entry) {
  const std::lock_guard lock(mutex_);
  entries_.release(entries_.handle_of(&entry));
}

}  // namespace weir::inline v0::inline server
