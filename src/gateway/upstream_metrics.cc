#include "upstream_metrics.h"

#include <vector>

#include "metrics/metric.h"
#include "upstream/upstream.h"

namespace weir::inline v0::gateway {
namespace {

using metrics::Metric;
using enum metrics::Metric;

class UpstreamMetrics {
 public:
  UpstreamMetrics(metrics::MetricsPage& page, const UpstreamReadings& readings)
      : page_(page), upstreams_(readings.upstreams), sets_(readings.sets), now_(readings.now) {}

  void retries();
  void hedges();
  void endpoints();

 private:
  [[nodiscard]] std::size_t count() const { return upstreams_.all.size(); }
  [[nodiscard]] upstream::Upstream& upstream_at(std::size_t index) const {
    return upstreams_.all[index]->upstream;
  }
  [[nodiscard]] std::string_view upstream_name(std::size_t index) const {
    return upstreams_.all[index]->name();
  }
  void hedge_histogram(Metric metric, metrics::Histogram upstream::CallCounters::*histogram);
  void hedge_delays();
  void endpoint_queues();

  metrics::MetricsPage& page_;
  const UpstreamSet& upstreams_;
  std::span<const std::shared_ptr<const upstream::EndpointSet>> sets_;
  const TimePoint now_;
};

void UpstreamMetrics::hedges() {
  using upstream::CallCounters;
  const auto each = [this](Metric metric, OwnedCount CallCounters::*counter) {
    page_.family(metric);
    for (std::size_t i = 0; i < count(); ++i) {
      page_.sample({upstream_name(i)},
                   upstream_at(i).sum([&](const CallCounters& c) { return (c.*counter).get(); }));
    }
  };
  each(kHedgeRequests, &CallCounters::hedges);
  each(kHedgeWins, &CallCounters::hedges_won);
  each(kHedgePrimaryWins, &CallCounters::hedges_lost);
  each(kHedgeFailures, &CallCounters::hedges_failed);
  page_.family(kHedgeSkipped);
  for (std::size_t i = 0; i < count(); ++i) {
    for (std::size_t k = 1; k < policy::kNoHedgeCount; ++k) {
      page_.sample({upstream_name(i), policy::kNoHedgeNames[k]},
                   upstream_at(i).sum([k](const CallCounters& c) { return c.no_hedge[k].get(); }));
    }
  }
  page_.family(kHedgeLosers);
  for (std::size_t i = 0; i < count(); ++i) {
    for (std::size_t k = 0; k < policy::kLoserEndNames.size(); ++k) {
      page_.sample({upstream_name(i), policy::kLoserEndNames[k]},
                   upstream_at(i).sum([k](const CallCounters& c) { return c.losers[k].get(); }));
    }
  }
  page_.family(kHedgeCohortSlow);
  for (std::size_t i = 0; i < count(); ++i) {
    page_.sample({upstream_name(i)}, upstream_at(i).slowest_cohort().slow ? 1U : 0U);
  }
  hedge_histogram(kHedgeDelay, &CallCounters::hedge_delay);
  hedge_histogram(kHedgeLatencySaved, &CallCounters::hedge_saved);
  page_.family(kHedgeLoserTime);
  for (std::size_t i = 0; i < count(); ++i) {
    const std::uint64_t ns =
        upstream_at(i).sum([](const CallCounters& c) { return c.loser_ns.get(); });
    page_.sample({upstream_name(i)}, static_cast<double>(ns) / 1e9);
  }
  each(kUpstreamDiscarded, &CallCounters::discarded_bytes);
  page_.family(kHedgeBudgetShare);
  for (std::size_t i = 0; i < count(); ++i) {
    page_.sample({upstream_name(i)},
                 static_cast<double>(upstream_at(i).budget().rules().deposit_millitokens) /
                     policy::kRedundancyToken);
  }
  hedge_delays();
}

void UpstreamMetrics::hedge_histogram(Metric metric,
                                      metrics::Histogram upstream::CallCounters::*histogram) {
  page_.family(metric);
  for (std::size_t i = 0; i < count(); ++i) {
    upstream::Upstream& upstream = upstream_at(i);
    metrics::HistogramSnapshot all = (upstream.counters(0).*histogram).snapshot();
    for (std::uint32_t loop = 1; loop < upstream.loops(); ++loop) {
      all.merge((upstream.counters(loop).*histogram).snapshot());
    }
    page_.sample({upstream_name(i)}, all.view());
  }
}

void UpstreamMetrics::hedge_delays() {
  struct Row {
    std::string_view upstream;
    std::string_view endpoint;
    Duration delay;
    Duration mean;
  };
  std::vector<Row> rows;
  for (std::size_t i = 0; i < count(); ++i) {
    const policy::HedgeConfig config = upstream_at(i).hedge();
    for (const upstream::EndpointSet::Member& member : sets_[i]->members) {
      const upstream::ReadClass of = member.endpoint->busiest_reads(now_);
      const control::LatencyReading reading = member.endpoint->reads(of).tracker.reading(now_);
      if (reading.samples == 0) continue;
      rows.push_back(
          {upstream_name(i), member.endpoint->label(),
           policy::capped_by(upstream_at(i).hedge_cohort(of), reading.delay, config).delay,
           reading.mean});
    }
  }
  page_.family(kEndpointHedgeDelay);
  for (const Row& row : rows) page_.sample({row.upstream, row.endpoint}, to_seconds(row.delay));
  page_.family(kEndpointReadLatency);
  for (const Row& row : rows) page_.sample({row.upstream, row.endpoint}, to_seconds(row.mean));
}

void UpstreamMetrics::retries() {
  using upstream::CallCounters;
  page_.family(kUpstreamRetryDecisions);
  for (std::size_t i = 0; i < count(); ++i) {
    const upstream::Upstream& upstream = upstream_at(i);
    for (std::size_t k = 0; k < policy::kSendAgainReasonCount; ++k) {
      page_.sample({upstream_name(i), name_of(static_cast<policy::SendAgainReason>(k))},
                   upstream.sum([k](const CallCounters& c) { return c.decisions[k].get(); }));
    }
    page_.sample({upstream_name(i), "budget_empty"},
                 upstream.sum([](const CallCounters& c) { return c.budget_empty.get(); }));
  }
  page_.family(kUpstreamRetryBudget);
  for (std::size_t i = 0; i < count(); ++i) {
    page_.sample({upstream_name(i)}, upstream_at(i).budget().balance_millitokens() / 1000.0);
  }
  using enum policy::HealthReason;
  page_.family(kUpstreamEjections);
  for (std::size_t i = 0; i < count(); ++i) {
    for (const policy::HealthReason cause :
         {kConnectFailed, kBadAnswers, kSlow, kChecksFailed, kSilent}) {
      page_.sample({upstream_name(i), name_of(cause)}, upstream_at(i).ejections(cause));
    }
  }
}

void UpstreamMetrics::endpoints() {
  const auto each = [this](Metric metric, auto sample) {
    page_.family(metric);
    for (std::size_t i = 0; i < count(); ++i) {
      for (const upstream::EndpointSet::Member& member : sets_[i]->members) {
        sample(upstream_name(i), *member.endpoint);
      }
    }
  };
  using upstream::Endpoint;
  using Counters = upstream::EndpointCounters;
  each(kEndpointRequests, [this](std::string_view name, const Endpoint& e) {
    for (std::size_t k = 0; k < upstream::kAttemptOutcomeNames.size(); ++k) {
      page_.sample({name, e.label(), upstream::kAttemptOutcomeNames[k]},
                   e.sum([k](const Counters& c) { return c.ended[k].get(); }));
    }
  });
  each(kEndpointLatency, [this](std::string_view name, const Endpoint& e) {
    const upstream::LatencySummary latency = e.recent_latency();
    if (latency.samples == 0) return;
    page_.sample({name, e.label(), "50"}, to_seconds(latency.p50));
    page_.sample({name, e.label(), "99"}, to_seconds(latency.p99));
  });
  each(kEndpointConnections, [this](std::string_view name, const Endpoint& e) {
    const ConnectionCounts now{
        .open = e.sum([](const Counters& c) { return c.connections.get(); }),
        .idle = e.sum([](const Counters& c) { return c.idle.get(); }),
        .connecting = e.sum([](const Counters& c) { return c.connecting.get(); })};
    for (const ConnectionsInState& one : by_state(now)) {
      page_.sample({name, e.label(), one.state}, one.connections);
    }
  });
  each(kEndpointUp, [this](std::string_view name, const Endpoint& e) {
    page_.sample({name, e.label()}, e.open() ? 1U : 0U);
  });
  each(kEndpointInFlight, [this](std::string_view name, const Endpoint& e) {
    page_.sample({name, e.label()}, e.in_flight());
  });
  endpoint_queues();
}

void UpstreamMetrics::endpoint_queues() {
  struct Row {
    std::string_view upstream;
    const upstream::Endpoint& endpoint;
    control::OutgoingStats stats;
  };
  std::vector<Row> rows;
  for (std::size_t i = 0; i < count(); ++i) {
    for (const upstream::EndpointSet::Member& member : sets_[i]->members) {
      rows.push_back({upstream_name(i), *member.endpoint, member.endpoint->queue_stats()});
    }
  }
  page_.family(kEndpointQueued);
  for (const Row& row : rows) {
    const control::OutgoingCounts& now = row.endpoint.queued();
    page_.sample({row.upstream, row.endpoint.label(), "primary"}, now.primary.held());
    page_.sample({row.upstream, row.endpoint.label(), "overflow"}, now.ring.held());
    page_.sample({row.upstream, row.endpoint.label(), "critical"}, now.critical.held());
  }
  page_.family(kEndpointQueueState);
  for (const Row& row : rows) {
    page_.sample({row.upstream, row.endpoint.label()},
                 static_cast<unsigned>(row.endpoint.queue_state()));
  }
  page_.family(kEndpointQueueOffered);
  for (const Row& row : rows) page_.sample({row.upstream, row.endpoint.label()}, row.stats.offered);
  page_.family(kEndpointQueueEnded);
  for (const Row& row : rows) {
    const control::OutgoingStats& s = row.stats;
    const auto ended = [&](std::string_view how, std::uint64_t value) {
      page_.sample({row.upstream, row.endpoint.label(), how}, value);
    };
    ended("sent", s.sent);
    ended("failed", s.failed - std::min(s.failed, s.withdrawn));
    ended("withdrawn", s.withdrawn);
    ended("dropped", s.dropped);
    ended("refused", s.refused);
    ended("expired", s.expired);
  }
}

}  // namespace

void write_upstream_metrics(metrics::MetricsPage& page, const UpstreamReadings& readings) {
  UpstreamMetrics metrics(page, readings);
  metrics.retries();
  metrics.hedges();
  metrics.endpoints();
}

}  // namespace weir::inline v0::gateway
