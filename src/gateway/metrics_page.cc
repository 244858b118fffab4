#include "metrics_page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "weir/experimental/gateway/version.h"
#include "weir/policy/retry_hint.h"

#include "metrics/metric.h"

namespace weir::inline v0::gateway {
namespace {

constexpr std::array<std::string_view, 5> kStatusNames = {"1xx", "2xx", "3xx", "4xx", "5xx"};
constexpr std::array<std::string_view, 4> kOutcomeNames = {"ok", "ignored", "overload", "error"};
constexpr std::string_view kNone = "none";  // no upstream was chosen
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Values read once per scrape and used by several families.
class Scrape {
 public:
  Scrape(const GatewayView& view, TimePoint now, std::span<char> buffer)
      : view_(view), core_(view.core), page_(buffer), server_(view.server_stats()) {
    for (std::size_t i = 0; i < core_.upstreams.size(); ++i) {
      scopes_.push_back(core_.controller.scope_stats(core_.scope_of(i), now));
      totals_.push_back(core_.upstreams[i]->totals());
      sets_.push_back(core_.upstreams[i]->endpoints());
    }
    now_ = now;
  }

  [[nodiscard]] bool write() {
    admission();
    classes();
    actors();
    memory_and_pools();
    connections();
    requests();
    upstreams();
    process();
    return !page_.full();
  }
  [[nodiscard]] std::string_view text() const { return page_.text(); }

 private:
  using Scope = ScopeStats;

  template <class Value>
  void per_scope(metrics::Metric metric, Value value) {
    page_.family(metric);
    for (const Scope& scope : scopes_) page_.sample({scope.name}, value(scope));
  }
  template <class Value>
  void per_class(metrics::Metric metric, Value value) {
    page_.family(metric);
    for (const Scope& scope : scopes_) {
      for (const Priority p : kPriorities) {
        page_.sample({scope.name, name_of(p)}, value(scope.classes[index_of(p)], p));
      }
    }
  }
  /// A sum over the loops' counters of one upstream; the last index means "none".
  template <class Pick>
  [[nodiscard]] std::uint64_t sum(std::size_t upstream, Pick pick) const {
    std::uint64_t total = 0;
    for (const auto& loop : core_.counters) total += pick(*loop->upstreams[upstream]).get();
    return total;
  }
  template <class Pick>
  [[nodiscard]] metrics::HistogramSnapshot merged(std::size_t upstream, Pick pick) const {
    metrics::HistogramSnapshot all = pick(*core_.counters[0]->upstreams[upstream]).snapshot();
    for (std::size_t i = 1; i < core_.counters.size(); ++i) {
      all.merge(pick(*core_.counters[i]->upstreams[upstream]).snapshot());
    }
    return all;
  }
  [[nodiscard]] std::string_view upstream_name(std::size_t index) const {
    return index < core_.names.size() ? std::string_view(core_.names[index]) : kNone;
  }
  struct Connections {
    std::uint64_t open = 0;
    std::uint64_t idle = 0;
    std::uint64_t connecting = 0;
  };
  struct ByState {
    std::string_view state;
    std::uint64_t connections = 0;
  };
  static std::array<ByState, 3> by_state(const Connections& now) {
    const std::uint64_t used = now.open - std::min(now.open, now.idle + now.connecting);
    return {ByState{"idle", now.idle}, {"active", used}, {"connecting", now.connecting}};
  }

  void admission();
  void classes();
  void actors();
  void memory_and_pools();
  void http2();
  void pool(metrics::Metric metric, std::uint64_t PoolStats::*field);
  void connections();
  void tls();
  void requests();
  void upstreams();
  void retries();
  void endpoints();
  void process();

