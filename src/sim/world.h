#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/control/admission_controller.h"
#include "weir/policy/limit_policy.h"

#include "attempt.h"
#include "event_queue.h"
#include "message_sender.h"
#include "policy/recorded_decision.h"
#include "policy/shared_baseline.h"
#include "processor_sharing.h"
#include "read_latencies.h"
#include "read_race.h"
#include "recorder.h"
#include "replica_pool.h"
#include "scenario.h"
#include "timeout_lane.h"

namespace weir::inline v0::sim {

/// How all calls ended: started = ok + refused + failed + timed out + unfinished.
struct Balance {
  std::uint64_t started = 0;
  std::array<std::uint64_t, kCallEndCount> ended{};
  std::uint64_t unfinished = 0;
  std::uint64_t attempts = 0;
  std::uint64_t events = 0;
  std::uint64_t critical_shed = 0;
};

/// Creates the limit policy of a service instead of its configuration; for experiments and tests.
using PolicyMaker = std::function<std::unique_ptr<LimitPolicy>(const ServiceSpec&, Rng)>;

/// Gets each decision of an admission controller when its request ends, with the index of the
/// service as its scope.
using DecisionSink = std::function<void(const policy::RecordedDecision&)>;

/// One run of a scenario: callers, links, services and the real admission controllers between them,
/// in virtual time.
///
/// Promises: the same scenario and seed give the same run, event for event, with every compiler.
/// Every call ends exactly once (see Balance). Memory grows with the number of requests in the
/// system, not with the simulated time.
/// Thread-safety: none; run several worlds for several cores. Cost: about a quarter of a
/// microsecond per request. Lifetime: the scenario must outlive it.
class World {
 public:
  explicit World(const Scenario& scenario, const PolicyMaker& make_policy = nullptr);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// From now on; what a gateway would record.
  void record_decisions(DecisionSink sink) { sink_ = std::move(sink); }
  /// Runs all events up to `until`, which is at most end().
  void run_until(TimePoint until);
  /// The end of the run: the duration plus the time to drain.
  [[nodiscard]] TimePoint end() const noexcept { return end_; }
  [[nodiscard]] TimePoint now() const noexcept { return now_; }

  [[nodiscard]] const Recorder& recorder() const noexcept { return recorder_; }
  [[nodiscard]] Balance balance() const;
  [[nodiscard]] Recorder& recorder() noexcept { return recorder_; }
  [[nodiscard]] const ReplicaPool* replicas(std::uint32_t service) const noexcept {
    return services_[service].replicas.get();
  }
  [[nodiscard]] const AdmissionController* controller(std::uint32_t service) const noexcept {
    return services_[service].controller.get();
  }

 private:
  enum class Kind : std::uint8_t {
    kArrival,      // a load: its next call
    kThought,      // a load: a client has finished thinking
    kReach,        // an attempt reaches its service
    kServed,       // a worker has finished an attempt
    kTurnedAway,   // the connection of an attempt was refused
    kAnswered,     // an answer reaches its caller
    kRetry,        // an attempt's backoff has ended
    kTimeouts,     // the timeout lane of a caller
    kServiceLate,  // the timeout lane of a service
    kTick,         // a service: windows, memory
    kExpire,       // a service: waiters
    kFault,        // a service's fault begins
    kFaultEnd,
    kReplicaRetry,  // a request of a gateway is sent to a replica again
    kReplicaTick,   // a gateway: health of its replicas
    kHedgeDue,      // a request of a gateway: its answer is late
    kSenderTick,    // a sender: messages expire
    kShared,        // a service that divides its workers: a request has ended
    kExchange,      // a gateway: what it and others know of the service behind them
    kBucket,
  };

  /// A load, or a call that one service makes to another.
  struct Caller {
    const CallerSpec* spec = nullptr;
    std::uint32_t service = 0;
    Rng rng{0};
    TimeoutLane lane{};
  };

  struct Load {
    const LoadSpec* spec = nullptr;
    std::uint32_t caller = 0;
    RateProfile profile{};
    Rng rng{0};
    std::size_t trace_at = 0;
    std::uint32_t turn = 0;  // of actors and peers
    std::array<std::uint32_t, kPriorityCount> cohorts{};
    std::vector<std::string> names{};
    std::vector<Identity> actors{};
    std::vector<Identity> peers{};
  };

  /// Records the limit changes of a controller.
  struct Watch final : EventSink {
    ServiceTotals* totals = nullptr;
    void on_limit_change(const LimitChange& change) noexcept override;
  };

