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
#include "proxied_request.h"
#include "request_log.h"
#include "rules.h"
#include "upstream/dispatcher.h"

namespace weir::inline v0::gateway {

/// The gateway on one loop: reads each head, and holds what the requests of this loop need.
///
/// Thread-safety: its loop's thread. Cost: no allocation per request.
/// Lifetime: must outlive the server on its loop, and be quiet() before destruction.
class GatewayLoop {
 public:
  GatewayLoop(GatewayCore& core, io::Loop& loop, std::uint32_t index,
              std::shared_ptr<const Rules> rules);
  GatewayLoop(const GatewayLoop&) = delete;
  GatewayLoop& operator=(const GatewayLoop&) = delete;

  /// The handler for each new request of this loop.
  [[nodiscard]] std::unique_ptr<Handler> make_front_handler();

  void set_rules(std::shared_ptr<const Rules> rules) noexcept;
  /// Closes the connections to the upstreams; busy ones after their request.
  void stop() noexcept;
  /// Whether no request of this loop is in progress.
  [[nodiscard]] bool quiet() const noexcept;

  // For ProxiedRequest.
  [[nodiscard]] GatewayCore& core() noexcept { return core_; }
  [[nodiscard]] io::Loop& loop() noexcept { return loop_; }
  [[nodiscard]] TimePoint now() noexcept { return loop_.now(); }
  [[nodiscard]] Rng& rng() noexcept { return rng_; }
  [[nodiscard]] upstream::Dispatcher& dispatcher(std::size_t upstream) noexcept {
    return *dispatchers_[upstream];
  }
  [[nodiscard]] UpstreamCounters& counters(std::size_t upstream) noexcept {
    return *counters_.upstreams[upstream];
  }
  [[nodiscard]] RequestLog& log() noexcept { return log_; }
  [[nodiscard]] const Rules& rules() const noexcept { return *rules_; }
  [[nodiscard]] std::span<ResponseField> field_storage() noexcept { return fields_; }
  [[nodiscard]] Handler& front_handler() noexcept { return *front_handler_; }
  /// A waiter of this loop expires at this time.
  void watch_expiry(TimePoint at) noexcept;
  void release(ProxiedRequest& proxied) noexcept;
  /// Requests whose bodies are not complete, oldest first.
  using Uploads = IntrusiveList<ProxiedRequest, &ProxiedRequest::upload_hook>;
  [[nodiscard]] Uploads& uploads() noexcept { return uploads_; }
  /// `newcomer` found no place: the oldest slow upload is ended.
  void short_of_places(std::uint16_t upstream, const ProxiedRequest& newcomer);
  /// The time after which a refused client should try again.
  [[nodiscard]] Duration retry_hint(std::size_t upstream) noexcept;
  /// Counts a critical request refused by the gateway itself; admission and server count theirs.
  void count_critical_shed() noexcept { counters_.critical_shed.add(); }
  /// Called before a refusal is sent, so that a client that has read it finds it counted.
  void count_refusal(std::size_t upstream, GatewayReason refusal) noexcept;
  /// Called after it is sent: records the time since `from`.
  void time_refusal(TimePoint from) noexcept;

 private:
  class FrontHandler;

  [[nodiscard]] bool is_critical(const ServerRequest& request) const;
  void on_headers(ServerStream& stream, const ServerRequest& request);
  void refuse_early(ServerStream& stream, const ServerRequest& request, const Caller& caller,
                    GatewayRefusal why, std::size_t upstream);
  void on_expiry(TimePoint now);
  void publish_proxied() noexcept;

  GatewayCore& core_;
  io::Loop& loop_;
  LoopCounters& counters_;
  Rng rng_;
  std::shared_ptr<const Rules> rules_;
  RequestLog log_;
  Slab<ProxiedRequest> proxied_;
  std::uint64_t kept_back_ = 0;  // ordinary requests refused to keep places for critical ones
  Uploads uploads_;
  std::vector<std::unique_ptr<upstream::Dispatcher>> dispatchers_;
  std::vector<ResponseField> fields_;
  io::Timer expiry_;
  TimePoint expiry_due_{};
  Handler* front_handler_ = nullptr;
};

}  // namespace weir::inline v0::gateway
