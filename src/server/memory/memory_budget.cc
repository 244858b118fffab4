#include "weir/experimental/server/memory_budget.h"

#include "weir/experimental/io/loop_threads.h"

#include "acceptor.h"
#include "connection.h"
#include "h2/h2_session.h"
#include "shard.h"
#include "tls/tls_shared.h"

namespace weir::inline v0::inline server {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMega = 1024 * 1024;

std::uint64_t total(const std::vector<MemoryAddend>& addends) {
  std::uint64_t sum = 0;
  for (const MemoryAddend& addend : addends) sum += addend.bytes();
  return sum;
}

std::uint64_t loops_of(const ServerConfig& config) {
  return config.loops == 0 ? io::usable_cores() : config.loops;
}

// What a pool needs for a block in addition to its bytes: an entry in the free list, a mark.
constexpr std::uint64_t kBlockLink = sizeof(std::uint32_t) + sizeof(bool);
// The same for a pool of all loops, plus an entry in every loop's ring of assigned blocks.
std::uint64_t shared_link(std::uint64_t loops) {
  return kBlockLink + loops * sizeof(std::byte*);
}

// The stack memory that a loop's thread touches: 20 to 28 KB with HTTP/2 and TLS handshakes,
// measured (stack_use_test.cc, ceiling_test.cc). Handlers of other programs may need more.
constexpr std::uint64_t kStackBytes = 64 * 1024;
// Page tables are allocated in pages: one for each separate mapping (pools, tables, stacks, the
// allocator's arena of each thread) and one more where it crosses a 2 MB boundary.
constexpr std::uint64_t kPoolMappings = 16;
constexpr std::uint64_t kLoopMappings = 4;

// Code, relocations, allocator, C library, without any server: 3 MB in a program with only the
// server (ceiling_test.cc), 3.6 MB with TLS in use; 5.3 MB in the example server, 7 MB in the
// gateway, measured while they serve. Resident code is shared and could be dropped; it is included
// because the kernel counts it.
constexpr std::uint64_t kFixedBytes = 12 * kMega;

// Each thread that uses OpenSSL keeps freed buffers for its next use (io/tls_memory.cc).
constexpr std::uint64_t kTlsThread = 3 * kMega + kMega / 4;

}  // namespace

std::uint64_t MemoryBudget::total_bytes() const noexcept {
  return total(addends);
}

std::uint64_t MemoryBudget::kernel_bytes() const noexcept {
  return total(kernel);
}

std::uint64_t tls_memory_bytes(const ServerConfig& c) {
  if (!c.tls.enabled()) return 0;
  if (c.tls.memory_budget > 0) return c.tls.memory_budget;
  // In addition to the memory at rest: two record buffers per connection. They are 36 KB and fit
  // into the option's minimum together with the margin of an idle connection.
  return c.tls_memory_least() + std::uint64_t{c.max_connections} * c.conn_encrypted_buf_size +
         (loops_of(c) + 1) * kTlsThread;
}

namespace {

void add(MemoryBudget& budget, std::string_view holder, std::uint64_t count, std::uint64_t each,
         std::string_view note) {
  budget.addends.push_back({holder, count, each, note});
}

void add_tls(MemoryBudget& budget, const ServerConfig& c) {
  // OpenSSL's objects, its record buffers, what its threads keep; one bound for all.
  add(budget, "TLS library", 1, tls_memory_bytes(c),
      "max_connections × (20 KiB + conn_encrypted_buf_size) + handshake_slots × 112 KiB + fixed");
  // In addition to it: our state per connection.
  add(budget, "TLS connections", c.max_connections, sizeof(TlsEntry) + 2 * sizeof(std::uint32_t),
      "max_connections × one slab place");
}

/// What a connection has sent before OpenSSL or HTTP begins, and the tables of each loop for it.
void add_stages(MemoryBudget& budget, const ServerConfig& c) {
  add(budget, "stages", c.max_connections,
      ServerShared::kStageBytes + kBlockLink +
          loops_of(c) * (sizeof(std::uint32_t) + sizeof(std::uint8_t)),
      "half a ClientHello or PROXY header each");
}

/// HTTP/2: the codec of each session in its own block, the streams of all connections, and body
/// bytes that handlers have not taken yet. The connection window needs no memory: bytes go to a
/// handler or into a lease as they arrive.
void add_http2(MemoryBudget& budget, const ServerConfig& c) {
  const std::uint64_t link = shared_link(loops_of(c));
  add(budget, "http2 sessions", c.http2_sessions(), H2Session::block_bytes(c.http2) + link,
      "http2.sessions_max × http2.session_bytes_max");
  add(budget, "http2 streams", c.streams_max, sizeof(H2Stream) + 2 * sizeof(std::uint32_t),
      "streams_max × one slab place");
  add(budget, "body leases", c.body_lease_pool_size,
      std::uint64_t{c.body_lease_size} + c.http2.trailer_list_bytes_max + link,
      "body_lease_pool_size × body_lease_size");
}

/// In addition to ours: memory that the kernel may hold for the sockets.
void add_kernel(MemoryBudget& budget, const ServerConfig& c) {
  // The kernel doubles the given size; if unset, its own maximum for TCP (6 MB, 4 MB) applies.
  const auto kernel = [&](std::string_view holder, std::uint64_t given, std::string_view by,
                          std::uint64_t otherwise, std::string_view unset) {
    budget.kernel.push_back(
        {holder, c.max_connections, given == 0 ? otherwise : 2 * given, given == 0 ? unset : by});
  };
  kernel("receive buffers", c.socket_receive_buffer_size, "2 × socket_receive_buffer_size",
         6 * kMega, "not set: net.ipv4.tcp_rmem");
  kernel("send buffers", c.socket_send_buffer_size, "2 × socket_send_buffer_size", 4 * kMega,
         "not set: net.ipv4.tcp_wmem");
}

}  // namespace

