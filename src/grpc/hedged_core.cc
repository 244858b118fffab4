#include "hedged_core.h"

#include <algorithm>
#include <utility>

#include <grpc/support/time.h>

#include "weir/base/assert.h"
#include "weir/embed/clock.h"

#include "hedged_setup.h"
#include "policy/redundancy_budget.h"

namespace weir::inline v0::grpc {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr std::size_t kEventsMax = 64;
constexpr Duration kLongestWait = std::chrono::hours(24);

}  // namespace

/// The lock, and what is done before it is given back.
class HedgedCore::Turn {
 public:
  explicit Turn(HedgedCore& core) : core_(core), lock_(core.mutex_) { core.now_ = embed::now(); }
  ~Turn() {
    core_.ended_.clear();
    core_.arm_alarm();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  HedgedCore& core_;
  const std::unique_lock<std::mutex> lock_;
};

HedgedCore::HedgedCore(HedgedChannelConfig config, HedgedChannel::Transport transport)
    : config_(std::move(config)),
      methods_(config_.methods),
      outgoing_(hedge_queues(config_)),
      credentials_(std::move(transport.credentials)),
      arguments_(hedge_arguments(config_, std::move(transport.arguments))),
      rng_(embed::random_seed()),
      budget_(hedge_budget_rules(config_.hedge)),
      replicas_(config_, methods_.read_classes()) {
  {
    const Turn turn(*this);
    tick_at_ = now_ + kTick;
  }
  set_replicas(config_.replicas);
  for (std::uint32_t i = 0; i < config_.threads; ++i) {
    threads_.emplace_back([this] { run(); });
    thread_ids_.push_back(threads_.back().get_id());
  }
}

HedgedCore::~HedgedCore() {
  close(Duration(0));
}

bool HedgedCore::in_own_thread() const {
  const auto& ids = thread_ids_;
  return std::find(ids.begin(), ids.end(), std::this_thread::get_id()) != ids.end();
}

// ---- calls

Result<HedgedCallId, ::grpc::Status> HedgedCore::send(const std::string& method,
                                                      ::grpc::ByteBuffer request,
                                                      HedgedChannel::OnAnswer on_answer,
                                                      const HedgedCallOptions& options) {
  ::grpc::Status objection = objection_to(method, request, options, config_);
  const Turn turn(*this);
  if (objection.ok()) objection = refusal();
  if (!objection.ok()) {
    ++counted_.refused;
    return unexpected(std::move(objection));
  }
  ++counted_.calls;
  const HedgedCallId id = ++ids_;
  const Duration left = std::min(options.timeout > Duration(0) ? options.timeout : config_.timeout,
                                 time_left(options));
  auto owned = std::make_unique<HedgedPending>(
      *this, HedgedPending::Start{.id = id,
                                  .method = method,
                                  .kind = methods_.of(method),
                                  .request = std::move(request),
                                  .options = options,
                                  .deadline = now_ + left,
                                  .wire_deadline = wire_time_in(left),
                                  .on_answer = std::move(on_answer)});
  HedgedPending& call = *owned;
  calls_.emplace(id, std::move(owned));
  call.begin();
  rearm(call);
  return id;
}

::grpc::Status HedgedCore::refusal() const {
  if (closed_) return {::grpc::StatusCode::UNAVAILABLE, "weir: closed: the channel was closed"};
  if (calls_.size() < config_.max_in_flight) return ::grpc::Status::OK;
  return {::grpc::StatusCode::RESOURCE_EXHAUSTED, "weir: queue_full: max_in_flight (" +
                                                      std::to_string(config_.max_in_flight) +
                                                      ") calls are under way"};
}

bool HedgedCore::cancel(HedgedCallId call) {
  const Turn turn(*this);
  const auto found = calls_.find(call);
  if (found == calls_.end()) return false;
  found->second->end_early(HedgedEnd::kCancelled,
                           {::grpc::StatusCode::CANCELLED, "weir: cancelled: by the caller"});
  return true;
}

void HedgedCore::end(HedgedPending& call, HedgedEnd how, HedgedAnswer answer) {
  const auto found = calls_.find(call.facts().id);
  WEIR_ASSERT(found != calls_.end());
  due_.erase({call.armed_for, call.facts().id});
  ++(how == HedgedEnd::kAnswered    ? counted_.answered
     : how == HedgedEnd::kCancelled ? counted_.cancelled
                                    : counted_.failed);
  finished_.push_back({.on_answer = call.take_callback(), .answer = std::move(answer)});
  ended_.push_back(std::move(found->second));
  calls_.erase(found);
  if (calls_.empty()) changed_.notify_all();
}

bool HedgedCore::overloaded() const {
  return answers_.overloaded() || (config_.overloaded && config_.overloaded());
}

// ---- attempts

HedgedAttempt* HedgedCore::begin(HedgedPending& call, ReplicaLink& link,
                                 control::AttemptNumber number, bool hedge) {
  const auto known = std::find_if(replicas_.links().begin(), replicas_.links().end(),
                                  [&](const auto& one) { return one.get() == &link; });
  WEIR_ASSERT(known != replicas_.links().end());
  auto owned = std::make_unique<HedgedAttempt>(
      HedgedAttempt::Setup{.call = &call,
                           .link = *known,
                           .number = number,
                           .hedge = hedge,
                           .priority = call.facts().options.priority,
                           .bytes = call.facts().request.Length()});
  HedgedAttempt& attempt = *owned;
  if (!link.queue.put(attempt.item, now_).accepted()) return nullptr;
  ++link.in_flight;
  attempts_.emplace(&attempt, std::move(owned));
  pump(link);
  return &attempt;
}

void HedgedCore::pump(ReplicaLink& link) {
  while (control::OutgoingItem* item = link.queue.get(now_)) {
    auto& attempt = *static_cast<HedgedAttempt*>(item->context());
    WEIR_ASSERT(attempt.call != nullptr && !stopping_);
    ++link.pace.streams;
    const HedgedPending::Start& facts = attempt.call->facts();
    attempt.start({.method = facts.method,
                   .options = facts.options,
                   .deadline = facts.wire_deadline,
                   .attempt = attempt.call->attempt_header()},
                  queue_);
  }
}

void HedgedCore::leave(HedgedAttempt& attempt, bool paced) {
  ReplicaLink& link = *attempt.link;
  if (!attempt.started()) {
    link.queue.withdraw(attempt.item);
    --link.in_flight;
    attempts_.erase(&attempt);
    return;
  }
  const bool reset =
      !paced || policy::end_of_loser({.multiplexed = true, .bytes_left = {}}, link.pace, {},
                                     now_) == policy::LoserEnd::kReset;
  if (reset) {
    ++counted_.losers_cancelled;
    attempt.cancel();
  } else {
    ++counted_.losers_drained;
    attempt.drains_since = now_;
  }
}

void HedgedCore::destroy(HedgedAttempt& attempt) {
  const std::shared_ptr<ReplicaLink> link = attempt.link;
  link->queue.finish(attempt.item, control::OutgoingEnd::kSent);
  --link->in_flight;
  attempts_.erase(&attempt);
  pump(*link);
}

// ---- events

/// The end of a hedge may come at the same instant as that of its primary, which goes first: so
/// what has come by now is handled together.
bool HedgedCore::is_end_of_hedge(const HedgedEvent& event) {
  const HedgedTag::Kind kind = event.tag->kind;
  if (kind != HedgedTag::Kind::kMessage && kind != HedgedTag::Kind::kStatus) return false;
  return static_cast<const HedgedAttempt*>(event.tag->owner)->hedge;
}

void HedgedCore::run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) handle({.tag = static_cast<HedgedTag*>(tag), .ok = ok});
}

