#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "weir/base/intrusive_list.h"
#include "weir/base/rng.h"
#include "weir/base/slab.h"
#include "weir/base/time.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/timer.h"
#include "weir/experimental/server/handler.h"
#include "weir/experimental/server/stream.h"

#include "core.h"
#include "loop_upstream.h"
#include "proxied_request.h"
#include "received_first_list.h"
#include "request_log.h"
#include "served_upstream.h"
#include "upload_list.h"
#include "used_rules.h"

namespace weir::inline v0::gateway {

/// The gateway on one loop: reads each head, and holds what the requests of this loop need.
///
/// Thread-safety: its loop's thread. Cost: no allocation per request.
/// Lifetime: must outlive the server on its loop, and be quiet() before destruction.
class GatewayLoop {
 public:
  /// The upstreams of a configuration and the rules that lead to them, by their place in the set.
  struct Table {
    std::shared_ptr<const UpstreamSet> upstreams;
    std::shared_ptr<const Rules> rules;
  };
  GatewayLoop(GatewayCore& core, io::Loop& loop, std::uint32_t index, const Table& table);
  GatewayLoop(const GatewayLoop&) = delete;
  GatewayLoop& operator=(const GatewayLoop&) = delete;

  /// The handler for each new request of this loop.
  [[nodiscard]] std::unique_ptr<Handler> make_front_handler();

  /// From now on, requests use this table. Those in progress finish at their upstream, and then
  /// this loop's part of an upstream that is not in the table ends. Allocates.
  void take(const Table& table);
  /// Tells both sides of each tunnel that the gateway leaves; those that stay are cut after
  /// `grace`.
  void drain(Duration grace) noexcept;
  /// Closes the connections to the upstreams; busy ones after their request.
  void stop() noexcept;
  /// Whether no request of this loop is in progress.
  [[nodiscard]] bool quiet() const noexcept;

  // For ProxiedRequest.
  [[nodiscard]] GatewayCore& core() noexcept { return core_; }
  [[nodiscard]] io::Loop& loop() noexcept { return loop_; }
  [[nodiscard]] TimePoint now() noexcept { return loop_.now(); }
  [[nodiscard]] Rng& rng() noexcept { return rng_; }
  [[nodiscard]] RequestLog& log() noexcept { return log_; }
  [[nodiscard]] const Rules& rules() const noexcept { return *used_->rules; }
  /// The rules of now stay until the use ends.
  [[nodiscard]] RulesUse use_rules() noexcept { return RulesUse(*used_); }
  [[nodiscard]] TokenCheck token_check() noexcept;
  /// For a path that a route rewrites; overwritten by the next match.
  [[nodiscard]] std::span<char> path_scratch() noexcept { return path_scratch_; }
  [[nodiscard]] std::span<ResponseField> field_storage() noexcept { return fields_; }
  [[nodiscard]] Handler& front_handler() noexcept { return *front_handler_; }
  /// A waiter of this loop expires at this time.
  void watch_expiry(TimePoint at) noexcept;
  void release(ProxiedRequest& proxied) noexcept;
  /// Whether requests whose clients have left may keep their places for a short time.
  [[nodiscard]] bool has_spare_places() const noexcept {
    return proxied_.stats().used < proxied_.stats().capacity / 2;
  }
  /// Requests whose bodies are not complete.
  [[nodiscard]] UploadList& uploads() noexcept { return uploads_; }
  using Tunnels = IntrusiveList<ProxiedRequest, &ProxiedRequest::tunnel_hook>;
  [[nodiscard]] Tunnels& tunnels() noexcept { return tunnels_; }
  [[nodiscard]] bool draining() const noexcept { return draining_; }
  /// Requests whose bodies are received before they ask for a place.
  [[nodiscard]] ReceivedFirstList& received_first() noexcept { return received_first_; }
  /// A body found no memory to be received first. False: none ends for it.
  [[nodiscard]] bool make_room_for(const ProxiedRequest& newcomer);
  /// `newcomer` found no place: slow uploads are ended.
  void short_of_places(const ProxiedRequest& newcomer);
  /// The time after which a refused client should try again.
  [[nodiscard]] Duration retry_hint(ScopeId scope, Duration advised = {}) noexcept;
  /// Counts a critical request refused by the gateway itself; admission and server count theirs.
  void count_critical_shed() noexcept { counters_.critical_shed.add(); }
  void record(const policy::RecordedDecision& decision) noexcept {
    core_.recorder.put(index_, decision);
  }
  /// Called after it is sent: records the time since `from`.
  void time_refusal(TimePoint from) noexcept;

 private:
  class FrontHandler;

  [[nodiscard]] RouteTable::Match match(const ServerRequest& request,
                                        const Caller& caller) const noexcept;
  [[nodiscard]] bool is_critical(const ServerRequest& request) const;
  [[nodiscard]] Caller caller_of(const ServerRequest& request) const noexcept;
  void on_headers(ServerStream& stream, const ServerRequest& request);
  void refuse_early(ServerStream& stream, const ServerRequest& request, const Caller& caller,
                    GatewayRefusal why, LoopUpstream* upstream);
  void record_early(const RequestNote& note, GatewayReason refusal,
                    const LoopUpstream* upstream) noexcept;
  void answer_here(ServerStream& stream, const ServerRequest& request, const Caller& caller,
                   const Route& route);
  void on_expiry(TimePoint now);
  void on_leaving(TimePoint now);
  void on_grace_over(TimePoint now);
  void publish_proxied() noexcept;

  GatewayCore& core_;
  io::Loop& loop_;
  const std::uint32_t index_;
  LoopCounters& counters_;
  Rng rng_;
  std::unique_ptr<UsedRules> used_;
  std::vector<std::unique_ptr<UsedRules>>
      used_before_;  // before a reload, while requests need them
  RequestLog log_;
  mutable std::vector<char> path_scratch_;  // match() writes readings of a path here
  Slab<ProxiedRequest> proxied_;
  std::uint64_t kept_back_ = 0;  // ordinary requests refused to keep places for critical ones
  UploadList uploads_;
  TokenVerifier tokens_;
  ReceivedFirstList received_first_;
  std::vector<std::unique_ptr<LoopUpstream>> upstreams_;  // as the rules number them
  std::vector<std::unique_ptr<LoopUpstream>> leaving_;    // not in the table, not gone
  std::vector<ResponseField> fields_;
  io::Timer expiry_;
  io::Timer leaving_timer_;
  io::Timer tunnel_timer_;
  Tunnels tunnels_;
  bool draining_ = false;
  TimePoint expiry_due_{};
  Handler* front_handler_ = nullptr;
};

}  // namespace weir::inline v0::gateway
