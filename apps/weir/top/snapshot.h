#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// What the stream of a gateway has said so far (docs/design/live.md), ready to be shown: texts are
/// cleaned, what was left out is 0 or empty. Plain data; thread-safety: none.
namespace weir::app::top {

/// One second of one upstream.
struct Second {
  double offered = 0;
  double admitted = 0;
  double refused = 0;
  double failed = 0;
  double in_flight = 0;
  double waiting = 0;
  double limit = 0;
  double p50_ms = 0;
  double p99_ms = 0;
  double baseline_ms = 0;
};

struct LiveEvent {
  double at = 0;  // Unix seconds, as all times
  std::string kind;
  std::string upstream;
  std::string text;
};

struct UpstreamNow {
  std::string name;
  std::string state;
  std::string cause;
  double for_s = 0;
  Second now;
  double limit_min = 0;
  double limit_max = 0;
  std::string limit_reason;
  double replicas = 0;
  double replicas_open = 0;
};

struct VerdictNow {
  std::string upstream;
  std::string cause;
  std::string sentence;
  std::string next_step;
  double for_s = 0;
  double offered = 0;
  double answered = 0;
  double refused = 0;
  double latency_ms = 0;
  double usual_offered = 0;
  double usual_latency_ms = 0;
  double best_answered = 0;
};

struct RefusedParty {
  std::string id;
  std::string name;
  double in_flight = 0;
  double bytes = 0;
  double refused = 0;
  double refused_per_s = 0;
  double since_s = 0;
};

struct Decision {
  std::string id;
  double age_ms = 0;
  std::string priority;
  std::string reason;
  double in_flight = 0;
  double limit = 0;
  double waited_ms = 0;
};

inline constexpr std::size_t kClassesMax = 4;

struct ReasonRow {
  std::string reason;
  std::array<double, kClassesMax> by_class{};  // per second, in the order of Snapshot::classes
  double shadow = 0;                           // would refuse, per second
  double sum = 0;
};

struct RefusalsPage {
  std::vector<ReasonRow> reasons;  // most refusals first
  std::vector<RefusedParty> actors;
  std::vector<RefusedParty> peers;
  std::vector<Decision> recent;
};

struct LimitMove {
  double at = 0;
  double from = 0;
  double to = 0;
  std::string reason;
};

struct KneeBin {
  double in_flight = 0;
  double answered_per_s = 0;
  double p99_ms = 0;
  double seconds = 0;
};

struct LimitPage {
  double demand = 0;
  std::string sentence;
  std::vector<LimitMove> moves;
  std::vector<KneeBin> knee;
};

struct Replica {
  std::int64_t id = 0;
  std::string endpoint;
  std::string state;
  std::string reason;
  double since_s = 0;
  double p50_ms = 0;
  double p99_ms = 0;
  double in_flight = 0;
  double failures_per_s = 0;
  double hedges = 0;
  double hedge_wins = 0;
  double weight = 0;
  std::string zone;
  bool quiet = false;        // no answer in the last second: p50_ms is older
  std::deque<double> spark;  // p50 of the last 20 s; 0: no answer
};

struct HistogramBin {
  double p50_ms_upper = 0;
  double replicas = 0;
};

struct ReplicasPage {
  double total = 0;
  double bad = 0;
  double matching = 0;
  double from = 0;
  double cohort_p50_ms = 0;
  double cohort_p99_ms = 0;
  std::vector<HistogramBin> histogram;
  std::vector<std::int64_t> order;
  std::map<std::int64_t, Replica> known;  // those of `order`
};

struct Addend {
  std::string name;
  double bytes = 0;
  std::string note;
};

struct PoolNow {
  std::string name;
  double used = 0;
  double peak = 0;
  double capacity = 0;
  double exhausted = 0;
  double bytes_each = 0;
};

struct MemoryPage {
  std::vector<Addend> addends;
  std::vector<PoolNow> pools;
  std::vector<std::string> hints;
  double cgroup_limit = 0;
  double cgroup_used = 0;
  double cgroup_mine = 0;
};

struct Override {
  std::string kind;
  std::string what;
  double left_s = 0;
};

struct Spark {
  std::deque<double> offered;
  std::deque<double> refused;
};

struct Snapshot {
  std::string version;
  std::string name;
  std::string view;
  std::string upstream;  // whose history this is
  std::vector<std::string> upstreams;
  std::vector<std::string> classes;
  std::string actions = "off";
  std::deque<Second> history;  // oldest first
  std::map<std::string, Spark> spark;
  std::deque<LiveEvent> events;  // oldest first

  bool has_tick = false;
  double hello_now = 0;  // the second in which the stream was opened
  double now = 0;
  std::string state;
  bool draining = false;
  VerdictNow verdict;
  double critical_shed = 0;
  double active = 0;
  double memory_share = 0;
  bool memory_readable = false;
  double ceiling_bytes = 0;
  std::string pressure;
  std::vector<UpstreamNow> now_of;  // each upstream
  std::vector<Override> overrides;
  RefusalsPage refusals;
  LimitPage limit;
  ReplicasPage replicas;
  MemoryPage memory;

  std::vector<std::string> history_columns;
  std::vector<std::string> replica_columns;
};

inline constexpr std::size_t kHistoryMax = 900;
inline constexpr std::size_t kEventsMax = 256;
inline constexpr std::size_t kSparkMax = 60;
inline constexpr std::size_t kReplicaSparkMax = 20;

/// Takes one message of the stream: `hello` begins anew and keeps what only ticks carry, so that
/// the screen does not go blank; `tick` goes on. False: it is none of ours, nothing changed.
[[nodiscard]] bool apply_message(Snapshot& snapshot, std::string_view event, std::string_view data);

}  // namespace weir::app::top
