#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/time.h"
#include "weir/control/admission_stats.h"
#include "weir/control/permit.h"
#include "weir/control/waiter.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::sim {

enum class CallEnd : std::uint8_t;

/// The state of an attempt. It has at most one pending event, which its token identifies.
enum class AttemptState : std::uint8_t {
  kFree,
  kToService,   // on the link
  kWaiting,     // for a permit
  kQueued,      // admitted, no worker yet
  kServing,     // a worker serves it
  kCalling,     // blocked on a service that its service calls
  kTurnedAway,  // the service is down; the refusal is on the link
  kToCaller,    // the answer is on the link
  kBackingOff,  // between two attempts
  kOutgoing,    // a message in its sender's queue
};

inline constexpr std::uint32_t kNoAttempt = ~std::uint32_t{0};

/// What a gateway knows about one of its requests and the replicas that it was sent to.
struct ReplicaCall {
  static constexpr std::size_t kAttemptsMax = 10;

  std::array<std::uint32_t, kAttemptsMax> tried{};
  std::uint32_t attempts = 0;
  std::uint32_t current = 0;
  bool in_flight = false;
  bool turned_away = false;   // the last attempt: no connection
  bool error_answer = false;  // the last attempt: a bad answer
  bool absent = false;        // the last attempt: "not found"
  TimePoint sent_at{};
  bool held = false;  // no replica can be used
  TimePoint held_until{};

  [[nodiscard]] std::span<const std::uint32_t> tried_ones() const noexcept {
    return std::span(tried).first(attempts);
  }
  /// In a race, attempts that reached nobody may be more than the place for them.
  void note_tried(std::uint32_t replica) noexcept {
    if (attempts < kAttemptsMax) tried[attempts++] = replica;
    held_until = {};
  }
  void note_sent(std::uint32_t replica, TimePoint now) noexcept {
    WEIR_ASSERT(attempts < kAttemptsMax);
    tried[attempts++] = current = replica;
    in_flight = true;
    turned_away = error_answer = false;
    sent_at = now;
    held_until = {};
  }
};

/// One attempt of a call, and the state of its call: retries reuse the place, unless the service
/// still works on an attempt that its caller abandoned (that attempt continues without a caller).
struct Attempt {
  std::uint32_t index = 0;
  std::uint32_t token = 0;  // of the pending event
  std::uint32_t life = 0;   // counts attempts made in this place: timeouts of older ones are stale
  AttemptState state = AttemptState::kFree;
  Priority priority = Priority::kNormal;
  CallEnd end{};
  bool has_caller = true;
  bool fails = false;        // with an error answer
  bool turned_away = false;  // no connection
  bool absent = false;       // answered "not found"
  bool lost = false;         // on the link: only a timeout ends it
  bool counted = false;      // in its service's in flight
  bool holds_worker = false;
  std::uint16_t width = 1;   // workers that it uses at once
  std::uint16_t held = 0;    // of those, while it is served
  std::uint16_t number = 0;  // attempts made, this one included
  std::uint16_t call_at = 0;
  std::uint32_t caller = 0;
  std::uint32_t service = 0;
  std::uint32_t cohort = 0;
  std::uint32_t load = kNoAttempt;  // none for calls between services
  std::uint32_t parent = kNoAttempt;
  std::uint32_t child = kNoAttempt;
  std::uint32_t race = kNoAttempt;      // of a read that may be hedged: it has the attempts
  std::uint32_t message = kNoAttempt;   // of a sender
  std::uint32_t previous = kNoAttempt;  // in the service's queue or running list
  std::uint32_t next = kNoAttempt;
  std::uint32_t actor = kNoAttempt;  // index into the load's names
  std::uint32_t peer = kNoAttempt;
  std::uint32_t cost = 1;
  bool hedge = false;  // of its caller: admitted last
  std::uint64_t bytes = 0;
  TimePoint called_at{};
  TimePoint waits_from{};
  TimePoint dispatched_at{};
  TimePoint serving_from{};
  TimePoint deadline{};
  Duration paused_before{};  // pauses of the service already added to its service time
  Duration paused_at_start{};
  Duration hint{};
  ScopeLoad load_then{};  // when it was decided; only if decisions are recorded
  ReplicaCall replica{};
  void* world = nullptr;
  Permit permit{};
  Waiter waiter;

