#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/config_error.h"
#include "weir/base/result.h"
#include "weir/base/rng.h"
#include "weir/base/slab.h"
#include "weir/experimental/client/client.h"
#include "weir/experimental/http/limits.h"
#include "weir/experimental/io/loop_threads.h"

#include "client_call.h"
#include "client_loop.h"
#include "io/dns_resolver.h"
#include "policy/overload_retry.h"
#include "upstream/discovery/discovery.h"
#include "upstream/upstream.h"
#include "upstream/upstream_memory.h"

namespace weir::inline v0::inline client {

/// What all loops of a client share: the upstream and its memory, the places of requests, and the
/// threads.
///
/// Places are counted under one lock, so a bound is compared and taken in one step, and a request
/// that is accepted is on its way to its loop before close() can begin.
/// Thread-safety: any member, any thread, except build(). Lifetime: close() before destruction.
class ClientCore {
 public:
  struct Setup {
    ClientConfig config;
    upstream::UpstreamConfig upstream;
    io::TlsContext::Ptr tls{};
  };
  explicit ClientCore(const Setup& setup);
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;
  ~ClientCore();

  /// Starts the threads and waits until endpoints are known, or their sources have had their time.
  void build();
  /// Accepts the request, which it moves from then only; otherwise says why not.
  [[nodiscard]] Result<QueueAdvice, ClientError> send(ClientRequest& request,
                                                      Client::OnAnswer& on_answer);
  /// The deadline of a request that is sent now.
  [[nodiscard]] TimePoint deadline_of(const ClientRequest& request, TimePoint now) const noexcept;
  /// How long to wait before a request that was refused here is offered again; nullopt: not at all.
  [[nodiscard]] std::optional<Duration> wait_after(const ClientError& refusal,
                                                   std::uint32_t retries, Duration deadline_left);
  bool close(Duration at_most);
  [[nodiscard]] ClientStats stats();
  /// Whether this is a thread of the client, which must not wait for an answer.
  [[nodiscard]] bool in_own_thread() const noexcept;

  // For loops and requests.
  [[nodiscard]] const ClientConfig& config() const noexcept { return config_; }
  [[nodiscard]] std::string_view authority() const noexcept { return authority_; }
  [[nodiscard]] upstream::Upstream& upstream() noexcept { return *upstream_; }
  [[nodiscard]] upstream::UpstreamMemory& memory() noexcept { return memory_; }
  [[nodiscard]] const http::HttpLimits& response_limits() const noexcept { return limits_; }
  [[nodiscard]] QueueAdvice advice() const;
  void note_answer(bool overloaded) noexcept;
  void note_retry() noexcept { retries_.fetch_add(1, std::memory_order_relaxed); }
  void release(ClientCall& call, bool answered);

 private:
  void find_endpoints();
  void on_tick(TimePoint now);
  [[nodiscard]] bool idle() const;
  void wait_until_idle(TimePoint end) const;
  // Under mutex_:
  [[nodiscard]] std::optional<ClientError> refusal(Priority priority);
  [[nodiscard]] ClientLoop& least_loaded() noexcept;
  void judge() noexcept;
  [[nodiscard]] QueueAdvice advice_now() const noexcept;

  const ClientConfig config_;
  const std::string authority_;
  http::HttpLimits limits_;
  Rng rng_;
  upstream::UpstreamMemory memory_;
  std::unique_ptr<upstream::Upstream> upstream_;
  std::unique_ptr<io::LoopThreads> threads_;
  std::vector<std::unique_ptr<ClientLoop>> loops_;
  std::unique_ptr<io::DnsResolver> resolver_;
  std::unique_ptr<upstream::Discovery> discovery_;
  io::Timer tick_;                     // on the first loop
  policy::OverloadedAnswers answers_;  // on the first loop
  std::atomic<std::uint32_t> good_{0};
  std::atomic<std::uint32_t> overloaded_{0};
  std::atomic<bool> answers_overloaded_{false};
  std::atomic<std::uint64_t> retries_{0};

  std::mutex close_mutex_;  // one close() at a time
  bool closed_all_ = false;
  bool drained_ = true;

  mutable std::mutex mutex_;
  Slab<ClientCall> calls_;           // under mutex_, as all below
  std::vector<std::uint32_t> load_;  // requests of each loop
  std::uint32_t ordinary_ = 0;
  std::uint32_t critical_ = 0;
  policy::OutgoingState state_ = policy::OutgoingState::kHealthy;
  bool closed_ = false;
  Rng refusal_rng_;
  ClientStats counted_;
};

}  // namespace weir::inline v0::inline client
