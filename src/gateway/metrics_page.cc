#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "weir/experimental/gateway/version.h"
#include "weir/experimental/io/memory_reader.h"
#include "weir/policy/retry_hint.h"

#include "admin_pages.h"
#include "io/process_stats.h"
#include "live/live_sampler.h"
#include "metrics/metric.h"
#include "upstream_metrics.h"

namespace weir::inline v0::gateway {
namespace {

using metrics::Metric;
using enum metrics::Metric;

constexpr std::array<std::string_view, 5> kStatusNames = {"1xx", "2xx", "3xx", "4xx", "5xx"};
constexpr std::array<std::string_view, 4> kOutcomeNames = {"ok", "ignored", "overload", "error"};
constexpr std::string_view kNone = "none";  // no upstream was chosen
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Values read once per scrape and used by several families.
class Scrape {
 public:
  Scrape(const GatewayView& view, TimePoint now, std::span<char> buffer)
      : view_(view),
        core_(view.core),
        page_(buffer),
        server_(view.server_stats()),
        upstreams_(view.core.upstreams.in_force()) {
    for (const auto& one : upstreams_->all) {
      scopes_.push_back(core_.controller.scope_stats(one->scope(), now));
      totals_.push_back(one->upstream.totals());
      sets_.push_back(one->upstream.endpoints());
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
    tunnels();
    recorder();
    process();
    return !page_.full();
  }
  [[nodiscard]] std::string_view text() const { return page_.text(); }

 private:
  using Scope = ScopeStats;

  template <class Value>
  void per_scope(Metric metric, Value value) {
    page_.family(metric);
    for (const Scope& scope : scopes_) page_.sample({scope.name}, std::invoke(value, scope));
  }
  template <class Value>
  void per_class(Metric metric, Value value) {
    page_.family(metric);
    for (const Scope& scope : scopes_) {
      for (const Priority p : kPriorities) {
        page_.sample({scope.name, name_of(p)}, std::invoke(value, scope.classes[index_of(p)]));
      }
    }
  }
  /// The counters of one loop for one upstream; the last index means "none".
  [[nodiscard]] const UpstreamCounters& counters(std::size_t upstream, std::size_t loop) const {
    return upstream < count() ? *upstreams_->all[upstream]->place.counters[loop]
                              : core_.counters[loop]->none;
  }
  /// A sample for each upstream (the last index means "none") and each counter of an array, from
  /// `first` on: its sum over the loops.
  template <class Counters, class Name>
  void per_counter(Metric metric, std::size_t upstreams, Counters UpstreamCounters::*array,
                   std::size_t first, Name name) {
    page_.family(metric);
    for (std::size_t i = 0; i < upstreams; ++i) {
      for (std::size_t k = first; k < Counters().size(); ++k) {
        std::uint64_t total = 0;
        for (std::size_t loop = 0; loop < core_.counters.size(); ++loop) {
          total += (counters(i, loop).*array)[k].get();
        }
        page_.sample({upstream_name(i), name(k)}, total);
      }
    }
  }
  void per_upstream(Metric metric, metrics::Histogram UpstreamCounters::*histogram) {
    page_.family(metric);
    for (std::size_t i = 0; i < count(); ++i) {
      metrics::HistogramSnapshot all = (counters(i, 0).*histogram).snapshot();
      for (std::size_t loop = 1; loop < core_.counters.size(); ++loop) {
        all.merge((counters(i, loop).*histogram).snapshot());
      }
      page_.sample({upstream_name(i)}, all.view());
    }
  }
  [[nodiscard]] std::size_t count() const { return upstreams_->all.size(); }
  [[nodiscard]] upstream::Upstream& upstream_at(std::size_t index) const {
    return upstreams_->all[index]->upstream;
  }
  [[nodiscard]] std::string_view upstream_name(std::size_t index) const {
    return index < count() ? std::string_view(upstreams_->all[index]->name()) : kNone;
  }
  void overrides();
  void diagnoses(const LiveSampler& live);
  void admission();
  void classes();
  void actors();
  void tokens();
  void memory_and_pools();
  void http2();
  void pool(Metric metric, std::uint64_t PoolStats::*field);
  void connections();
  void tls();
  void requests();
  void upstreams();
  void tunnels();
  void recorder();
  void process();

  const GatewayView& view_;
  GatewayCore& core_;
  metrics::MetricsPage page_;
  ServerStats server_;
  const std::shared_ptr<const UpstreamSet> upstreams_;
  std::vector<Scope> scopes_;
  std::vector<upstream::EndpointTotals> totals_;                    // of each upstream
  std::vector<std::shared_ptr<const upstream::EndpointSet>> sets_;  // the same
  TimePoint now_{};
};

void Scrape::admission() {
  page_.family(kAdmissionTotal);
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
  const auto by_reason = [this](Metric metric, auto counts) {
    page_.family(metric);
    for (const Scope& scope : scopes_) {
      for (std::size_t i = 1; i < kReasonCount; ++i) {
        page_.sample({scope.name, kReasonFacts[i].name}, (scope.*counts)[i]);
      }
    }
  };
  by_reason(kAdmissionRejectedReason, &Scope::refused);
  by_reason(kAdmissionShadowRejected, &Scope::would_refuse);
  per_scope(kAdmissionInFlight, &Scope::in_flight);
  per_scope(kAdmissionConcurrencyLimit, &Scope::limit);
  per_scope(kAdmissionMinLimit, &Scope::limit_min);
  per_scope(kAdmissionLimitAtMax,
            [](const Scope& s) { return s.limit_reason == LimitReason::kAtCeiling ? 1 : 0; });
  const AdmissionConfig config = core_.controller.config();
  page_.single(kAdmissionMaxConcurrent, config.max_concurrent);
  page_.single(kAdmissionWarnThreshold, config.warn_threshold);
  per_scope(kAdmissionWaiting, &Scope::waiting);
  per_scope(kAdmissionExpectedWait, [](const Scope& s) {
    const auto wait = expected_wait({.drained_per_second = s.drain_per_second,
                                     .ahead = s.waiting + 1,
                                     .fresh = s.drain_per_second > 0});
    return wait ? to_seconds(*wait) : std::nan("");
  });
  per_scope(kAdmissionVegasQueueEstimate, &Scope::queue_estimate);
  page_.family(kAdmissionLimitChanges);
  for (const Scope& scope : scopes_) {
    const OperatorLog::Moves moves = view_.log.moves(scope.name);
    page_.sample({scope.name, "up"}, moves.up);
    page_.sample({scope.name, "down"}, moves.down);
  }
  per_counter(kAdmissionOutcomes, count(), &UpstreamCounters::outcomes, 0,
              [](std::size_t k) { return kOutcomeNames[k]; });
  page_.family(kDiagnosisCause);
  if (view_.live != nullptr) diagnoses(*view_.live);
  per_scope(kAdmissionState, [](const Scope& s) { return static_cast<unsigned>(s.state); });
  per_scope(kAdmissionOverloaded, [](const Scope& s) { return s.overloaded ? 1U : 0U; });
}

void Scrape::diagnoses(const LiveSampler& live) {
  // What is remembered is up to a second older than the set of upstreams.
  for (const Scope& scope : scopes_) {
    const LiveUpstream* one = live.find(scope.name);
    if (one == nullptr) continue;
    for (std::size_t i = 0; i < policy::kCauseCount; ++i) {
      const bool is = static_cast<std::size_t>(one->diagnosis.cause) == i;
      page_.sample({scope.name, policy::kCauseFacts[i].name}, is ? 1U : 0U);
    }
  }
}

void Scrape::classes() {
  page_.family(kAdmissionStanding);
  for (const Scope& scope : scopes_) {
    for (const Priority p : {Priority::kHigh, Priority::kNormal}) {
      page_.sample({scope.name, name_of(p)}, scope.classes[index_of(p)].standing ? 1U : 0U);
    }
  }
  page_.family(kAdmissionQueueWait);
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
  per_class(kAdmissionPriorityInFlight, &ClassStats::in_flight);
  per_class(kAdmissionPriorityAcquired, &ClassStats::acquired);
  per_class(kAdmissionPriorityShed, &ClassStats::shed);
  page_.family(kAdmissionPriorityLimit);
  for (const Scope& scope : scopes_) {
    for (const Priority p : kPriorities) {
      const ClassStats& c = scope.classes[index_of(p)];
      const double limit = c.cap == 0 ? c.bound : std::min(c.bound, c.cap);
      page_.sample({scope.name, name_of(p)}, p == Priority::kCritical ? kInfinity : limit);
    }
  }
}

void Scrape::actors() {
  constexpr std::size_t kTop = 10;
  const auto label_of = [](const BudgetRow& row) {
    return row.label.empty() ? "#" + std::to_string(row.id) : row.label;
  };
  const auto rows_in = [&](Metric metric, const std::vector<BudgetRow>& rows, auto value) {
    page_.family(metric);
    for (const BudgetRow& row : rows) page_.sample({label_of(row)}, value(row));
  };
  const auto in_flight = [](const BudgetRow& row) { return row.in_flight; };
  rows_in(kAdmissionPeerInFlight, core_.controller.top_peers(kTop), in_flight);
  std::vector<BudgetRow> actors = core_.controller.top_actors(1000);
  const auto first = [](std::vector<BudgetRow> rows) {
    if (rows.size() > kTop) rows.resize(kTop);
    return rows;
  };
  rows_in(kAdmissionActorInFlight, first(actors), in_flight);
  std::stable_sort(actors.begin(), actors.end(),
                   [](const BudgetRow& a, const BudgetRow& b) { return a.bytes > b.bytes; });
  rows_in(kAdmissionActorBytes, first(actors), [](const BudgetRow& row) { return row.bytes; });
  const AdmissionStats all = core_.controller.stats();
  page_.single(kAdmissionActors, all.actors);
  page_.single(kAdmissionPeers, all.peers);
  page_.single(kAdmissionStreaming, all.streaming);
  page_.single(kAdmissionCriticalShed,
               all.critical_shed + server_.critical_shed + core_.totals().critical_shed);
  tokens();
  page_.single(kAdmissionMemoryUsage, all.memory_usage);
  page_.single(kAdmissionMemoryReadable, all.memory_readable ? 1U : 0U);
  const MemoryRules memory = core_.controller.config().memory;
  page_.single(kAdmissionMemoryPressureThreshold, memory.memory_pressure_threshold);
  page_.single(kAdmissionMemoryCriticalThreshold, memory.memory_critical_threshold);
  page_.single(kAdmissionBytesInFlight, all.bytes);
}

void Scrape::tokens() {
  page_.family(kActorTokens);
  const auto sum = [&](auto count_of) {
    std::uint64_t total = 0;
    for (const auto& loop : core_.counters) total += count_of(loop->tokens).get();
    return total;
  };
  page_.sample({"verified"}, sum([](const TokenCounters& t) -> auto& { return t.verified; }));
  page_.sample({"cached"}, sum([](const TokenCounters& t) -> auto& { return t.cached; }));
  for (std::size_t i = 0; i < kJwtFaultNames.size(); ++i) {
    page_.sample({kJwtFaultNames[i]},
                 sum([i](const TokenCounters& t) -> auto& { return t.faults[i]; }));
  }
}

void Scrape::pool(Metric metric, std::uint64_t PoolStats::*field) {
  page_.family(metric);
  for (const auto& [name, stats] : pools_of(view_, server_)) page_.sample({name}, stats.*field);
}

void Scrape::memory_and_pools() {
  pool(kPoolUsed, &PoolStats::used);
  pool(kPoolPeak, &PoolStats::peak);
  pool(kPoolCapacity, &PoolStats::capacity);
  pool(kPoolExhausted, &PoolStats::exhausted);
  page_.single(kWriteSlabExhaustion, server_.write_slab_exhaustion_count);
  page_.single(kPendingWriteQueueLen, server_.pending_write_queue_len);
  page_.single(kPressureLevel, static_cast<unsigned>(server_.pressure));
  page_.single(kMemoryCeiling, view_.budget.total_bytes());
}

/// The reasons for which a connection, not a request, is refused.
bool at_accept(RefuseReason reason) noexcept {
  using enum RefuseReason;
  constexpr std::array kAtAccept = {kConnections, kPressure,  kPressureShare, kNoFds,
                                    kNoMemory,    kHandshake, kSource,        kUntrusted};
  return std::find(kAtAccept.begin(), kAtAccept.end(), reason) != kAtAccept.end();
}

void Scrape::connections() {
  page_.single(kConnectionsOpen, server_.connections.used);
  page_.single(kConnectionsAccepted, server_.accepted);
  const auto refusals = [this](Metric metric, bool accept) {
    page_.family(metric);
    for (std::size_t i = 0; i < server_.refused.size(); ++i) {
      const auto reason = static_cast<RefuseReason>(i);
      if (at_accept(reason) == accept) page_.sample({name_of(reason)}, server_.refused[i]);
    }
  };
  refusals(kConnectionsRefused, true);
  page_.family(kConnectionsClosed);
  for (std::size_t i = 1; i < server_.closed.size(); ++i) {
    page_.sample({name_of(static_cast<CloseReason>(i))}, server_.closed[i]);
  }
  page_.family(kProxyHeaders);
  for (std::size_t i = 0; i < server_.proxy_headers.size(); ++i) {
    page_.sample({kProxyResultNames[i]}, server_.proxy_headers[i]);
  }
  tls();
  refusals(kServerRefusals, false);
  page_.single(kServerBlockedEnded, server_.blocked_ended);
  http2();
}

void Scrape::http2() {
  const auto each = [this](Metric metric, const auto& names, const auto& counts) {
    page_.family(metric);
    for (std::size_t i = 0; i < counts.size(); ++i) page_.sample({names[i]}, counts[i]);
  };
  page_.single(kHttp2Connections, server_.h2_connections);
  each(kHttp2Ended, http::h2::kSessionEndNames, server_.h2_ended);
  page_.single(kHttp2Goaways, server_.h2_goaways);
  page_.single(kHttp2Requests, server_.h2_requests);
  each(kHttp2Aborted, kCloseReasonNames, server_.h2_aborted);
  each(kHttp2Glitches, http::kH2GlitchNames, server_.h2_glitches);
}

void Scrape::tls() {
  const TlsStats& stats = server_.tls;
  page_.family(kTlsHandshakes);
  for (std::size_t i = 0; i < stats.handshakes.size(); ++i) {
    page_.sample({kHandshakeResultNames[i]}, stats.handshakes[i]);
  }
  page_.single(kTlsHandshakesWaiting, stats.handshakes_waiting);
  page_.single(kTlsKeyUpdatesExceeded, stats.key_updates_exceeded);
  page_.single(kTlsMemory, stats.memory_bytes);
  page_.single(kTlsMemoryPeak, stats.memory_peak_bytes);
  page_.single(kTlsMemoryBudget, stats.memory_budget_bytes);
  page_.single(kTlsMemoryRefused, stats.memory_refused);
}

void Scrape::requests() {
  const RequestTotals totals = core_.totals();
  page_.single(kRequestsReceived, totals.received);
  per_counter(kRequestsAnswered, count() + 1, &UpstreamCounters::answered, 0,
              [](std::size_t k) { return kStatusNames[k]; });
  per_counter(kRequestsRefused, count() + 1, &UpstreamCounters::refused, 1,
              [](std::size_t k) { return GatewayReason::at(k).name(); });
  per_counter(kRequestsAborted, count(), &UpstreamCounters::aborted, 0,
              [](std::size_t k) { return kEndedByNames[k]; });
  page_.single(kRequestsActive, totals.active());
  per_upstream(kRequestDuration, &UpstreamCounters::duration);
  metrics::HistogramSnapshot refusal = core_.counters[0]->refusal.snapshot();
  for (std::size_t i = 1; i < core_.counters.size(); ++i) {
    refusal.merge(core_.counters[i]->refusal.snapshot());
  }
  page_.family(kRefusalDuration);
  page_.sample({}, refusal.view());
}

void Scrape::upstreams() {
  const auto each = [this](Metric metric, auto value) {
    page_.family(metric);
    for (std::size_t i = 0; i < count(); ++i) {
      page_.sample({upstream_name(i)}, value(i));
    }
  };
  each(kUpstreamAttempts, [&](std::size_t i) { return totals_[i].attempts; });
  each(kUpstreamRetries, [&](std::size_t i) { return totals_[i].retries; });
  each(kUpstreamConnects, [&](std::size_t i) { return totals_[i].connects; });
  each(kUpstreamStrays, [&](std::size_t i) { return totals_[i].strays; });
  page_.family(kUpstreamConnections);
  for (std::size_t i = 0; i < count(); ++i) {
    const upstream::EndpointTotals& all = totals_[i];
    for (const ConnectionsInState& one : by_state({all.connections, all.idle, all.connecting})) {
      page_.sample({upstream_name(i), one.state}, one.connections);
    }
  }
  page_.family(kUpstreamFailures);
  for (std::size_t i = 0; i < count(); ++i) {
    for (std::size_t k = 1; k < upstream::kUpstreamFailureCount; ++k) {
      page_.sample({upstream_name(i), upstream::kUpstreamFailureNames[k]}, totals_[i].failures[k]);
    }
  }
  per_upstream(kUpstreamLatency, &UpstreamCounters::latency);
  each(kUpstreamConnectionQueue, [&](std::size_t i) { return upstream_at(i).waiting(); });
  each(kUpstreamHeld, [&](std::size_t i) { return upstream_at(i).held(); });
  each(kUpstreamHeldTotal, [&](std::size_t i) {
    return upstream_at(i).sum([](const upstream::CallCounters& c) { return c.held.get(); });
  });
  write_upstream_metrics(page_, {.upstreams = *upstreams_, .sets = sets_, .now = now_});
}

void Scrape::tunnels() {
  std::vector<std::uint64_t> opened(count());
  std::vector<std::uint64_t> ended(count());
  for (std::size_t i = 0; i < count(); ++i) {
    for (std::size_t loop = 0; loop < core_.counters.size(); ++loop) {
      // Ends first: a tunnel that ends meanwhile must not make the difference negative.
      for (const Count& one : counters(i, loop).tunnels_ended) ended[i] += one.get();
      opened[i] += counters(i, loop).tunnels_opened.get();
    }
  }
  page_.family(kTunnelsOpen);
  for (std::size_t i = 0; i < count(); ++i) page_.sample({upstream_name(i)}, opened[i] - ended[i]);
  page_.family(kTunnelsOpened);
  for (std::size_t i = 0; i < count(); ++i) page_.sample({upstream_name(i)}, opened[i]);
  per_counter(kTunnelsEnded, count(), &UpstreamCounters::tunnels_ended, 0,
              [](std::size_t k) { return kTunnelEndNames[k]; });
  per_counter(kTunnelBytes, count(), &UpstreamCounters::tunnel_bytes, 0,
              [](std::size_t k) { return kTunnelWays[k]; });
}

void Scrape::recorder() {
  const RecorderFiles::Stats files =
      view_.recorder_files != nullptr ? view_.recorder_files->stats() : RecorderFiles::Stats{};
  page_.family(kRecorderDecisions);
  page_.sample({}, core_.recorder.recorded());
  page_.family(kRecorderWritten);
  page_.sample({}, files.written);
  page_.family(kRecorderDropped);
  page_.sample({}, files.lost);
  page_.family(kRecorderFiles);
  page_.sample({}, files.frozen);
  page_.family(kRecorderFailing);
  page_.sample({}, std::uint64_t{files.failing});
}

void Scrape::overrides() {
  page_.family(kAdminActions);
  const auto counts =
      view_.actions != nullptr ? view_.actions->counts() : std::vector<AdminActions::Count>{};
  for (const AdminActions::Count& one : counts) page_.sample({one.action, one.result}, one.count);
  const std::vector<Override> active = core_.overrides();
  page_.family(kOverrideActive);
  for (const OverrideKind kind :
       {OverrideKind::kDrain, OverrideKind::kShadow, OverrideKind::kCap, OverrideKind::kLog}) {
    const auto of_kind = [kind](const Override& one) { return one.kind == kind; };
    page_.sample({name_of(kind)},
                 static_cast<std::uint64_t>(std::count_if(active.begin(), active.end(), of_kind)));
  }
}

void Scrape::process() {
  page_.family(kConfigReloads);
  page_.sample({"ok"}, view_.reloads_ok.load());
  page_.sample({"rejected"}, view_.reloads_refused.load());
  overrides();
  page_.single(kDraining, view_.draining.load() ? 1U : 0U);
  page_.single(kStartTime, static_cast<double>(view_.started_unix_seconds));
  const io::ProcessStats own = io::process_stats();
  page_.single(kProcessStartTime, static_cast<double>(view_.started_unix_seconds));
  page_.single(kProcessResidentMemory, io::own_resident_bytes());
  page_.single(kProcessCpu, own.cpu_seconds);
  page_.single(kProcessOpenFds, own.open_fds);
  page_.single(kProcessMaxFds, own.max_fds);
  page_.family(kBuildInfo);
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
