#include "client_core.h"

#include <algorithm>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/assert.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/entropy.h"
#include "weir/experimental/io/thread_parker.h"

#include "client_shape.h"
#include "policy/redundancy_budget.h"
#include "policy/retry_backoff.h"
#include "request_text.h"
#include "upstream/discovery/make_source.h"

namespace weir::inline v0::inline client {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr Duration kLongest = std::chrono::hours(24);

void pause_briefly() {
  io::ThreadParker parker;
  parker.park_until(io::monotonic_now() + std::chrono::milliseconds(1));
}

http::HttpLimits limits_of(const ClientConfig& config) {
  http::HttpLimits limits;
  limits.head_bytes_max = config.response_head_max;
  return limits;
}

}  // namespace

ClientCore::ClientCore(const Setup& setup)
    : config_(setup.config),
      authority_(authority_of(setup.config, setup.upstream)),
      limits_(limits_of(setup.config)),
      rng_(io::random_seed()),
      memory_(memory_shape(setup.config, setup.upstream)),
      upstream_(std::make_unique<upstream::Upstream>(
          upstream::Upstream::Setup{.config = setup.upstream,
                                    .loops = setup.config.loops,
                                    .reserved = ClientConfig::kCriticalMax,
                                    .rng = rng_.fork(),
                                    .observer = nullptr,
                                    .tls = setup.tls},
          std::vector<upstream::DiscoveredEndpoint>{}, io::monotonic_now())),
      tick_(io::Timer::Fired::to<&ClientCore::on_tick>(*this)),
      calls_(ordinary_places(setup.config) + ClientConfig::kCriticalMax),
      load_(setup.config.loops, 0),
      refusal_rng_(rng_.fork()) {
  upstream_->set_hedge(config_.hedge);
}

ClientCore::~ClientCore() {
  close(Duration(0));
}

// ---- begin and end

void ClientCore::build() {
  threads_ = std::make_unique<io::LoopThreads>(
      io::LoopThreads::Options{.count = config_.loops, .pin = false, .name = "weir-client"});
  threads_->start();
  for (std::uint32_t i = 0; i < config_.loops; ++i) {
    // On its own thread: it arms timers, and the loop runs.
    threads_->at(i).call([&] {
      loops_.push_back(std::make_unique<ClientLoop>(
          ClientLoop::Setup{.core = *this,
                            .loop = threads_->at(i),
                            .index = i,
                            .in_flight_max = in_flight_per_loop(config_),
                            .rng = rng_.fork()}));
    });
  }
  find_endpoints();
}

void ClientCore::find_endpoints() {
  io::Loop& first = threads_->at(0);
  first.call([&] {
    discovery_ = std::make_unique<upstream::Discovery>(upstream::Discovery::Setup{
        .loop = first,
        .upstream = *upstream_,
        .resolver = [this, &first]() -> io::DnsResolver& {
          if (!resolver_) resolver_ = std::make_unique<io::DnsResolver>(first, config_.dns);
          return *resolver_;
        },
        .on_error =
            [this](const std::string& source, const std::string& error) {
              if (config_.on_source_error) config_.on_source_error(source, error);
            },
        .rng = rng_.fork()});
    discovery_->set_sources(upstream_->config().endpoints);
    first.arm(tick_, kTick);
  });
  for (bool settled = false; !settled;) {
    first.call([&] { settled = discovery_->settled(); });
    if (!settled) pause_briefly();
  }
}

bool ClientCore::idle() const {
  const std::scoped_lock lock(mutex_);
  return calls_.stats().used == 0;
}

void ClientCore::wait_until_idle(TimePoint end) const {
  while (!idle() && io::monotonic_now() < end) pause_briefly();
}

bool ClientCore::close(Duration at_most) {
  WEIR_ASSERT(!in_own_thread());
  const std::scoped_lock one_at_a_time(close_mutex_);
  if (std::exchange(closed_all_, true) || threads_ == nullptr) return drained_;
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
  }
  wait_until_idle(io::monotonic_now() + std::min(at_most, kLongest));
  drained_ = idle();
  for (std::uint32_t i = 0; i < loops_.size(); ++i) {
    threads_->at(i).call([&] { loops_[i]->close(); });
  }
  for (std::uint32_t i = 0; i < loops_.size(); ++i) {
    for (bool stopped = false; !stopped;) {
      threads_->at(i).call([&] { stopped = loops_[i]->stopped(); });
      if (!stopped) pause_briefly();
    }
  }
  threads_->at(0).call([&] {
    threads_->at(0).cancel(tick_);
    discovery_->stop();
    discovery_.reset();
    resolver_.reset();
  });
  WEIR_ASSERT(idle());
  for (std::uint32_t i = 0; i < loops_.size(); ++i) {
    threads_->at(i).call([&] { loops_[i].reset(); });
  }
  threads_->stop();
  return drained_;
}

bool ClientCore::in_own_thread() const noexcept {
  if (threads_ == nullptr) return false;
  for (std::uint32_t i = 0; i < threads_->size(); ++i) {
    if (threads_->at(i).in_loop_thread()) return true;
  }
  return false;
}

// ---- places

