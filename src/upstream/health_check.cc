#include "health_check.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

#include "connection_pool.h"
#include "pool_endpoint.h"
#include "upstream/dispatcher.h"
#include "upstream/upstream.h"

namespace weir::inline v0::upstream {
namespace {

constexpr std::size_t kGrpcPrefixBytes = 5;

policy::CheckScheduleRules schedule_rules(const HealthCheckConfig& config) {
  policy::CheckScheduleRules rules;
  rules.interval = config.interval;
  rules.interval_suspect = std::min(rules.interval_suspect, config.interval);
  return rules;
}

/// HealthCheckRequest in a gRPC frame: field 1 is the service.
std::string grpc_request(std::string_view service) {
  std::string message;
  if (!service.empty()) {
    message += '\x0a';
    message += static_cast<char>(service.size());
    message += service;
  }
  std::string frame(kGrpcPrefixBytes, '\0');
  frame.back() = static_cast<char>(message.size());
  return frame + message;
}

/// HealthCheckResponse: field 1 is 1, SERVING.
bool is_serving(std::string_view body) {
  return body.size() >= kGrpcPrefixBytes && body.substr(kGrpcPrefixBytes) == "\x08\x01";
}

}  // namespace

HealthCheck::HealthCheck(Dispatcher& dispatcher, PoolEndpoint& endpoint,
                         const HealthCheckConfig& config)
    : dispatcher_(dispatcher),
      endpoint_(endpoint),
      config_(config),
      schedule_(dispatcher.now(), schedule_rules(config), dispatcher.rng()),
      call_(*this) {
  Dispatcher::pin(endpoint);
}

HealthCheck::~HealthCheck() {
  WEIR_ASSERT(idle());
  dispatcher_.unpin(endpoint_);
}

void HealthCheck::tick(TimePoint now) {
  const bool suspect = endpoint_.shared->openness() == policy::Openness::kLastResort;
  if (suspect && !std::exchange(suspect_, suspect)) schedule_.hurry(now);
  suspect_ = suspect;
  if (schedule_.outstanding() && now - started_at_ >= config_.timeout) {
    call_.cancel();
    return finish(false);
  }
  if (schedule_.due(now) && idle()) start(now);
}

void HealthCheck::start(TimePoint now) {
  started_at_ = now;
  status_ = 0;
  body_.clear();
  schedule_.sent();
  if (config_.kind == HealthCheckKind::kTcp) return start_connect();
  start_call(now);
}

void HealthCheck::start_call(TimePoint now) {
  const bool grpc = config_.kind == HealthCheckKind::kGrpc;
  const std::string host = !config_.host.empty()               ? config_.host
                           : !endpoint_.shared->host().empty() ? endpoint_.shared->host()
                                                               : std::string("localhost");
  const std::string line = grpc ? "POST /grpc.health.v1.Health/Check HTTP/1.1\r\n"
                                : "GET " + config_.path + " HTTP/1.1\r\n";
  std::string text = line + "host: " + host + "\r\n";
  const std::size_t fields_begin = text.size();
  text += "user-agent: weir\r\n";
  if (grpc) text += "content-type: application/grpc\r\nte: trailers\r\n";
  const std::size_t fields_end = text.size();
  if (grpc) text += "transfer-encoding: chunked\r\n";
  if (!dispatcher_.open(call_)) return finish(true);  // our own shortage says nothing
  if (text.size() > call_.space().size()) {
    call_.cancel();
    return finish(false);
  }
  text.copy(call_.space().data(), text.size());
  const auto u32 = [](std::size_t n) { return static_cast<std::uint32_t>(n); };
  const std::size_t method_size = line.find(' ');
  call_.commit({.text = nullptr,
                .method_size = u32(method_size),
                .path_size = u32(line.rfind(' ') - method_size - 1),
                .authority_begin = u32(line.size() + 6),
                .authority_size = u32(host.size()),
                .fields_begin = u32(fields_begin),
                .fields_end = u32(fields_end),
                .size = u32(text.size()),
                .method = grpc ? http::Method::kPost : http::Method::kGet,
                .framing = grpc ? RequestFraming::kChunked : RequestFraming::kNone,
                .upgrade = false,
                .trailers_accepted = grpc,
                .http2_only = grpc});
  Call::Start start;
  start.overall = config_.timeout;
  start.only = &endpoint_;
  start.priority = Priority::kHigh;  // not behind the requests that it judges for
  static_cast<void>(now);
  if (!call_.start(start)) return finish(false);
  body_due_ = grpc;
  if (grpc && call_.send_body({}, false)) send_body();
}

void HealthCheck::send_body() {
  if (!std::exchange(body_due_, false)) return;
  static_cast<void>(call_.send_body(grpc_request(config_.service), true));
}

void HealthCheck::start_connect() {
  Result<io::Fd, io::IoError> fd = io::connect_to(endpoint_.shared->name(), {});
  if (!fd || !socket_.open(dispatcher_.loop(), std::move(fd).value(), *this)) return finish(false);
  closing_ = true;  // until the socket is closed
  socket_.watch({.read = false, .write = true});
}

void HealthCheck::on_writable() {
  const bool connected = socket_.connected().has_value();
  socket_.close(io::Callback<>::to<&HealthCheck::on_closed>(*this));
  if (schedule_.outstanding()) finish(connected);
}

bool HealthCheck::on_upstream_head(const ResponseHead& head) {
  status_ = head.status;
  return true;
}

std::size_t HealthCheck::on_upstream_body(std::string_view bytes) {
  constexpr std::size_t kKept = 64;
  body_ += bytes.substr(0, kKept - std::min(kKept, body_.size()));
  return bytes.size();
}

void HealthCheck::on_upstream_writable() {
  send_body();
}

void HealthCheck::on_upstream_complete() {
  if (config_.kind == HealthCheckKind::kGrpc) return finish(status_ == 200 && is_serving(body_));
  finish(status_ == config_.expect_status,
         config_.drain_status != 0 && status_ == config_.drain_status);
}

void HealthCheck::on_upstream_failed(UpstreamFailure) {
  finish(false);
}

void HealthCheck::finish(bool passed, bool drain) {
  const TimePoint now = dispatcher_.now();
  schedule_.finished(now, suspect_ && !passed, schedule_rules(config_), dispatcher_.rng());
  Upstream& upstream = dispatcher_.upstream();
  Endpoint& endpoint = *endpoint_.shared;
  if (drain) return upstream.note_health(endpoint, policy::HealthEvent::kEndpointDrain, now);
  if (passed && config_.drain_status != 0) {
    upstream.note_health(endpoint, policy::HealthEvent::kEndpointUndrain, now);
  }
  upstream.note_health(
      endpoint, passed ? policy::HealthEvent::kCheckPassed : policy::HealthEvent::kCheckFailed,
      now);
}

void HealthCheck::stop() noexcept {
  call_.cancel();
  if (socket_.is_open()) socket_.close(io::Callback<>::to<&HealthCheck::on_closed>(*this));
}

}  // namespace weir::inline v0::upstream