  Attempt(Waiter::Ready on_ready, void* owner) noexcept : world(owner), waiter(on_ready, this) {}

  /// Takes over the call of another attempt, as its caller sees it.
  void inherit(const Attempt& other) noexcept {
    priority = other.priority;
    number = other.number;
    caller = other.caller;
    service = other.service;
    cohort = other.cohort;
    load = other.load;
    parent = other.parent;
    actor = other.actor;
    peer = other.peer;
    cost = other.cost;
    hedge = other.hedge;
    width = other.width;
    bytes = other.bytes;
    called_at = other.called_at;
    message = other.message;
  }
  /// Resets the values of the previous use of the place.
  void reset() noexcept {
    has_caller = true;
    fails = lost = counted = holds_worker = turned_away = absent = false;
    number = call_at = 0;
    cohort = load = parent = child = race = message = actor = peer = kNoAttempt;
    cost = 1;
    hedge = false;
    width = 1;
    held = 0;
    bytes = 0;
    deadline = {};
    hint = {};
    replica = {};
  }
};

/// Storage for attempts: grows in blocks, never moves them, reuses the place freed last.
class AttemptPool {
 public:
  AttemptPool(Waiter::Ready on_ready, void* world) noexcept : on_ready_(on_ready), world_(world) {}

  [[nodiscard]] Attempt& operator[](std::uint32_t index) noexcept {
    return blocks_[index / kBlock][index % kBlock];
  }
  [[nodiscard]] const Attempt& operator[](std::uint32_t index) const noexcept {
    return blocks_[index / kBlock][index % kBlock];
  }

  [[nodiscard]] Attempt& take() {
    if (free_.empty()) grow();
    Attempt& attempt = (*this)[free_.back()];
    free_.pop_back();
    attempt.reset();
    return attempt;
  }

  void give_back(Attempt& attempt) {
    WEIR_ASSERT(attempt.state != AttemptState::kFree && !attempt.permit);
    attempt.state = AttemptState::kFree;
    ++attempt.token;
    ++attempt.life;
    free_.push_back(attempt.index);
  }

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

 private:
  static constexpr std::uint32_t kBlock = 1024;

  void grow() {
    auto block = std::allocator<Attempt>().allocate(kBlock);
    blocks_.emplace_back(block);
    for (std::uint32_t i = 0; i < kBlock; ++i) {
      std::construct_at(block + i, on_ready_, world_);
      block[i].index = size_ + i;
    }
    for (std::uint32_t i = kBlock; i > 0; --i) free_.push_back(size_ + i - 1);
    size_ += kBlock;
  }

  struct FreeBlock {
    void operator()(Attempt* block) const noexcept {
      std::destroy_n(block, kBlock);
      std::allocator<Attempt>().deallocate(block, kBlock);
    }
  };
  std::vector<std::unique_ptr<Attempt[], FreeBlock>> blocks_;
  std::vector<std::uint32_t> free_;
  std::uint32_t size_ = 0;
  Waiter::Ready on_ready_;
  void* world_;
};

/// A queue of attempts linked through them; an attempt is in one list at most.
struct AttemptList {
  std::uint32_t first = kNoAttempt;
  std::uint32_t last = kNoAttempt;
  std::uint32_t size = 0;

  void push_back(AttemptPool& pool, Attempt& attempt) noexcept {
    attempt.previous = last;
    attempt.next = kNoAttempt;
    (last == kNoAttempt ? first : pool[last].next) = attempt.index;
    last = attempt.index;
    ++size;
  }
  void remove(AttemptPool& pool, Attempt& attempt) noexcept {
    (attempt.previous == kNoAttempt ? first : pool[attempt.previous].next) = attempt.next;
    (attempt.next == kNoAttempt ? last : pool[attempt.next].previous) = attempt.previous;
    attempt.previous = attempt.next = kNoAttempt;
    --size;
  }
};

}  // namespace weir::inline v0::sim
