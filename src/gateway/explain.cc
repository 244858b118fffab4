#include "explain.h"

#include <algorithm>
#include <cmath>

#include "weir/base/byte_size.h"
#include "weir/base/duration_text.h"
#include "weir/policy/class_admission.h"
#include "weir/policy/memory_shedding.h"

namespace weir::inline v0::gateway {
namespace {

/// 750 as "0.75".
std::string as_share(std::uint32_t permille) {
  if (permille >= 1000) return "all";
  std::string text = std::to_string(1000 + permille).substr(1);
  text.erase(text.find_last_not_of('0') + 1);
  return "0." + (text.empty() ? "0" : text);
}

std::string percent(double share) {
  const long tenths = std::lround(share * 1000);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

std::string of(std::uint64_t have, std::uint64_t bound) {
  return std::to_string(have) + " of " + std::to_string(bound);
}

std::string bytes_of(std::uint64_t have, std::uint64_t bound) {
  return to_human(ByteSize(have)) + " of " + to_human(ByteSize(bound));
}

class Explainer {
 public:
  Explainer(const DescribedRequest& request, const NumbersInForce& numbers)
      : request_(request), n_(numbers), config_(numbers.config) {}

  Explanation run() {
    deadline();
    memory();
    too_large();
    peer();
    actor();
    class_cap();
    limit();
    decide();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool critical() const { return request_.priority == Priority::kCritical; }

  void step(int number, std::string check, std::string finding, RuleMode mode, Reason refuses) {
    if (critical()) refuses = Reason::kAdmitted;
    out_.steps.push_back({number, std::move(check), std::move(finding), mode, refuses});
  }

  void deadline() {
    if (!request_.time_left) {
      return step(1, "deadline", "none given", config_.modes.deadline, Reason::kAdmitted);
    }
    const bool over = *request_.time_left <= Duration(0);
    step(1, "deadline", to_string(*request_.time_left) + " left", config_.modes.deadline,
         over ? Reason::kDeadline : Reason::kAdmitted);
  }

  void memory() {
    const MemoryLevel level =
        next_memory_level(MemoryLevel::kNormal, n_.all.memory_usage, config_.memory);
    const Reason found = decide_memory(level, request_.priority, 0,
                                       ShedShare(config_.memory.low_priority_shed_ratio));
    const bool sheds_some = counts_low_request(level, request_.priority);
    std::string finding = n_.all.memory_readable ? percent(n_.all.memory_usage) + " used"
                                                 : "unreadable, counts as 0 %";
    finding += "; low is shed above " + percent(config_.memory.memory_pressure_threshold) +
               ", normal above " + percent(config_.memory.memory_critical_threshold);
    if (sheds_some) finding += "; share shed " + percent(config_.memory.low_priority_shed_ratio);
    step(2, "memory", std::move(finding), config_.modes.memory, found);
  }

  void too_large() {
    const bool actor = request_.has_actor && request_.bytes > config_.bytes_max;
    const bool process = config_.total_bytes_max > 0 && request_.bytes > config_.total_bytes_max;
    step(3, "too_large", to_human(ByteSize(request_.bytes)) + " asked for",
         actor ? config_.modes.actor : config_.modes.bytes,
         actor || process ? Reason::kTooLarge : Reason::kAdmitted);
  }

  void peer() {
    if (!request_.has_peer) {
      return step(4, "peer_limit", "not from a trusted peer", config_.modes.peer,
                  Reason::kAdmitted);
    }
    const bool full = n_.peer.in_flight >= config_.per_peer_limit;
    step(4, "peer_limit", of(n_.peer.in_flight, config_.per_peer_limit) + " in flight or waiting",
         config_.modes.peer, full ? Reason::kPeerLimit : Reason::kAdmitted);
  }

  void actor() {
    if (request_.has_actor) {
      const bool count = n_.actor.in_flight >= config_.inflight_max;
      const bool bytes = n_.actor.bytes + request_.bytes > config_.bytes_max;
      step(5, "actor_inflight", of(n_.actor.in_flight, config_.inflight_max) + " in flight",
           config_.modes.actor, count ? Reason::kActorInflight : Reason::kAdmitted);
      step(5, "actor_bytes", bytes_of(n_.actor.bytes, config_.bytes_max) + " held",
           config_.modes.actor, bytes ? Reason::kActorBytes : Reason::kAdmitted);
    } else {
      step(5, "actor_inflight", "billed to nobody", config_.modes.actor, Reason::kAdmitted);
    }
    if (config_.total_bytes_max == 0) return;
    const bool total = n_.all.bytes + request_.bytes > config_.total_bytes_max;
    step(5, "bytes", bytes_of(n_.all.bytes, config_.total_bytes_max) + " held by all",
         config_.modes.bytes, total ? Reason::kBytes : Reason::kAdmitted);
  }

  void class_cap() {
    const ClassStats& own = n_.scope.classes[index_of(request_.priority)];
    if (own.cap == 0) {
      return step(6, "class_limit", "no cap", config_.modes.class_cap, Reason::kAdmitted);
    }
    const bool full = own.in_flight + units() > own.cap;
    step(6, "class_limit", of(own.in_flight, own.cap) + " in flight", config_.modes.class_cap,
         full ? Reason::kClassLimit : Reason::kAdmitted);
  }

  void limit() {
    const bool full = n_.scope.in_flight + units() > bound();
    const bool process_full = n_.all.in_flight + units() > config_.max_concurrent;
    const bool queued = n_.scope.waiting > 0 && patience() > Duration(0);
    std::string finding = of(n_.scope.in_flight, bound()) + " in flight (" + as_share(permille()) +
                          " of the limit " + std::to_string(n_.scope.limit) + ", " +
                          std::string(name_of(n_.scope.limit_reason)) + "); " +
                          of(n_.all.in_flight, config_.max_concurrent) + " over all; " +
                          of(n_.scope.waiting, config_.waiting_max) + " waiting";
    waits_ = (full || queued) && !process_full && patience() > Duration(0) &&
             n_.scope.waiting < config_.waiting_max;
    if (waits_) finding += "; would wait up to " + to_string(patience());
    step(7, "overload", std::move(finding), config_.modes.limit,
         full || process_full || queued ? Reason::kOverload : Reason::kAdmitted);
  }

  [[nodiscard]] std::uint32_t permille() const {
    return config_.classes.share_permille(request_.priority, request_.hedge);
  }
  [[nodiscard]] std::uint32_t bound() const { return share_bound(n_.scope.limit, permille()); }

  /// What would be charged: a request that is too dear is served alone.
  [[nodiscard]] std::uint32_t units() const {
    return charged_cost(std::min(request_.cost, config_.max_concurrent), bound(),
                        n_.scope.classes[index_of(request_.priority)].cap);
  }

  [[nodiscard]] Duration patience() const {
    if (request_.hedge) return Duration(0);
    if (request_.priority == Priority::kHigh) return config_.high_wait_max;
    if (request_.priority == Priority::kNormal) return config_.normal_wait_max;
    return Duration(0);
  }

  void decide() {
    for (const ExplainedStep& one : out_.steps) {
      if (one.refuses == Reason::kAdmitted || one.mode != RuleMode::kEnforce) continue;
      const bool may_wait = one.refuses == Reason::kOverload && waits_;
      out_.verdict = may_wait ? Verdict::kWaits : Verdict::kRefused;
      out_.reason = one.refuses;
      return;
    }
  }

  const DescribedRequest& request_;
  const NumbersInForce& n_;
  const AdmissionConfig& config_;
  Explanation out_;
  bool waits_ = false;
};

}  // namespace

Explanation explain(const DescribedRequest& request, const NumbersInForce& numbers) {
  return Explainer(request, numbers).run();
}

}  // namespace weir::inline v0::gateway