  const GatewayView& view_;
  GatewayCore& core_;
  metrics::MetricsPage page_;
  ServerStats server_;
  std::vector<Scope> scopes_;
  std::vector<upstream::EndpointTotals> totals_;                    // of each upstream
  std::vector<std::shared_ptr<const upstream::EndpointSet>> sets_;  // the same
  TimePoint now_{};
};

void Scrape::admission() {
  page_.family(metrics::Metric::kAdmissionTotal);
  for (const Scope& scope : scopes_) {
    std::uint64_t admitted = 0;
    std::uint64_t shed = 0;
    for (const ClassStats& one : scope.classes) {
      admitted += one.acquired;
      shed += one.shed;
    }
    page_.sample({scope.name, "admitted"}, admitted);
    page_.sample({scope.name, "rejected"}, shed);
  }
  const auto by_reason = [this](metrics::Metric metric, auto counts) {
    page_.family(metric);
    for (const Scope& scope : scopes_) {
      for (std::size_t i = 1; i < kReasonCount; ++i) {
        page_.sample({scope.name, kReasonFacts[i].name}, counts(scope)[i]);
      }
    }
  };
  by_reason(metrics::Metric::kAdmissionRejectedReason, [](const Scope& s) { return s.refused; });
  by_reason(metrics::Metric::kAdmissionShadowRejected,
            [](const Scope& s) { return s.would_refuse; });
  per_scope(metrics::Metric::kAdmissionInFlight, [](const Scope& s) { return s.in_flight; });
  per_scope(metrics::Metric::kAdmissionConcurrencyLimit, [](const Scope& s) { return s.limit; });
  per_scope(metrics::Metric::kAdmissionMinLimit, [](const Scope& s) { return s.limit_min; });
  per_scope(metrics::Metric::kAdmissionLimitAtMax,
            [](const Scope& s) { return s.limit_reason == LimitReason::kAtCeiling ? 1 : 0; });
  const AdmissionConfig config = core_.controller.config();
  page_.single(metrics::Metric::kAdmissionMaxConcurrent, config.max_concurrent);
  page_.single(metrics::Metric::kAdmissionWarnThreshold, config.warn_threshold);
  per_scope(metrics::Metric::kAdmissionWaiting, [](const Scope& s) { return s.waiting; });
  per_scope(metrics::Metric::kAdmissionExpectedWait, [](const Scope& s) {
    const auto wait = expected_wait({.drained_per_second = s.drain_per_second,
                                     .ahead = s.waiting + 1,
                                     .fresh = s.drain_per_second > 0});
    return wait ? to_seconds(*wait) : std::nan("");
  });
  per_scope(metrics::Metric::kAdmissionVegasQueueEstimate,
            [](const Scope& s) { return s.queue_estimate; });
  page_.family(metrics::Metric::kAdmissionLimitChanges);
  for (std::size_t i = 0; i < scopes_.size(); ++i) {
    const OperatorLog::Moves moves = view_.log.moves(i);
    page_.sample({scopes_[i].name, "up"}, moves.up);
    page_.sample({scopes_[i].name, "down"}, moves.down);
  }
  page_.family(metrics::Metric::kAdmissionOutcomes);
  for (std::size_t i = 0; i < scopes_.size(); ++i) {
    for (std::size_t k = 0; k < kOutcomeNames.size(); ++k) {
      page_.sample(
          {scopes_[i].name, kOutcomeNames[k]},
          sum(i, [k](const UpstreamCounters& c) -> const Count& { return c.outcomes[k]; }));
    }
  }
  per_scope(metrics::Metric::kAdmissionState,
            [](const Scope& s) { return static_cast<unsigned>(s.state); });
  per_scope(metrics::Metric::kAdmissionOverloaded,
            [](const Scope& s) { return s.overloaded ? 1U : 0U; });
}

void Scrape::classes() {
  page_.family(metrics::Metric::kAdmissionStanding);
  for (const Scope& scope : scopes_) {
    for (const Priority p : {Priority::kHigh, Priority::kNormal}) {
      page_.sample({scope.name, name_of(p)}, scope.classes[index_of(p)].standing ? 1U : 0U);
    }
  }
  page_.family(metrics::Metric::kAdmissionQueueWait);
  for (const Scope& scope : scopes_) {
    for (const Priority p : {Priority::kHigh, Priority::kNormal}) {
      const WaitHistogram& waited = scope.classes[index_of(p)].waited;
      std::array<double, kWaitBucketsMs.size()> bounds{};
      std::copy(kWaitBucketsMs.begin(), kWaitBucketsMs.end(), bounds.begin());
      page_.sample({scope.name, name_of(p)},
                   metrics::HistogramView{
                       .bounds = bounds, .counts = waited.buckets, .sum = to_millis(waited.sum)});
    }
  }
  per_class(metrics::Metric::kAdmissionPriorityInFlight,
            [](const ClassStats& c, Priority) { return c.in_flight; });
  per_class(metrics::Metric::kAdmissionPriorityAcquired,
            [](const ClassStats& c, Priority) { return c.acquired; });
  per_class(metrics::Metric::kAdmissionPriorityShed,
            [](const ClassStats& c, Priority) { return c.shed; });
  per_class(metrics::Metric::kAdmissionPriorityLimit, [](const ClassStats& c, Priority p) {
    if (p == Priority::kCritical) return kInfinity;
    return static_cast<double>(c.cap == 0 ? c.bound : std::min(c.bound, c.cap));
  });
}

void Scrape::actors() {
  constexpr std::size_t kTop = 10;
  const auto label_of = [](const BudgetRow& row) {
    return row.label.empty() ? "#" + std::to_string(row.id) : row.label;
  };
  const auto rows_in = [&](metrics::Metric metric, const std::vector<BudgetRow>& rows, auto value) {
    page_.family(metric);
    for (const BudgetRow& row : rows) page_.sample({label_of(row)}, value(row));
  };
  const auto in_flight = [](const BudgetRow& row) { return row.in_flight; };
  rows_in(metrics::Metric::kAdmissionPeerInFlight, core_.controller.top_peers(kTop), in_flight);
  std::vector<BudgetRow> actors = core_.controller.top_actors(1000);
  const auto first = [](std::vector<BudgetRow> rows) {
    if (rows.size() > kTop) rows.resize(kTop);
    return rows;
  };
  rows_in(metrics::Metric::kAdmissionActorInFlight, first(actors), in_flight);
  std::stable_sort(actors.begin(), actors.end(),
                   [](const BudgetRow& a, const BudgetRow& b) { return a.bytes > b.bytes; });
  rows_in(metrics::Metric::kAdmissionActorBytes, first(actors),
          [](const BudgetRow& row) { return row.bytes; });
  const AdmissionStats all = core_.controller.stats();
  page_.single(metrics::Metric::kAdmissionActors, all.actors);
  page_.single(metrics::Metric::kAdmissionPeers, all.peers);
  page_.single(metrics::Metric::kAdmissionStreaming, all.streaming);
  page_.single(metrics::Metric::kAdmissionCriticalShed,
               all.critical_shed + server_.critical_shed + totals_of(core_.counters).critical_shed);
  page_.single(metrics::Metric::kAdmissionMemoryUsage, all.memory_usage);
  page_.single(metrics::Metric::kAdmissionMemoryReadable, all.memory_readable ? 1U : 0U);
  const MemoryRules memory = core_.controller.config().memory;
  page_.single(metrics::Metric::kAdmissionMemoryPressureThreshold,
               memory.memory_pressure_threshold);
  page_.single(metrics::Metric::kAdmissionMemoryCriticalThreshold,
               memory.memory_critical_threshold);
  page_.single(metrics::Metric::kAdmissionBytesInFlight, all.bytes);
}

void Scrape::pool(metrics::Metric metric, std::uint64_t PoolStats::*field) {
  page_.family(metric);
  for (const auto& [name, stats] : pools_of(view_, server_)) page_.sample({name}, stats.*field);
}

void Scrape::memory_and_pools() {
  pool(metrics::Metric::kPoolUsed, &PoolStats::used);
  pool(metrics::Metric::kPoolPeak, &PoolStats::peak);
  pool(metrics::Metric::kPoolCapacity, &PoolStats::capacity);
  pool(metrics::Metric::kPoolExhausted, &PoolStats::exhausted);
  page_.single(metrics::Metric::kWriteSlabExhaustion, server_.write_slab_exhaustion_count);
  page_.single(metrics::Metric::kPendingWriteQueueLen, server_.pending_write_queue_len);
  page_.single(metrics::Metric::kPressureLevel, static_cast<unsigned>(server_.pressure));
  page_.single(metrics::Metric::kMemoryCeiling, view_.budget.total_bytes());
}

/// The reasons for which a connection, not a request, is refused.
bool at_accept(RefuseReason reason) noexcept {
  switch (reason) {
    case RefuseReason::kConnections:
    case RefuseReason::kPressure:
    case RefuseReason::kPressureShare:
    case RefuseReason::kNoFds:
    case RefuseReason::kNoMemory:
    case RefuseReason::kHandshake:
    case RefuseReason::kSource:
      return true;
    default:
      return false;
  }
}

void Scrape::connections() {
  page_.single(metrics::Metric::kConnectionsOpen, server_.connections.used);
  page_.single(metrics::Metric::kConnectionsAccepted, server_.accepted);
  const auto refusals = [this](metrics::Metric metric, bool accept) {
    page_.family(metric);
    for (std::size_t i = 0; i < server_.refused.size(); ++i) {
      const auto reason = static_cast<RefuseReason>(i);
      if (at_accept(reason) == accept) page_.sample({name_of(reason)}, server_.refused[i]);
    }
  };
  refusals(metrics::Metric::kConnectionsRefused, true);
  page_.family(metrics::Metric::kConnectionsClosed);
  for (std::size_t i = 1; i < server_.closed.size(); ++i) {
    page_.sample({name_of(static_cast<CloseReason>(i))}, server_.closed[i]);
  }
  tls();
  refusals(metrics::Metric::kServerRefusals, false);
  http2();
}

void Scrape::http2() {
  const auto each = [this](metrics::Metric metric, const auto& names, const auto& counts) {
    page_.family(metric);
    for (std::size_t i = 0; i < counts.size(); ++i) page_.sample({names[i]}, counts[i]);
  };
  page_.single(metrics::Metric::kHttp2Connections, server_.h2_connections);
  each(metrics::Metric::kHttp2Ended, http::h2::kSessionEndNames, server_.h2_ended);
  page_.single(metrics::Metric::kHttp2Goaways, server_.h2_goaways);
  page_.single(metrics::Metric::kHttp2Requests, server_.h2_requests);
  each(metrics::Metric::kHttp2Aborted, kCloseReasonNames, server_.h2_aborted);
  each(metrics::Metric::kHttp2Glitches, http::kH2GlitchNames, server_.h2_glitches);
}

void Scrape::tls() {
  const TlsStats& stats = server_.tls;
  page_.family(metrics::Metric::kTlsHandshakes);
  for (std::size_t i = 0; i < stats.handshakes.size(); ++i) {
    page_.sample({kHandshakeResultNames[i]}, stats.handshakes[i]);
  }
  page_.single(metrics::Metric::kTlsHandshakesWaiting, stats.handshakes_waiting);
  page_.single(metrics::Metric::kTlsKeyUpdatesExceeded, stats.key_updates_exceeded);
  page_.single(metrics::Metric::kTlsMemory, stats.memory_bytes);
  page_.single(metrics::Metric::kTlsMemoryPeak, stats.memory_peak_bytes);
  page_.single(metrics::Metric::kTlsMemoryBudget, stats.memory_budget_bytes);
  page_.single(metrics::Metric::kTlsMemoryRefused, stats.memory_refused);
}

void Scrape::requests() {
  const RequestTotals totals = totals_of(core_.counters);
  const std::size_t count = core_.upstreams.size();
  page_.single(metrics::Metric::kRequestsReceived, totals.received);
  page_.family(metrics::Metric::kRequestsAnswered);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < kStatusNames.size(); ++k) {
      page_.sample(
          {upstream_name(i), kStatusNames[k]},
          sum(i, [k](const UpstreamCounters& c) -> const Count& { return c.answered[k]; }));
    }
  }
  page_.family(metrics::Metric::kRequestsRefused);
  for (std::size_t i = 0; i <= count; ++i) {
    for (std::size_t k = 1; k < GatewayReason::kCount; ++k) {
      page_.sample({upstream_name(i), GatewayReason::at(k).name()},
                   sum(i, [k](const UpstreamCounters& c) -> const Count& { return c.refused[k]; }));
    }
  }
  page_.family(metrics::Metric::kRequestsAborted);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < kEndedByNames.size(); ++k) {
      page_.sample({upstream_name(i), kEndedByNames[k]},
                   sum(i, [k](const UpstreamCounters& c) -> const Count& { return c.aborted[k]; }));
    }
  }
  page_.single(metrics::Metric::kRequestsActive, totals.active());
  page_.family(metrics::Metric::kRequestDuration);
  for (std::size_t i = 0; i < count; ++i) {
    const auto all = merged(
        i, [](const UpstreamCounters& c) -> const metrics::Histogram& { return c.duration; });
    page_.sample({upstream_name(i)}, all.view());
  }
  metrics::HistogramSnapshot refusal = core_.counters[0]->refusal.snapshot();
  for (std::size_t i = 1; i < core_.counters.size(); ++i) {
    refusal.merge(core_.counters[i]->refusal.snapshot());
  }
  page_.family(metrics::Metric::kRefusalDuration);
  page_.sample({}, refusal.view());
}

