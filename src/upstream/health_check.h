#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "weir/base/time.h"
#include "weir/experimental/io/socket.h"
#include "weir/experimental/upstream/health_check_config.h"

#include "policy/check_schedule.h"
#include "upstream/call.h"

namespace weir::inline v0::upstream {

class Dispatcher;
struct PoolEndpoint;

/// The active check of one endpoint: an HTTP or gRPC call over the pool's own connections (so it
/// uses the protocol and the TLS settings of requests), or a TCP connect of its own.
///
/// Promises: at most one check is outstanding. The result goes to the endpoint's state machine.
/// Thread-safety: the first loop's thread. Lifetime: idle() before destruction; stop() first.
class HealthCheck final : private CallEvents, private io::SocketEvents {
 public:
  HealthCheck(Dispatcher& dispatcher, PoolEndpoint& endpoint, const HealthCheckConfig& config);
  HealthCheck(const HealthCheck&) = delete;
  HealthCheck& operator=(const HealthCheck&) = delete;
  ~HealthCheck();

  /// Starts a check if one is due, and ends one that takes too long.
  void tick(TimePoint now);
  /// Gives up the outstanding check. idle() follows.
  void stop() noexcept;
  [[nodiscard]] bool idle() const noexcept { return !call_.active() && !closing_; }
  [[nodiscard]] PoolEndpoint& endpoint() const noexcept { return endpoint_; }

 private:
  bool on_upstream_interim(const ResponseHead&) override { return false; }
  bool on_upstream_head(const ResponseHead& head) override;
  std::size_t on_upstream_body(std::string_view bytes) override;
  bool on_upstream_trailers(const http::HeaderList&) override { return true; }
  void on_upstream_complete() override;
  void on_upstream_received() override {}
  void on_upstream_blocked() override {}
  void on_upstream_writable() override;
  void on_upstream_failed(UpstreamFailure failure) override;
  void on_upstream_held() override {}
  bool may_leave_hold() override { return true; }
  void on_readable() override {}
  void on_writable() override;
  void on_disconnected() override {}
  void on_closed() { closing_ = false; }

  void start(TimePoint now);
  void start_call(TimePoint now);
  void start_connect();
  void send_body();
  void finish(bool passed, bool drain = false);

  Dispatcher& dispatcher_;
  PoolEndpoint& endpoint_;
  const HealthCheckConfig& config_;
  policy::CheckSchedule schedule_;
  Call call_;
  io::Socket socket_;
  TimePoint started_at_{};
  std::string body_;  // of the gRPC answer, at most a few bytes
  unsigned status_ = 0;
  bool body_due_ = false;
  bool closing_ = false;
  bool suspect_ = false;
};

}  // namespace weir::inline v0::upstream