  struct Service {
    const ServiceSpec* spec = nullptr;
    std::uint32_t index = 0;
    std::uint32_t first_caller = 0;  // of its calls
    Rng rng{0};
    Watch watch{};
    std::unique_ptr<AdmissionController> controller{};
    TimePoint next_expire = TimePoint::max();
    std::uint32_t workers = 0;
    std::uint32_t busy = 0;       // workers in use; if they are divided: units of the requests
    std::uint32_t inside = 0;     // queued or running
    std::uint32_t in_flight = 0;  // admitted, not finished
    std::uint32_t ticks = 0;
    AttemptList queue{};
    AttemptList running{};                    // a worker serves it, or it is blocked on a call
    std::unique_ptr<ReplicaPool> replicas{};  // of a gateway
    ReplicaCounts replicas_seen{};
    std::unique_ptr<ReadRaces> races{};      // if its reads may be hedged
    std::unique_ptr<ReadLatencies> reads{};  // likewise
    TimePoint stalled_until{};               // its loop does nothing
    std::uint32_t held = 0;                  // requests without a replica
    ProcessorSharing processor{};            // if it divides its workers among all requests
    std::uint32_t shared_token = 0;
    TimeoutLane late{};
    std::unique_ptr<policy::SharedBaseline> baseline{};  // of its gateways
    std::uint32_t open_gateways = 0;                     // of those, the first that get calls
    std::vector<bool> active{};                          // faults in force
    TimePoint down_until{};
    TimePoint paused_until{};
    Duration paused_total{};
    double slow = 1;
    double error_share = 0;
    Duration error_time{};
    double absent_share = 0;
  };

  struct Sender {
    explicit Sender(const SenderSpec& spec) : messages(spec) {}
    MessageSender messages;
    bool pumping = false;
  };

  /// An attempt that a race begins.
  struct RaceBegin {
    std::uint32_t replica = 0;
    control::AttemptNumber number = 0;
    bool hedge = false;
  };

  // ---- world.cc
  void build(const PolicyMaker& make_policy);
  void build_load(std::uint32_t index, Rng& root);
  void build_service(std::uint32_t index, Rng& root, const PolicyMaker& make_policy);
  void add_caller(const CallerSpec& spec, std::uint32_t to, Rng& root);
  void handle(const SimEvent& event);
  void handle_attempt(const SimEvent& event);
  void close_bucket();
  void schedule(TimePoint at, Kind kind, std::uint32_t subject, std::uint32_t token = 0) {
    events_.push({at, static_cast<std::uint8_t>(kind), subject, token});
  }
  void schedule(Attempt& attempt, Duration after, Kind kind) {
    schedule(now_ + after, kind, attempt.index, ++attempt.token);
  }

  // ---- world_callers.cc
  void schedule_arrival(std::uint32_t index);
  void arrive(std::uint32_t index);
  void start_call(std::uint32_t index, const TraceRow* row);
  void start_inner_call(Attempt& parent, std::uint32_t* place = nullptr);
  void send(Attempt& attempt);
  [[nodiscard]] std::optional<Duration> link_time(Caller& caller);
  void answered(Attempt& attempt);
  void attempt_failed(Attempt& attempt, CallEnd end);
  void end_call(Attempt& attempt, CallEnd end);
  void give_up(Attempt& attempt);
  void add_timeout(TimeoutLane& lane, const Attempt& attempt, Duration timeout, Kind kind,
                   std::uint32_t subject);
  void run_lane(TimeoutLane& lane, Kind kind, std::uint32_t subject);
  [[nodiscard]] Duration retry_wait(Attempt& attempt);

  // ---- world_services.cc
  void reach(Attempt& attempt);
  void refuse(Attempt& attempt, Reason reason);
  void dispatch(Attempt& attempt);
  void begin_service(Attempt& attempt);
  [[nodiscard]] const Distribution& work_of(const Attempt& attempt) const noexcept;
  void served(Attempt& attempt);
  void inner_call_ended(Attempt& parent, std::uint32_t child, CallEnd end);
  void complete(Attempt& attempt, Outcome outcome, CallEnd end);
  void answer(Attempt& attempt, CallEnd end);
  void leave_service(Service& service, Attempt& attempt);
  void finish_permit(Service& service, Attempt& attempt, Outcome outcome);
  void record(const Attempt& attempt, policy::DecisionEnd end, Reason reason);
  void abandon(Attempt& attempt);
  void abandon_child(Attempt& parent);
  void lose_caller(Attempt& attempt, bool noticed);
  void service_late(Attempt& attempt);
  [[nodiscard]] bool survives(const Attempt& attempt) const noexcept;
  [[nodiscard]] Attempt& detach_caller(Attempt& attempt);
  void pull(Service& service);
  void collect_ready();
  [[nodiscard]] bool fits(const Service& service, const Attempt& attempt) const noexcept;
  void release_workers(Service& service, Attempt& attempt);
  static void on_ready(Waiter& waiter) noexcept;

