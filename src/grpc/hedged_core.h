#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include "weir/base/result.h"
#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/control/outgoing_config.h"
#include "weir/control/outgoing_queue.h"
#include "weir/experimental/grpc/hedged_channel.h"

#include "control/redundancy_budget.h"
#include "hedged_attempt.h"
#include "hedged_methods.h"
#include "hedged_pending.h"
#include "hedged_tag.h"
#include "policy/hedge_decision.h"
#include "policy/overload_retry.h"
#include "replica_links.h"

namespace weir::inline v0::grpc {

/// What a HedgedChannel is made of: one completion queue with its threads, the calls, the replicas,
/// and one timer for whatever is due next.
///
/// Every event is handled under one lock; callbacks run after it is given back.
/// Thread-safety: the public half any thread; the half for calls under the lock.
/// Lifetime: close() before destruction, which HedgedChannel does.
class HedgedCore {
 public:
  HedgedCore(HedgedChannelConfig config, HedgedChannel::Transport transport);
  HedgedCore(const HedgedCore&) = delete;
  HedgedCore& operator=(const HedgedCore&) = delete;
  ~HedgedCore();

  [[nodiscard]] Result<HedgedCallId, ::grpc::Status> send(const std::string& method,
                                                          ::grpc::ByteBuffer request,
                                                          HedgedChannel::OnAnswer on_answer,
                                                          const HedgedCallOptions& options);
  bool cancel(HedgedCallId call);
  void set_replicas(const std::vector<HedgedReplica>& replicas);
  bool wait_connected(std::size_t replicas, Duration at_most);
  bool close(Duration at_most);
  [[nodiscard]] HedgedStats stats();
  [[nodiscard]] bool in_own_thread() const;

  // ---- for calls, under the lock
  [[nodiscard]] TimePoint now() const noexcept { return now_; }
  [[nodiscard]] const HedgedChannelConfig& config() const noexcept { return config_; }
  [[nodiscard]] ReplicaLinks& replicas() noexcept { return replicas_; }
  [[nodiscard]] control::RedundancyBudget& budget() noexcept { return budget_; }
  [[nodiscard]] Rng& rng() noexcept { return rng_; }
  [[nodiscard]] HedgedStats& counts() noexcept { return counted_; }
  [[nodiscard]] bool overloaded() const;
  void count_no_hedge(policy::NoHedge reason) noexcept {
    ++no_hedge_[static_cast<std::size_t>(reason)];
  }
  void count_answer(bool overload) noexcept { ++(overload ? bad_answers_ : good_answers_); }

  /// Queues an attempt; nullptr: the queue of the replica is full.
  [[nodiscard]] HedgedAttempt* begin(HedgedPending& call, ReplicaLink& link,
                                     control::AttemptNumber number, bool hedge);
  /// The call does not need the attempt any more. `paced`: not cancelled if the replica has been
  /// sent too many resets.
  void leave(HedgedAttempt& attempt, bool paced);
  void end(HedgedPending& call, HedgedEnd how, HedgedAnswer answer);

 private:
  using Attempts = std::unordered_map<const HedgedAttempt*, std::unique_ptr<HedgedAttempt>>;
  struct Finished {
    HedgedChannel::OnAnswer on_answer;
    HedgedAnswer answer;
  };
  class Turn;  // of one event or call: the lock, the time, and what is due afterwards

  void run();
  [[nodiscard]] static bool is_end_of_hedge(const HedgedEvent& event);
  void handle(const HedgedEvent& first);
  [[nodiscard]] std::vector<HedgedEvent> with_all_that_came(const HedgedEvent& first);
  void dispatch(const HedgedEvent& event);
  void on_attempt(HedgedAttempt& attempt, const HedgedEvent& event);
  void on_timer();
  void tick();
  void pump(ReplicaLink& link);
  void destroy(HedgedAttempt& attempt);
  void rearm(HedgedPending& call);
  void arm_alarm();
  [[nodiscard]] ::grpc::Status refusal() const;
  void on_state(ReplicaLink& link);
  void cancel_all();

  const HedgedChannelConfig config_;
  const HedgedMethods methods_;
  const control::OutgoingConfig outgoing_;
  control::OutgoingTotals totals_;
  const std::shared_ptr<::grpc::ChannelCredentials> credentials_;
  const ::grpc::ChannelArguments arguments_;

  mutable std::mutex mutex_;         // all below, except where it is said
  std::condition_variable changed_;  // a connection, or the end of a call
  TimePoint now_{};
  Rng rng_;
  control::RedundancyBudget budget_;
  ReplicaLinks replicas_;
  policy::OverloadedAnswers answers_;
  std::uint32_t good_answers_ = 0;
  std::uint32_t bad_answers_ = 0;
  HedgedCallId ids_ = 0;
  std::unordered_map<HedgedCallId, std::unique_ptr<HedgedPending>> calls_;
  Attempts attempts_;
  std::set<std::pair<TimePoint, HedgedCallId>> due_;
  TimePoint tick_at_{};
  std::vector<Finished> finished_;
  std::vector<std::unique_ptr<HedgedPending>> ended_;  // freed after the event
  HedgedStats counted_;
  std::array<std::uint64_t, policy::kNoHedgeCount> no_hedge_{};
  bool closed_ = false;
  bool stopping_ = false;  // nothing may be given to the completion queue any more

  ::grpc::CompletionQueue queue_;
  HedgedTag timer_tag_{.kind = HedgedTag::Kind::kTimer, .owner = this};
  ::grpc::Alarm alarm_;
  bool alarm_out_ = false;
  TimePoint alarm_at_ = TimePoint::max();

  std::mutex close_mutex_;  // one close() at a time
  bool drained_ = true;     // under close_mutex_, as threads_
  std::vector<std::thread> threads_;
  std::vector<std::thread::id> thread_ids_;  // does not change after construction
};

}  // namespace weir::inline v0::grpc
