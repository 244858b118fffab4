#pragma once

#include <cstdint>

#include "weir/base/assert.h"
#include "weir/base/enum_names.h"
#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/policy/outgoing_state.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::inline control {

class OutgoingQueue;

/// How an item ended. Every item that is offered ends in exactly one of these ways.
enum class OutgoingEnd : std::uint8_t {
  kSent,
  kFailed,   // it could not be sent, or its owner withdrew it
  kDropped,  // a newer item took its place in the overflow ring, or the queue was closed
  kRefused,  // there was no place for it: put() says so
  kExpired,  // its deadline passed while it was queued
};
WEIR_ENUM_NAMES(OutgoingEnd, "sent", "failed", "dropped", "refused", "expired")

/// Why an item was refused.
enum class OutgoingRefusal : std::uint8_t {
  kNone,           // it was accepted
  kFull,           // queue and ring are full of items that are more important
  kBytes,          // the items of this destination hold too many bytes
  kTotalBytes,     // the items of all destinations do
  kTooLarge,       // it is larger than what a destination may hold
  kDeadline,       // its deadline had passed
  kNoDestination,  // max_destinations have a queue, and all are in use
};
WEIR_ENUM_NAMES(OutgoingRefusal, "none", "full", "bytes", "total_bytes", "too_large", "deadline",
                "no_destination")

/// Something to be sent to a destination. Its owner holds the memory (a field of its request or
/// message), so queueing does not allocate.
///
/// `on_end` is called once for each accepted item, with how it ended; the item is then free, and
/// may be destroyed or offered again by the callback. It is not called for a refused one, which
/// put() reports, nor for a withdrawn one.
/// Thread-safety: that of its queue. Lifetime: must not be destroyed while it is queued or in
/// flight.
class OutgoingItem {
 public:
  using OnEnd = void (*)(OutgoingItem&, OutgoingEnd) noexcept;

  explicit OutgoingItem(OnEnd on_end = nullptr, void* context = nullptr) noexcept
      : on_end_(on_end), context_(context) {}
  OutgoingItem(const OutgoingItem&) = delete;
  OutgoingItem& operator=(const OutgoingItem&) = delete;
  ~OutgoingItem() { WEIR_ASSERT(place_ == Place::kNone); }

  // Set before put().
  Priority priority = Priority::kNormal;
  std::uint64_t bytes = 0;
  TimePoint deadline{};  // it must be taken before; zero: none

  [[nodiscard]] void* context() const noexcept { return context_; }
  [[nodiscard]] bool queued() const noexcept {
    return place_ != Place::kNone && place_ != Place::kInFlight;
  }
  [[nodiscard]] bool in_flight() const noexcept { return place_ == Place::kInFlight; }
  /// The queue that holds it; nullptr: none.
  [[nodiscard]] OutgoingQueue* queue() const noexcept { return queue_; }

 private:
  friend class OutgoingQueue;
  enum class Place : std::uint8_t { kNone, kCritical, kPrimary, kRing, kInFlight };

  OnEnd on_end_;
  void* context_;
  OutgoingQueue* queue_ = nullptr;
  ListHook<OutgoingItem> hook_;
  std::uint64_t sequence_ = 0;  // order of arrival in its queue
  Place place_ = Place::kNone;
};

/// What became of an offered item, and what its sender should do next.
struct OutgoingPut {
  OutgoingRefusal refusal = OutgoingRefusal::kNone;
  bool in_ring = false;
  std::uint32_t dropped = 0;  // items that left so that it could enter
  policy::OutgoingState state = policy::OutgoingState::kHealthy;
  std::uint32_t fill_permille = 0;
  policy::OutgoingAdvice advice{};

  [[nodiscard]] bool accepted() const noexcept { return refusal == OutgoingRefusal::kNone; }
};

}  // namespace weir::inline v0::inline control