  // ---- world_replicas.cc
  void build_replicas(Service& service, Rng& root);
  void begin_replica_call(Attempt& parent);
  void send_to_replica(Attempt& parent);
  void hold_for_replica(Attempt& parent);
  [[nodiscard]] bool may_leave_hold(Attempt& parent);
  void leave_hold(Attempt& parent) noexcept;
  void replica_call_ended(Attempt& parent, CallEnd end);
  [[nodiscard]] std::optional<Duration> wait_to_resend(const Attempt& parent, ReplicaEnd how);
  void resend(Attempt& parent, Duration wait);
  void cancel_replica_call(Attempt& parent);
  void rescue_from(Service& service, std::uint32_t replica);
  void tick_replicas(Service& service);

  // ---- world_races.cc
  void build_races(Service& service);
  [[nodiscard]] ReadRace& race_of(const Attempt& parent) noexcept;
  void leave_race(Attempt& parent);
  [[nodiscard]] ReplicaCandidates candidates(const Attempt& parent);
  [[nodiscard]] control::HedgeMoment moment(const Attempt& parent,
                                            const ReplicaCandidates& found) const;
  void hedge_due(Attempt& parent);
  void race_attempt_ended(Attempt& parent, std::uint32_t child, CallEnd end);
  void attempt_over(Service& service, const ReadRace::Place& place, ReplicaEnd how);
  void follow(Attempt& parent, const control::HedgeStep& step, const ReplicaCandidates& found,
              ReplicaEnd how);
  void begin_in_race(Attempt& parent, const RaceBegin& begin);
  void next_in_race(Attempt& parent, std::uint32_t replica);
  void begin_later(Attempt& parent, const control::HedgeStep& step, ReplicaEnd how);
  void lose(Attempt& parent, ReadRace::Place& place, ReplicaEnd how);
  void cancel_race(Attempt& parent);
  [[nodiscard]] bool may_move(const Attempt& parent, const ReadRace::Place& place);
  void rescue_in_race(Attempt& parent, std::uint32_t replica);
  void arm_race(Attempt& parent);
  void note_step(Attempt& parent, const control::HedgeStep& step);

  // ---- world_senders.cc
  void build_senders();
  void put_message(Attempt& attempt);
  [[nodiscard]] Sender& sender_of(const Attempt& attempt) noexcept;
  void pump(Sender& sender);
  void message_ended(Attempt& attempt, CallEnd end);
  void settle_messages(Sender& sender);
  void tick_sender(std::uint32_t index);

  // ---- world_sharing.cc
  void share(Service& service, Attempt& attempt, Duration work);
  void reshare(Service& service);
  void schedule_shared(Service& service);
  void served_shared(Service& service);

  // ---- world_gateways.cc
  void build_gateways(Service& service);
  void refresh_gateways(Service& service) noexcept;
  void exchange(Service& gateway, std::uint32_t token);

  // ---- world_faults.cc
  [[nodiscard]] std::optional<TimePoint> after_stall(const SimEvent& event) const;
  void begin_fault(Service& service, std::uint32_t index);
  void end_fault(Service& service, std::uint32_t index);
  void crash(Service& service, Duration lasts);
  void refresh_faults(Service& service);
  void tick(Service& service);
  void expire(Service& service);
  [[nodiscard]] double memory_of(const Service& service) const noexcept;

  const Scenario& scenario_;
  TimePoint now_{};
  TimePoint stop_;  // no new calls after this
  TimePoint end_;
  Recorder recorder_;
  EventQueue events_;
  std::vector<Caller> callers_;
  std::vector<Load> loads_;
  std::vector<Service> services_;
  std::vector<std::unique_ptr<Sender>> senders_;
  AttemptPool attempts_;
  std::vector<std::uint32_t> ready_;  // waiters that were granted or refused
  bool collecting_ = false;
  bool stalls_ = false;  // a gateway stalls at some time
  Balance balance_;
  DecisionSink sink_;
};

}  // namespace weir::inline v0::sim