void HedgedCore::handle(const HedgedEvent& first) {
  std::vector<Finished> finished;
  {
    const Turn turn(*this);
    if (is_end_of_hedge(first)) {
      for (const HedgedEvent& event : with_all_that_came(first)) dispatch(event);
    } else {
      dispatch(first);
    }
    finished.swap(finished_);
  }
  for (Finished& one : finished) one.on_answer(std::move(one.answer));
}

std::vector<HedgedEvent> HedgedCore::with_all_that_came(const HedgedEvent& first) {
  std::vector<HedgedEvent> events = {first};
  void* tag = nullptr;
  bool ok = false;
  while (events.size() < kEventsMax &&
         queue_.AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC)) ==
             ::grpc::CompletionQueue::GOT_EVENT) {
    events.push_back({.tag = static_cast<HedgedTag*>(tag), .ok = ok});
  }
  std::stable_partition(events.begin(), events.end(),
                        [](const HedgedEvent& event) { return !is_end_of_hedge(event); });
  return events;
}

void HedgedCore::dispatch(const HedgedEvent& event) {
  switch (event.tag->kind) {
    case HedgedTag::Kind::kTimer:
      alarm_out_ = false;
      return on_timer();
    case HedgedTag::Kind::kState:
      return on_state(*static_cast<ReplicaLink*>(event.tag->owner));
    case HedgedTag::Kind::kHeaders:
    case HedgedTag::Kind::kRequest:
    case HedgedTag::Kind::kMessage:
    case HedgedTag::Kind::kStatus:
      return on_attempt(*static_cast<HedgedAttempt*>(event.tag->owner), event);
  }
}

void HedgedCore::on_attempt(HedgedAttempt& attempt, const HedgedEvent& event) {
  const HedgedTag::Kind kind = event.tag->kind;
  attempt.returned(kind, event.ok);
  if (HedgedPending* call = attempt.call) {
    const bool resolves = kind == HedgedTag::Kind::kMessage || kind == HedgedTag::Kind::kStatus;
    if (kind == HedgedTag::Kind::kHeaders && event.ok) {
      call->on_headers(attempt);
    } else if (resolves && attempt.resolved()) {
      call->on_resolved(attempt);
    }
    rearm(*call);
  }
  if (attempt.drained()) destroy(attempt);
}

void HedgedCore::on_state(ReplicaLink& link) {
  if (link.watched(now_, rng_)) {
    replicas_.publish(now_);
    changed_.notify_all();
  }
  if (!stopping_ && link.in_set) link.watch(queue_);
}