MemoryBudget memory_budget(const ServerConfig& c) {
  const std::uint64_t loops = loops_of(c);
  const std::uint64_t connections = c.max_connections;
  MemoryBudget budget;
  // Received bytes: one region per connection, leased while bytes are pending.
  add(budget, "read regions", connections, c.conn_decrypted_buf_size + kBlockLink,
      "conn_decrypted_buf_size × max_connections");
  // Bytes to be sent: the whole slab, and a descriptor for each buffer.
  add(budget, "write slab", c.tcp_write_buffer_pool_size, c.tcp_write_buffer_size,
      "tcp_write_buffer_pool_size × tcp_write_buffer_size");
  add(budget, "write buffer descriptors", c.tcp_write_buffer_pool_size,
      sizeof(WriteBuffer) + shared_link(loops), "descriptor, free list, mark, hand-over rings");
  if (c.tls.enabled()) add_tls(budget, c);
  if (c.uses_stages()) add_stages(budget, c);
  // Requests that buffer.
  add(budget, "arenas", c.arena_pool_size, c.arena_size + shared_link(loops),
      "arena_pool_size × arena_size");
  // Connection state: socket handle, parser, lists, deadlines, the stream and its arena waiter.
  add(budget, "connections", connections, sizeof(Connection) + 2 * sizeof(std::uint32_t),
      "max_connections × one slab place");
  if (c.http2_enabled) add_http2(budget, c);
  // The pending queue and the backpressure list are links inside connections: no extra memory.
  add(budget, "pending streams", c.pending_stream_pool_size, 0, "links inside connections");
  add(budget, "backpressure list", c.backpressure_list_max, 0, "links inside connections");
  // The number of connections per source, if it is bounded.
  if (c.connections_per_source_max > 0) {
    add(budget, "sources", SourceTable::places_for(c.max_connections), sizeof(SourceTable::Entry),
        "a hash table, at most half full");
  }
  // Sockets without a place, which are answered 503.
  add(budget, "refused connections", RefusedConnections::kPlaces, RefusedConnections::kBytesEach,
      "fixed");
  // Tables per connection and loop: free regions, marks, sockets that are handed over.
  add(budget, "per-loop tables", loops * connections,
      sizeof(std::uint32_t) + sizeof(std::uint8_t) + 2 * sizeof(void*),
      "region stack, marks, arrival ring");
  // What libuv keeps per descriptor: its watcher table.
  add(budget, "watchers", loops * (connections + 256), 2 * sizeof(void*), "libuv, by descriptor");
  // For each loop: shard and loop, header views, and the part of the stack that is touched.
  add(budget, "loops", loops,
      sizeof(LoopShard) + 64 * 1024 +
          std::uint64_t{std::max(c.header_count_max, c.trailer_count_max)} *
              sizeof(http::HeaderView),
      "shard, timer wheel, libuv loop, header views");
  add(budget, "stacks", loops + 1, kStackBytes,
      "touched part of a thread's stack, measured below 32 KB");
  // Page tables for all of the above: 8 bytes a page, rounded up for each mapping.
  const std::uint64_t mapped = total(budget.addends);
  const std::uint64_t rounded = (kPoolMappings + loops * kLoopMappings) * 2 * (kPage / 8);
  add(budget, "page tables", mapped / kPage + rounded, 8, "8 bytes per page");
  add(budget, kFixedHolder, 1, kFixedBytes,
      "binary, libraries, allocator: measured 3 to 7 MB, and room for more");

  add_kernel(budget, c);
  return budget;
}

std::uint64_t worst_case_bytes(const ServerConfig& config) {
  return memory_budget(config).total_bytes();
}

MemoryBudget paper_budget(const ServerConfig& c) {
  MemoryBudget budget;
  const std::uint64_t buffers =
      std::uint64_t{c.conn_encrypted_buf_size} + c.conn_decrypted_buf_size;
  budget.addends = {
      {"per-connection read buffers", c.max_connections, buffers, "encrypted + decrypted"},
      {"write slab", c.tcp_write_buffer_pool_size, c.tcp_write_buffer_size, ""},
      {"stream arenas", c.arena_pool_size, c.arena_size, ""},
      {"pending stream queue", c.pending_stream_pool_size, 1024, "about 1 KB each"},
      {"connection handles", c.max_connections, 2048, "about 2 KB each"},
      {"backpressure list", c.backpressure_list_max, 32, "about 32 bytes each"},
  };
  return budget;
}

}  // namespace weir::inline v0::inline server