void Scrape::upstreams() {
  const auto each = [this](metrics::Metric metric, auto value) {
    page_.family(metric);
    for (std::size_t i = 0; i < core_.upstreams.size(); ++i) {
      page_.sample({core_.names[i]}, value(i));
    }
  };
  each(metrics::Metric::kUpstreamAttempts, [&](std::size_t i) { return totals_[i].attempts; });
  each(metrics::Metric::kUpstreamRetries, [&](std::size_t i) { return totals_[i].retries; });
  each(metrics::Metric::kUpstreamConnects, [&](std::size_t i) { return totals_[i].connects; });
  page_.family(metrics::Metric::kUpstreamConnections);
  for (std::size_t i = 0; i < core_.upstreams.size(); ++i) {
    const upstream::EndpointTotals& all = totals_[i];
    for (const ByState& one : by_state({all.connections, all.idle, all.connecting})) {
      page_.sample({core_.names[i], one.state}, one.connections);
    }
  }
  page_.family(metrics::Metric::kUpstreamFailures);
  for (std::size_t i = 0; i < core_.upstreams.size(); ++i) {
    for (std::size_t k = 1; k < upstream::kUpstreamFailureCount; ++k) {
      page_.sample({core_.names[i], upstream::kUpstreamFailureNames[k]}, totals_[i].failures[k]);
    }
  }
  page_.family(metrics::Metric::kUpstreamLatency);
  for (std::size_t i = 0; i < core_.upstreams.size(); ++i) {
    const auto all =
        merged(i, [](const UpstreamCounters& c) -> const metrics::Histogram& { return c.latency; });
    page_.sample({core_.names[i]}, all.view());
  }
  each(metrics::Metric::kUpstreamConnectionQueue,
       [&](std::size_t i) { return core_.upstreams[i]->waiting(); });
  each(metrics::Metric::kUpstreamHeld, [&](std::size_t i) { return core_.upstreams[i]->held(); });
  each(metrics::Metric::kUpstreamHeldTotal, [&](std::size_t i) {
    return core_.upstreams[i]->sum([](const upstream::CallCounters& c) { return c.held.get(); });
  });
  retries();
  endpoints();
}

