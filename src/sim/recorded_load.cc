#include "recorded_load.h"

#include <algorithm>
#include <map>

namespace weir::inline v0::sim {
namespace {

using policy::RecordedDecision;

constexpr Duration kSettleMax = std::chrono::seconds(10);

Duration quantile(std::vector<Duration>& values, double share) {
  if (values.empty()) return {};
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(at);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

/// The number of a tag, from 1 in order of appearance; none stays 0.
class Numbers {
 public:
  std::uint32_t of(std::uint32_t tag) {
    if (tag == 0) return 0;
    return known_.try_emplace(tag, static_cast<std::uint32_t>(known_.size() + 1)).first->second;
  }
  [[nodiscard]] std::uint32_t count() const noexcept {
    return static_cast<std::uint32_t>(known_.size());
  }

 private:
  std::map<std::uint32_t, std::uint32_t> known_;
};

}  // namespace

bool can_be_replayed(const RecordedDecision& decision) noexcept {
  if (decision.reason >= kReasonCount) return false;
  const auto reason = static_cast<Reason>(decision.reason);
  return reason != Reason::kMemory && reason != Reason::kDeadline;
}

RecordedLoad load_of_scope(const policy::Recording& recording, std::uint16_t scope) {
  RecordedLoad load;
  load.from = Duration::max();
  Duration last{};
  std::vector<Duration> times;
  for (const RecordedDecision& one : recording.decisions) {
    load.from = std::min(load.from, one.ended_at());
    last = std::max(last, one.ended_at());
    if (one.scope == scope) times.push_back(one.wait + one.latency);
  }
  if (times.empty()) {
    load.from = {};
    return load;
  }
  constexpr double kNearlyAll = 0.999;
  load.to = std::max(load.from, last - quantile(times, kNearlyAll));
  load.settle = std::min(kSettleMax, load.length() / 5);
  for (const RecordedDecision& one : recording.decisions) {
    if (one.scope != scope || one.at < load.from || one.at >= load.to) continue;
    if (can_be_replayed(one)) {
      load.decisions.push_back(one);
    } else {
      ++load.left_out;
    }
  }
  return load;
}

LoadSpec trace_of(const RecordedLoad& load) {
  LoadSpec spec;
  spec.name = "recorded";
  spec.arrivals = ArrivalKind::kTrace;
  spec.trace.reserve(load.decisions.size());
  Numbers actors;
  Numbers peers;
  for (const RecordedDecision& one : load.decisions) {
    spec.trace.push_back({.at = one.at - load.from,
                          .priority = one.priority,
                          .actor = actors.of(one.actor),
                          .bytes = one.bytes,
                          .cost = std::max(1U, one.cost),
                          .peer = peers.of(one.peer),
                          .hedge = one.hedge});
  }
  spec.actors = actors.count();
  spec.peers = peers.count();
  return spec;
}

LoadResult result_of(const std::vector<RecordedDecision>& decisions, Duration from, Duration to) {
  LoadResult result;
  result.seconds = to_seconds(to - from);
  std::vector<Duration> times;
  for (const RecordedDecision& one : decisions) {
    if (one.at < from || one.at >= to) continue;
    ++result.asked;
    result.in_flight_max = std::max(result.in_flight_max, one.in_flight);
    if (one.refused()) {
      ++result.refused;
      if (one.reason < kReasonCount) {
        ++result.by_reason[one.reason][index_of(one.priority)];
      }
      continue;
    }
    ++result.admitted;
    if (one.end != policy::DecisionEnd::kOk) continue;
    ++result.ok;
    times.push_back(one.wait + one.latency);
  }
  result.p50 = quantile(times, 0.5);
  result.p99 = quantile(times, 0.99);
  return result;
}

}  // namespace weir::inline v0::sim