// ---- time

void HedgedCore::rearm(HedgedPending& call) {
  if (!call.over() && call.due() != call.armed_for) {
    due_.erase({call.armed_for, call.facts().id});
    call.armed_for = call.due();
    due_.emplace(call.armed_for, call.facts().id);
  }
}

void HedgedCore::on_timer() {
  while (!due_.empty() && due_.begin()->first <= now_) {
    HedgedPending& call = *calls_.at(due_.begin()->second);
    due_.erase(due_.begin());
    call.armed_for = TimePoint{};
    call.on_time();
    rearm(call);
  }
  if (now_ >= tick_at_) tick();
}

void HedgedCore::tick() {
  tick_at_ = now_ + kTick;
  replicas_.tick(now_);
  answers_.add(
      {.good = std::exchange(good_answers_, 0U), .overloaded = std::exchange(bad_answers_, 0U)});
  const Duration drain_max = policy::CancelPaceRules{}.drain_max;
  for (const auto& [key, attempt] : attempts_) {
    const bool drains = attempt->drains_since != TimePoint{};
    if (!drains || now_ - attempt->drains_since < drain_max) continue;
    if (policy::end_of_loser({.multiplexed = true, .bytes_left = {}}, attempt->link->pace, {},
                             now_) == policy::LoserEnd::kReset) {
      attempt->drains_since = {};
      attempt->cancel();
    }
  }
}

/// An alarm that is out already is cancelled if it would be too late: its tag comes back at once.
void HedgedCore::arm_alarm() {
  if (stopping_) return;
  TimePoint next = due_.empty() ? tick_at_ : std::min(tick_at_, due_.begin()->first);
  if (!finished_.empty()) next = now_;
  if (!alarm_out_) {
    alarm_out_ = true;
    alarm_at_ = next;
    alarm_.Set(&queue_, wire_time_in(next - now_), &timer_tag_);
  } else if (next < alarm_at_) {
    alarm_at_ = next;
    alarm_.Cancel();
  }
}

// ---- replicas

void HedgedCore::set_replicas(const std::vector<HedgedReplica>& replicas) {
  const Turn turn(*this);
  if (stopping_) return;
  replicas_.set(
      replicas,
      [&](const std::string& target, bool first) {
        return std::make_shared<ReplicaLink>(ReplicaLink::Setup{
            .target = target,
            .read_classes = methods_.read_classes(),
            .health = first ? policy::EndpointHealth(now_)
                            : policy::EndpointHealth::joined(now_, policy::EndpointHealthRules{}),
            .hedge = config_.hedge,
            .outgoing = outgoing_,
            .totals = totals_,
            .credentials = credentials_,
            .arguments = arguments_});
      },
      now_, rng_);
  for (const auto& link : replicas_.links()) {
    if (!link->watching) link->watch(queue_);
  }
}

bool HedgedCore::wait_connected(std::size_t replicas, Duration at_most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::min(at_most, kLongestWait), [&] {
    const auto& links = replicas_.links();
    return static_cast<std::size_t>(std::count_if(links.begin(), links.end(), [](const auto& link) {
             return link->connected();
           })) >= replicas;
  });
}

// ---- the end

bool HedgedCore::close(Duration at_most) {
  WEIR_ASSERT(!in_own_thread());
  const std::scoped_lock one_at_a_time(close_mutex_);
  if (threads_.empty()) return drained_;
  {
    std::unique_lock lock(mutex_);
    closed_ = true;
    drained_ =
        changed_.wait_for(lock, std::min(at_most, kLongestWait), [&] { return calls_.empty(); });
  }
  {
    const Turn turn(*this);
    cancel_all();
    stopping_ = true;
    if (alarm_out_) alarm_.Cancel();
    queue_.Shutdown();  // the threads end when all that gRPC has is back
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  WEIR_ASSERT(attempts_.empty());
  for (Finished& one : std::exchange(finished_, {})) one.on_answer(std::move(one.answer));
  return drained_;
}

void HedgedCore::cancel_all() {
  while (!calls_.empty()) {
    calls_.begin()->second->end_early(
        HedgedEnd::kCancelled,
        {::grpc::StatusCode::CANCELLED, "weir: closed: the channel was closed"});
  }
  for (const auto& [key, attempt] : attempts_) attempt->cancel();
}

HedgedStats HedgedCore::stats() {
  const Turn turn(*this);
  HedgedStats stats = counted_;
  stats.in_flight = static_cast<std::uint32_t>(calls_.size());
  stats.budget = budget_.balance_millitokens() / policy::kRedundancyToken;
  stats.overloaded = overloaded();
  for (std::size_t i = 0; i < no_hedge_.size(); ++i) {
    if (no_hedge_[i] > 0) stats.no_hedge.emplace_back(policy::kNoHedgeNames[i], no_hedge_[i]);
  }
  for (const auto& link : replicas_.links()) stats.replicas.push_back(link->stats(now_));
  return stats;
}

}  // namespace weir::inline v0::grpc