void Scrape::retries() {
  using upstream::CallCounters;
  page_.family(metrics::Metric::kUpstreamRetryDecisions);
  for (std::size_t i = 0; i < core_.upstreams.size(); ++i) {
    const upstream::Upstream& upstream = *core_.upstreams[i];
    for (std::size_t k = 0; k < policy::kSendAgainReasonCount; ++k) {
      page_.sample({core_.names[i], name_of(static_cast<policy::SendAgainReason>(k))},
                   upstream.sum([k](const CallCounters& c) { return c.decisions[k].get(); }));
    }
    page_.sample({core_.names[i], "budget_empty"},
                 upstream.sum([](const CallCounters& c) { return c.budget_empty.get(); }));
  }
  page_.family(metrics::Metric::kUpstreamRetryBudget);
  for (std::size_t i = 0; i < core_.upstreams.size(); ++i) {
    page_.sample({core_.names[i]}, core_.upstreams[i]->budget().balance_millitokens() / 1000.0);
  }
  using enum policy::HealthReason;
  page_.family(metrics::Metric::kUpstreamEjections);
  for (std::size_t i = 0; i < core_.upstreams.size(); ++i) {
    for (const policy::HealthReason cause :
         {kConnectFailed, kBadAnswers, kSlow, kChecksFailed, kSilent}) {
      page_.sample({core_.names[i], name_of(cause)}, core_.upstreams[i]->ejections(cause));
    }
  }
}

