#include "gateway_loop.h"

#include <algorithm>

#include "weir/experimental/io/clock.h"

#include "forward_head.h"
#include "intent.h"
#include "local_answer.h"

namespace weir::inline v0::gateway {

/// The server owns it and calls it; its state is in the loop.
class GatewayLoop::FrontHandler final : public Handler {
 public:
  explicit FrontHandler(GatewayLoop& loop) noexcept : loop_(loop) {}
  bool is_critical(const ServerRequest& request, bool) override {
    return loop_.is_critical(request);
  }
  void on_headers(ServerStream& stream, const ServerRequest& request) override {
    loop_.on_headers(stream, request);
  }

 private:
  GatewayLoop& loop_;
};

GatewayLoop::GatewayLoop(GatewayCore& core, io::Loop& loop, std::uint32_t index,
                         std::shared_ptr<const Rules> rules)
    : core_(core),
      loop_(loop),
      counters_(*core.counters[index]),
      rng_(core.rng.fork()),
      rules_(std::move(rules)),
      log_(core.access_log, rng_.fork()),
      proxied_(core.sizes.proxied) {
  std::size_t fields_max = 0;
  for (std::size_t i = 0; i < core.upstreams.size(); ++i) {
    const http::HttpLimits& limits = core.response_limits[i];
    dispatchers_.push_back(std::make_unique<upstream::Dispatcher>(
        upstream::Dispatcher::Setup{.loop = loop,
                                    .loop_index = index,
                                    .upstream = *core.upstreams[i],
                                    .memory = core.memory,
                                    .response_limits = limits,
                                    .rng = rng_.fork()}));
    fields_max = std::max<std::size_t>(fields_max, limits.header_count_max);
    fields_max = std::max<std::size_t>(fields_max, limits.trailer_count_max);
  }
  fields_.resize(fields_max + kResponseFieldsAdded);
  expiry_.on_fire(io::Timer::Fired::to<&GatewayLoop::on_expiry>(*this));
  log_.set_rules(rules_->log);
}

std::unique_ptr<Handler> GatewayLoop::make_front_handler() {
  auto front_handler = std::make_unique<FrontHandler>(*this);
  front_handler_ = front_handler.get();
  return front_handler;
}

void GatewayLoop::set_rules(std::shared_ptr<const Rules> rules) noexcept {
  rules_ = std::move(rules);
  log_.set_rules(rules_->log);
}

bool GatewayLoop::is_critical(const ServerRequest& request) const {
  const Route* route = rules_->routes.match(request.meta, request.method);
  if (route == nullptr) return false;
  const Caller caller =
      rules_->trust.judge(request.peer, *request.headers, request.peer_certificate);
  return read_intent(*request.headers, caller, *route).priority == Priority::kCritical;
}

void GatewayLoop::on_headers(ServerStream& stream, const ServerRequest& request) {
  counters_.received.add();
  const Caller caller =
      rules_->trust.judge(request.peer, *request.headers, request.peer_certificate);
  const std::size_t none = core_.upstreams.size();
  if (request.method == http::Method::kConnect) {
    return refuse_early(stream, request, caller, GatewayRefusal::kConnect, none);
  }
  const Route* route = rules_->routes.match(request.meta, request.method);
  if (route == nullptr) {
    return refuse_early(stream, request, caller, GatewayRefusal::kNoRoute, none);
  }
  if (route->config.max_body > 0 && request.body_length.value_or(0) > route->config.max_body) {
    return refuse_early(stream, request, caller, GatewayRefusal::kBodyTooLarge, route->upstream);
  }
  const Intent intent = read_intent(*request.headers, caller, *route);
  const bool critical = intent.priority == Priority::kCritical;
  stream.set_critical(critical);
  const PoolStats& places = proxied_.stats();
  ProxiedRequest* proxied = nullptr;
  if (critical || places.capacity - places.used > core_.sizes.reserved) {
    proxied = proxied_.get(proxied_.acquire(*this, stream, route->upstream));
  } else {
    ++kept_back_;
  }
  publish_proxied();
  if (proxied == nullptr) {
    if (critical) count_critical_shed();
    return refuse_early(stream, request, caller, GatewayRefusal::kNoPlace, route->upstream);
  }
  stream.set_handler(*proxied);
  proxied->begin(request, *route, caller, intent);
}

void GatewayLoop::refuse_early(ServerStream& stream, const ServerRequest& request,
                               const Caller& caller, GatewayRefusal why, std::size_t upstream) {
  const GatewayReason refusal = why;
  std::optional<Duration> hint;
  if (refusal.facts().pushback) hint = retry_hint(upstream);
  count_refusal(upstream, refusal);
  RequestNote note;
  note.take_id(*request.headers, RequestId::draw(rng_).view());
  LocalAnswer answer = answer_for(refusal, hint);
  answer.request_id = note.request_id();
  send_local(stream, answer, wanted_form(*request.headers));
  time_refusal(request.received_at);
  if (!log_.on()) return;
  note.take(request, caller);
  log_.record(
      {.note = note,
       .status = refusal.facts().http,
       .upstream = upstream < core_.names.size() ? core_.names[upstream] : std::string_view{},
       .endpoint = {},
       .reason = refusal.name(),
       .aborted = {},
       .total = loop_.now() - request.received_at});
}

void GatewayLoop::count_refusal(std::size_t upstream, GatewayReason refusal) noexcept {
  counters(upstream).refused[refusal.index()].add();
}

void GatewayLoop::time_refusal(TimePoint from) noexcept {
  counters_.refusal.observe(to_seconds(io::monotonic_now() - from));
}

Duration GatewayLoop::retry_hint(std::size_t upstream) noexcept {
  return core_.controller.retry_after(core_.scope_of(upstream), loop_.now(), rng_);
}

void GatewayLoop::watch_expiry(TimePoint at) noexcept {
  if (expiry_.armed() && at >= expiry_due_) return;
  expiry_due_ = at;
  loop_.arm(expiry_, at);
}

void GatewayLoop::on_expiry(TimePoint now) {
  core_.controller.expire(now);
  const TimePoint next = core_.controller.next_expiry();
  if (next != TimePoint::max()) watch_expiry(std::max(next, now));
}

// Without this, clients that send bodies slowly, but fast enough for the server, could hold every
// place of an upstream. Of the uploads that are fast enough, only the kLooks oldest are examined.
// After the limit fell, many places may be missing: it ends uploads until the newcomer gets one.
void GatewayLoop::short_of_places(std::uint16_t upstream, const ProxiedRequest& newcomer) {
  constexpr int kLooks = 16;
  const SlowUploadRule slow{.bytes_per_second = core_.sizes.slow_body_rate};
  ProxiedRequest* proxied = uploads_.front();
  for (int looks = 0; proxied != nullptr && looks < kLooks; ++looks) {
    if (proxied == &newcomer || proxied->upstream() != upstream || !proxied->yield_if_slow(slow)) {
      proxied = uploads_.next(*proxied);
      continue;
    }
    if (!newcomer.waits_for_a_permit()) return;
    proxied = uploads_.front();  // ending one may have ended others on its connection
    looks = -1;
  }
}

void GatewayLoop::release(ProxiedRequest& proxied) noexcept {
  proxied_.release(proxied_.handle_of(&proxied));
  publish_proxied();
}

void GatewayLoop::publish_proxied() noexcept {
  const PoolStats& stats = proxied_.stats();
  counters_.proxied.store(static_cast<std::uint32_t>(stats.used), std::memory_order_relaxed);
  counters_.proxied_peak.store(static_cast<std::uint32_t>(stats.peak), std::memory_order_relaxed);
  counters_.proxied_exhausted.store(static_cast<std::uint32_t>(stats.exhausted + kept_back_),
                                    std::memory_order_relaxed);
}

void GatewayLoop::stop() noexcept {
  loop_.cancel(expiry_);
  for (const auto& dispatcher : dispatchers_) dispatcher->stop();
}

bool GatewayLoop::quiet() const noexcept {
  if (proxied_.stats().used != 0) return false;
  return std::all_of(dispatchers_.begin(), dispatchers_.end(),
                     [](const auto& dispatcher) { return dispatcher->stopped(); });
}

}  // namespace weir::inline v0::gateway
