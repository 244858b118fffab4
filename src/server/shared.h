#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/slab.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/server/close_reason.h"
#include "weir/experimental/server/server.h"
#include "weir/experimental/server/server_config.h"
#include "weir/policy/pressure.h"

#include "connection.h"
#include "h2/h2_body_lease.h"
#include "h2/h2_stream.h"
#include "http/h2/session_kit.h"
#include "http/proxy_header.h"
#include "io/client_hello.h"
#include "memory/arena_pool.h"
#include "memory/read_regions.h"
#include "memory/write_pool.h"
#include "source_table.h"
#include "stream_places.h"

namespace weir::inline v0::inline server {

class LoopShard;
struct TlsShared;

/// The places for connections, of all loops.
///
/// Promises: non-critical connections leave `reserved` places to critical ones. After want(), the
/// task is posted when a place becomes free.
/// Thread-safety: any thread. Cost: a mutex pair, when a connection opens or closes.
class ConnectionTable {
 public:
  struct Shape {
    std::uint32_t count = 0;
    std::uint32_t reserved = 0;
    std::uint32_t per_source_max = 0;  // 0: sources are not counted
  };
  explicit ConnectionTable(const Shape& shape);

  /// A place, or why there is none. Critical connections are not counted for their source, and
  /// those whose PROXY header is still to come not until announce().
  [[nodiscard]] Result<Connection*, RefuseReason> acquire(LoopShard& shard,
                                                          const Connection::Arrival& arrival);
  /// Counts the connection for the source that its PROXY header names. False: that has its most.
  [[nodiscard]] bool announce(Connection& connection, const io::Address& client);
  void release(Connection& connection);
  [[nodiscard]] bool has_room(bool critical) const;

  /// Posts `freed` to `on`, once, when the next place becomes free.
  void want(io::Loop& on, io::Task& freed);
  void unwant();
  [[nodiscard]] PoolStats stats() const;

 private:
  const std::uint32_t reserved_;
  mutable std::mutex mutex_;
  Slab<Connection> slab_;
  std::optional<SourceTable> sources_;
  std::uint64_t refused_for_reserve_ = 0;
  io::Loop* waiting_loop_ = nullptr;
  io::Task* waiting_task_ = nullptr;
};

/// What all loops of one server share: the configuration, and every bound.
struct ServerShared {
  /// Of a stage buffer: it holds any PROXY header, and the ClientHello after it moves up.
  static constexpr std::size_t kStageBytes = io::kClientHelloStage;
  static_assert(kStageBytes > http::kProxyHeaderBytesMax);

  ServerShared(const ServerConfig& given, std::uint32_t loops);
  ~ServerShared();

  const ServerConfig config;
  const std::uint32_t loop_count;
  const std::uint32_t write_quota;  // buffers that one connection may hold

  RegionPool regions;
  std::unique_ptr<RegionPool> stages;  // if config.uses_stages(): one per connection
  WritePool writes;
  ArenaPool arenas;
  std::unique_ptr<TlsShared> tls;  // if there is a TLS listener; made before start
  ConnectionTable connections;
  ProxySenders proxy_senders;  // set before start

  // HTTP/2.
  const http::h2::SessionKit h2_kit;
  const BodyLease::Shape lease_shape;
  io::SharedBlocks h2_sessions;
  io::SharedBlocks body_leases;
  StreamPlaces streams;     // of every protocol
  StreamPlaces tunnels;     // of those streams
  StreamPlaces h2_tunnels;  // of those tunnels
  H2StreamPool h2_streams;

  std::vector<LoopShard*> shards;  // filled before start
  std::atomic<std::uint64_t> next_stream_id{1};
  std::atomic<std::uint32_t> backpressured{0};  // connections, of all loops
  std::atomic<PressureLevel> level{PressureLevel::kNormal};
  std::atomic<bool> draining{false};
  std::atomic<std::int64_t> idle_until_ns{0};  // while draining: idle connections stay until then
  std::atomic<bool> collecting{false};         // a loop collects write buffers for one connection
};

/// The current state of the pools and lists of all loops.
/// Thread-safety: any thread. Cost: three mutex pairs and a few loads per loop.
[[nodiscard]] PressureState collect_pressure(const ServerShared& shared, TimePoint now) noexcept;

/// evaluate_pressure() of that state; also publishes the level.
PressureDecision judge_pressure(ServerShared& shared, TimePoint now) noexcept;

}  // namespace weir::inline v0::inline server