void Scrape::endpoints() {
  const auto each = [this](metrics::Metric metric, auto sample) {
    page_.family(metric);
    for (std::size_t i = 0; i < core_.upstreams.size(); ++i) {
      for (const upstream::EndpointSet::Member& member : sets_[i]->members) {
        sample(core_.names[i], *member.endpoint);
      }
    }
  };
  using upstream::Endpoint;
  using Counters = upstream::EndpointCounters;
  each(metrics::Metric::kEndpointRequests, [this](const std::string& name, const Endpoint& e) {
    for (std::size_t k = 0; k < upstream::kAttemptOutcomeNames.size(); ++k) {
      page_.sample({name, e.label(), upstream::kAttemptOutcomeNames[k]},
                   e.sum([k](const Counters& c) { return c.ended[k].get(); }));
    }
  });
  each(metrics::Metric::kEndpointLatency, [this](const std::string& name, const Endpoint& e) {
    const upstream::LatencySummary latency = e.recent_latency();
    if (latency.samples == 0) return;
    page_.sample({name, e.label(), "50"}, to_seconds(latency.p50));
    page_.sample({name, e.label(), "99"}, to_seconds(latency.p99));
  });
  each(metrics::Metric::kEndpointConnections, [this](const std::string& name, const Endpoint& e) {
    const Connections now{
        .open = e.sum([](const Counters& c) { return c.connections.get(); }),
        .idle = e.sum([](const Counters& c) { return c.idle.get(); }),
        .connecting = e.sum([](const Counters& c) { return c.connecting.get(); })};
    for (const ByState& one : by_state(now)) {
      page_.sample({name, e.label(), one.state}, one.connections);
    }
  });
  each(metrics::Metric::kEndpointUp, [this](const std::string& name, const Endpoint& e) {
    page_.sample({name, e.label()}, e.open() ? 1U : 0U);
  });
  each(metrics::Metric::kEndpointInFlight, [this](const std::string& name, const Endpoint& e) {
    page_.sample({name, e.label()}, e.in_flight());
  });
}

void Scrape::process() {
  page_.family(metrics::Metric::kConfigReloads);
  page_.sample({"ok"}, view_.reloads_ok.load());
  page_.sample({"rejected"}, view_.reloads_refused.load());
  page_.single(metrics::Metric::kDraining, view_.draining.load() ? 1U : 0U);
  page_.single(metrics::Metric::kStartTime, static_cast<double>(view_.started_unix_seconds));
  page_.family(metrics::Metric::kBuildInfo);
  page_.sample({version()}, 1U);
}

}  // namespace

std::string metrics_page(const GatewayView& view, TimePoint now) {
  std::string buffer(64 * 1024, '\0');
  for (;;) {
    Scrape scrape(view, now, buffer);
    if (scrape.write()) {
      buffer.resize(scrape.text().size());
      return buffer;
    }
    buffer.resize(buffer.size() * 2);
  }
}

}  // namespace weir::inline v0::gateway
