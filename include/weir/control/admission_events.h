#pragma once

#include <cstdint>
#include <string_view>

#include "weir/base/time.h"
#include "weir/policy/limit_policy.h"
#include "weir/policy/memory_shedding.h"
#include "weir/policy/priority.h"
#include "weir/policy/reason.h"

namespace weir::inline v0::inline control {

/// The limit of a scope changed.
struct LimitChange {
  std::string_view scope;
  std::uint32_t old_limit = 0;
  std::uint32_t new_limit = 0;
  std::uint32_t in_flight = 0;
  double queue_estimate = 0;
  Duration latency_avg{};
  Duration latency_min{};  // the baseline the policy compares with
  LimitReason reason = LimitReason::kHold;
};

/// Requests were refused. At most one notice per scope, reason and second; `count` is the number of
/// refusals it stands for, the other fields describe the request that triggered it.
struct RefusalNotice {
  std::string_view scope;
  Reason reason = Reason::kAdmitted;
  Priority priority = Priority::kNormal;
  std::string_view peer;  // its name; empty: not from a peer, or it waited first
  std::uint64_t count = 0;
  std::uint32_t in_flight = 0;  // against `limit`
  std::uint32_t limit = 0;      // of the scope; of the peer or actor if that is the reason
  double queue_estimate = 0;
  double memory_usage = 0;
};

/// A class reached the share warn_threshold of its bound.
struct ClassWarning {
  std::string_view scope;
  Priority priority = Priority::kNormal;
  std::uint32_t in_flight = 0;
  std::uint32_t bound = 0;
};

/// Memory became unreadable (usage then counts as 0 %) or readable again, or its level changed.
struct MemoryNotice {
  bool readable = true;
  double usage = 0;
  MemoryLevel level = MemoryLevel::kNormal;
};

/// Receives events that an application may log. Called without locks held, on any thread.
/// Implementations must be thread-safe and fast, and must not call the controller.
class EventSink {
 public:
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual ~EventSink() = default;

  virtual void on_limit_change(const LimitChange&) noexcept {}
  virtual void on_refusals(const RefusalNotice&) noexcept {}
  virtual void on_class_warning(const ClassWarning&) noexcept {}
  virtual void on_memory(const MemoryNotice&) noexcept {}
};

}  // namespace weir::inline v0::inline control
