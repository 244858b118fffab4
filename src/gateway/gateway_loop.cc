#include "gateway_loop.h"

#include <algorithm>
#include <utility>

#include "weir/experimental/io/clock.h"

#include "forward_head.h"
#include "grpc_call.h"
#include "intent.h"
#include "local_answer.h"
#include "route_answer.h"
#include "websocket_request.h"

namespace weir::inline v0::gateway {

/// The server owns it and calls it; its state is in the loop.
class GatewayLoop::FrontHandler final : public Handler {
 public:
  explicit FrontHandler(GatewayLoop& loop) noexcept : loop_(loop) {}
  bool is_critical(const ServerRequest& request, bool) override {
    return loop_.is_critical(as_in_http1(request));
  }
  void on_headers(ServerStream& stream, const ServerRequest& request) override {
    loop_.on_headers(stream, as_in_http1(request));
  }

 private:
  GatewayLoop& loop_;
};

GatewayLoop::GatewayLoop(GatewayCore& core, io::Loop& loop, std::uint32_t index, const Table& table)
    : core_(core),
      loop_(loop),
      index_(index),
      counters_(*core.counters[index]),
      rng_(core.rng.fork()),
      log_(core.access_log, rng_.fork()),
      path_scratch_(core.sizes.request_head_bytes),
      proxied_(core.sizes.proxied),
      uploads_(core.controller),
      tokens_({.cache_size = core.sizes.token_cache, .counters = counters_.tokens}) {
  constexpr http::HttpLimits kLimits;  // the same numbers of fields for every upstream
  fields_.resize(std::max(kLimits.header_count_max, kLimits.trailer_count_max) +
                 kResponseFieldsAdded);
  expiry_.on_fire(io::Timer::Fired::to<&GatewayLoop::on_expiry>(*this));
  tunnel_timer_.on_fire(io::Timer::Fired::to<&GatewayLoop::on_grace_over>(*this));
  leaving_timer_.on_fire(io::Timer::Fired::to<&GatewayLoop::on_leaving>(*this));
  take(table);
}

std::unique_ptr<Handler> GatewayLoop::make_front_handler() {
  auto front_handler = std::make_unique<FrontHandler>(*this);
  front_handler_ = front_handler.get();
  return front_handler;
}

void GatewayLoop::take(const Table& table) {
  std::vector<std::unique_ptr<LoopUpstream>> before = std::exchange(upstreams_, {});
  for (const std::shared_ptr<ServedUpstream>& one : table.upstreams->all) {
    const auto known = std::find_if(before.begin(), before.end(), [&](const auto& part) {
      return part != nullptr && part->served == one;
    });
    upstreams_.push_back(
        known != before.end()
            ? std::move(*known)
            : std::make_unique<LoopUpstream>(one, LoopUpstream::Setup{.loop = loop_,
                                                                      .loop_index = index_,
                                                                      .memory = core_.memory,
                                                                      .rng = rng_.fork()}));
  }
  for (std::unique_ptr<LoopUpstream>& part : before) {
    if (part == nullptr) continue;
    part->served->requests_left.fetch_add(part->requests);
    leaving_.push_back(std::move(part));
  }
  if (used_ != nullptr) {
    if (!(rules().identity.jwt() == table.rules->identity.jwt())) tokens_.forget();
    used_before_.push_back(std::move(used_));
  }
  std::erase_if(used_before_, [](const auto& used) { return used->requests == 0; });
  used_ = std::make_unique<UsedRules>(UsedRules{.rules = table.rules});
  log_.set_rules(rules().log);
  if (!leaving_.empty()) on_leaving(loop_.now());
}

void GatewayLoop::on_leaving(TimePoint now) {
  constexpr Duration kStep = std::chrono::milliseconds(20);
  for (const auto& part : leaving_) part->leave_further();
  std::erase_if(leaving_, [](const auto& part) { return part->gone(); });
  if (!leaving_.empty()) loop_.arm(leaving_timer_, now + kStep);
}

RouteTable::Match GatewayLoop::match(const ServerRequest& request,
                                     const Caller& caller) const noexcept {
  return rules().routes.match({.meta = request.meta,
                               .headers = *request.headers,
                               .method = request.method,
                               .scheme = scheme_of(caller, request.secure, *request.headers)},
                              path_scratch_);
}

TokenCheck GatewayLoop::token_check() noexcept {
  const bool used = !rules().identity.jwt().keys.empty();
  return {.verifier = tokens_, .now = loop_.now(), .unix_now = used ? io::unix_seconds() : 0};
}

Caller GatewayLoop::caller_of(const ServerRequest& request) const noexcept {
  const TrustTable& trust = rules().trust;
  if (request.client_unknown) return trust.judge_unknown(request.peer, request.peer_certificate);
  return trust.judge(request.peer, *request.headers, request.peer_certificate);
}

bool GatewayLoop::is_critical(const ServerRequest& request) const {
  const Caller caller = caller_of(request);
  const auto [route, ambiguous] = match(request, caller);
  if (route == nullptr || ambiguous) return false;
  return read_intent(*request.headers, caller, *route).priority == Priority::kCritical;
}

void GatewayLoop::on_headers(ServerStream& stream, const ServerRequest& request) {
  counters_.received.add();
  const Caller caller = caller_of(request);
  if (request.method == http::Method::kConnect) {
    return refuse_early(stream, request, caller, GatewayRefusal::kConnect, nullptr);
  }
  const auto [route, ambiguous] = match(request, caller);
  if (route == nullptr || ambiguous) {
    const auto why = ambiguous ? GatewayRefusal::kAmbiguousPath : GatewayRefusal::kNoRoute;
    return refuse_early(stream, request, caller, why, nullptr);
  }
  if (route->config.answer.given()) return answer_here(stream, request, caller, *route);
  LoopUpstream& upstream = *upstreams_[route->upstream];
  if (route->config.max_body > 0 && request.body_length.value_or(0) > route->config.max_body) {
    return refuse_early(stream, request, caller, GatewayRefusal::kBodyTooLarge, &upstream);
  }
  Intent intent = read_intent(*request.headers, caller, *route);
  if (is_grpc(request)) {
    if (!upstream.served->upstream.config().may_speak_http2()) {
      return refuse_early(stream, request, caller, GatewayRefusal::kGrpcNeedsHttp2, &upstream);
    }
    const Result<std::optional<Duration>, GatewayRefusal> timeout =
        read_grpc_timeout(*request.headers);
    if (!timeout) return refuse_early(stream, request, caller, timeout.error(), &upstream);
    intent.grpc_timeout = shorter(*timeout, route->config.overall_timeout);
  }
  const bool critical = intent.priority == Priority::kCritical;
  stream.set_critical(critical);
  const Result<bool, GatewayRefusal> upgrade =
      judge_upgrade(request, route->config, upstream.served->upstream.config());
  if (!upgrade) return refuse_early(stream, request, caller, upgrade.error(), &upstream);
  intent.upgrade = *upgrade;
  if (intent.upgrade && !stream.reserve_tunnel()) {
    if (critical) count_critical_shed();
    return refuse_early(stream, request, caller, GatewayRefusal::kNoTunnel, &upstream);
  }
  const PoolStats& places = proxied_.stats();
  ProxiedRequest* proxied = nullptr;
  if (critical || places.capacity - places.used > core_.sizes.reserved) {
    proxied = proxied_.get(proxied_.acquire(*this, stream, upstream));
  } else {
    ++kept_back_;
  }
  publish_proxied();
  if (proxied == nullptr) {
    if (critical) count_critical_shed();
    return refuse_early(stream, request, caller, GatewayRefusal::kNoPlace, &upstream);
  }
  stream.set_handler(*proxied);
  proxied->begin(request, *route, caller, intent);
}

void GatewayLoop::refuse_early(ServerStream& stream, const ServerRequest& request,
                               const Caller& caller, GatewayRefusal why, LoopUpstream* upstream) {
  const GatewayReason refusal = why;
  std::optional<Duration> hint;
  if (refusal.facts().pushback && upstream != nullptr) hint = retry_hint(upstream->served->scope());
  // Before it is sent, so that a client that has read it finds it counted.
  (upstream != nullptr ? upstream->counters : counters_.none).refused[refusal.index()].add();
  RequestNote note;
  note.take_id(*request.headers, RequestId::draw(rng_).view());
  record_early(note, refusal, upstream);
  LocalAnswer answer = answer_for(refusal, hint);
  answer.request_id = note.request_id();
  send_local(stream, answer, wanted_form(request));
  time_refusal(request.received_at);
  if (!log_.on()) return;
  note.take(request, caller);
  log_.record({.note = note,
               .status = refusal.facts().http,
               .upstream = upstream != nullptr ? upstream->served->name() : std::string_view{},
               .endpoint = {},
               .reason = refusal.name(),
               .aborted = {},
               .total = loop_.now() - request.received_at});
}

void GatewayLoop::record_early(const RequestNote& note, GatewayReason refusal,
                               const LoopUpstream* upstream) noexcept {
  policy::RecordedDecision decision;
  decision.at = core_.recorder.since_start(loop_.now());
  decision.request = core_.recorder.tag_of_request(note.id.view());
  decision.reason = static_cast<std::uint8_t>(refusal.index());
  if (upstream != nullptr) {
    const ScopeId scope = upstream->served->scope();
    const ScopeLoad load = core_.controller.load(scope);
    decision.scope = static_cast<std::uint16_t>(scope);
    decision.limit = load.limit;
    decision.in_flight = load.in_flight;
    decision.waiting = load.waiting;
  }
  record(decision);
}

// Without admission: it costs no more than a refusal would.
void GatewayLoop::answer_here(ServerStream& stream, const ServerRequest& request,
                              const Caller& caller, const Route& route) {
  RequestNote note;
  note.take_id(*request.headers, RequestId::draw(rng_).view());
  const auto status = send_route_answer(
      stream, request, route,
      {.request_id = note.request_id(), .text = path_scratch_, .fields = fields_});
  if (!status) return refuse_early(stream, request, caller, status.error(), nullptr);
  counters_.none.answered[*status / 100 - 1].add();
  if (!log_.on()) return;
  note.take(request, caller);
  note.route = route.index;
  log_.record({.note = note,
               .status = *status,
               .upstream = {},
               .endpoint = {},
               .reason = {},
               .aborted = {},
               .total = loop_.now() - request.received_at});
}

void GatewayLoop::time_refusal(TimePoint from) noexcept {
  counters_.refusal.observe(to_seconds(io::monotonic_now() - from));
}

Duration GatewayLoop::retry_hint(ScopeId scope, Duration advised) noexcept {
  return core_.controller.retry_after(scope, loop_.now(), rng_, advised);
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

void GatewayLoop::short_of_places(const ProxiedRequest& newcomer) {
  uploads_.make_way(newcomer, {.bytes_per_second = core_.sizes.slow_body_rate}, loop_.now());
}

bool GatewayLoop::make_room_for(const ProxiedRequest& newcomer) {
  return received_first_.make_room(newcomer, {.bytes_per_second = core_.sizes.slow_body_rate});
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

void GatewayLoop::drain(Duration grace) noexcept {
  draining_ = true;
  for (ProxiedRequest& proxied : tunnels_) proxied.go_away();
  loop_.arm(tunnel_timer_, loop_.now() + grace);
}

void GatewayLoop::on_grace_over(TimePoint) {
  for (ProxiedRequest& proxied : tunnels_) proxied.cut_tunnel();
}

void GatewayLoop::stop() noexcept {
  loop_.cancel(tunnel_timer_);
  loop_.cancel(expiry_);
  loop_.cancel(leaving_timer_);
  for (const auto& part : upstreams_) part->stop();
  for (const auto& part : leaving_) part->stop();
}

bool GatewayLoop::quiet() const noexcept {
  const auto gone = [](const auto& part) { return part->gone(); };
  return proxied_.stats().used == 0 && std::all_of(upstreams_.begin(), upstreams_.end(), gone) &&
         std::all_of(leaving_.begin(), leaving_.end(), gone);
}

}  // namespace weir::inline v0::gateway