TimePoint ClientCore::deadline_of(const ClientRequest& request, TimePoint now) const noexcept {
  const Duration timeout = request.timeout > Duration(0) ? request.timeout : config_.timeout;
  const TimePoint own = now + std::min(timeout, kLongest);
  return request.deadline == TimePoint{} ? own : std::min(own, request.deadline);
}

Result<QueueAdvice, ClientError> ClientCore::send(ClientRequest& request,
                                                  Client::OnAnswer& on_answer) {
  const std::optional<ClientErrorKind> objection = objection_to(request, config_);
  for (ClientHeader& header : request.headers) header.name = to_lower(header.name);  // for HTTP/2
  const TimePoint deadline = deadline_of(request, io::monotonic_now());
  const std::scoped_lock lock(mutex_);
  const std::optional<ClientError> refused =
      objection ? ClientError{.kind = *objection} : refusal(request.priority);
  if (refused) {
    ++counted_.refused;
    return unexpected(*refused);
  }
  ++counted_.sent;
  ++(request.priority == Priority::kCritical ? critical_ : ordinary_);
  judge();
  ClientLoop& home = least_loaded();
  ClientCall& call =
      *calls_.get(calls_.acquire(home, std::move(request), std::move(on_answer), deadline));
  home.loop().post(call.arrival());
  return advice_now();
}

std::optional<ClientError> ClientCore::refusal(Priority priority) {
  if (closed_) return ClientError{.kind = ClientErrorKind::kClosed};
  const Duration wait = advice_now().delay;
  if (priority == Priority::kCritical) {
    if (critical_ < ClientConfig::kCriticalMax) return std::nullopt;
    return ClientError{.kind = ClientErrorKind::kCriticalFull, .retry_after = wait};
  }
  if (ordinary_ < ordinary_places(config_)) return std::nullopt;
  return ClientError{.kind = ClientErrorKind::kQueueFull, .retry_after = wait};
}

ClientLoop& ClientCore::least_loaded() noexcept {
  const auto least = std::min_element(load_.begin(), load_.end());
  ++*least;
  return *loops_[static_cast<std::size_t>(least - load_.begin())];
}

void ClientCore::release(ClientCall& call, bool answered) {
  const Priority priority = call.priority();
  const std::scoped_lock lock(mutex_);
  --load_[call.home().index()];
  ++(answered ? counted_.answered : counted_.failed);
  --(priority == Priority::kCritical ? critical_ : ordinary_);
  judge();
  calls_.release(calls_.handle_of(&call));
}

/// The state of the queue, as of a queue to one destination. While it is not healthy, or the
/// service reports overload, nothing is hedged.
void ClientCore::judge() noexcept {
  const std::uint32_t in_flight = std::min(ordinary_, config_.max_in_flight);
  state_ = policy::outgoing_state(
      state_, {.primary = ordinary_ - in_flight, .primary_max = config_.queue_max, .bytes_max = 1});
  upstream_->set_overloaded(state_ != policy::OutgoingState::kHealthy ||
                            answers_overloaded_.load(std::memory_order_relaxed));
}

QueueAdvice ClientCore::advice_now() const noexcept {
  return {.state = state_,
          .delay = policy::advice_of(state_, policy::AdviceProfile::kMonotone).delay};
}

QueueAdvice ClientCore::advice() const {
  const std::scoped_lock lock(mutex_);
  return advice_now();
}

std::optional<Duration> ClientCore::wait_after(const ClientError& refusal, std::uint32_t retries,
                                               Duration deadline_left) {
  const std::scoped_lock lock(mutex_);
  const policy::OverloadRetry retry = policy::retry_overloaded(
      {.processed = false,
       .attempts = retries + 1,
       .retries = retries,
       .pushback = policy::Pushback{.stop = false, .wait = refusal.retry_after},
       .deadline_left = deadline_left},
      {}, refusal_rng_);
  return retry.again() ? std::optional(retry.wait) : std::nullopt;
}

// ---- what answers say

void ClientCore::note_answer(bool overloaded) noexcept {
  (overloaded ? overloaded_ : good_).fetch_add(1, std::memory_order_relaxed);
}

void ClientCore::on_tick(TimePoint now) {
  answers_.add({.good = good_.exchange(0), .overloaded = overloaded_.exchange(0)});
  answers_overloaded_.store(answers_.overloaded(), std::memory_order_relaxed);
  if (upstream_->all_failing()) discovery_->refresh();
  {
    const std::scoped_lock lock(mutex_);
    judge();
  }
  threads_->at(0).arm(tick_, now + kTick);
}

ClientStats ClientCore::stats() {
  ClientStats stats;
  {
    const std::scoped_lock lock(mutex_);
    stats = counted_;
    stats.places = ordinary_ + critical_;
    stats.state = state_;
  }
  using Counters = upstream::CallCounters;
  stats.retries = retries_.load(std::memory_order_relaxed);
  stats.hedges = upstream_->sum([](const Counters& c) { return c.hedges.get(); });
  stats.hedges_won = upstream_->sum([](const Counters& c) { return c.hedges_won.get(); });
  stats.budget = upstream_->budget().balance_millitokens() / policy::kRedundancyToken;
  stats.endpoints = static_cast<std::uint32_t>(upstream_->endpoints()->members.size());
  stats.connections = upstream_->connections();
  stats.idle_connections = static_cast<std::uint32_t>(upstream_->idle());
  return stats;
}

}  // namespace weir::inline v0::inline client
