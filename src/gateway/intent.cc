#include "intent.h"

#include <algorithm>

#include "weir/base/number_text.h"

#include "baggage.h"

namespace weir::inline v0::gateway {
constexpr std::uint64_t kDeadlineMsMax = std::uint64_t{24} * 60 * 60 * 1000;

Intent read_intent(const http::HeaderList& headers, const Caller& caller,
                   const Route& route) noexcept {
  Intent intent;
  if (caller.peer) {
    // A node that another Weir asked says it in our own field; others only copy baggage.
    const std::string_view named = headers.value(http::FieldId::kXWeirPriority);
    intent.priority = (named.empty() ? baggage_priority(headers) : priority_named(named))
                          .value_or(Priority::kNormal);
    if (const auto ms =
            parse_number<std::uint64_t>(headers.value(http::FieldId::kXWeirDeadlineMs))) {
      intent.time_left =
          std::chrono::milliseconds(static_cast<std::int64_t>(std::min(*ms, kDeadlineMsMax)));
    }
    const auto attempt =
        parse_number<std::uint64_t>(headers.value(http::FieldId::kXWeirAttempt)).value_or(1);
    intent.attempt = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(attempt, 1, 1000));
  }
  if (route.config.priority) intent.priority = *route.config.priority;
  return intent;
}

AdmissionRequest admission_request_for(const Route& route, const Intent& intent,
                                       const RequestFacts& facts) noexcept {
  AdmissionRequest ask;
  ask.priority = intent.priority;
  ask.scope = facts.scope;
  ask.peer = facts.peer;
  if (!intent.hedge()) ask.actor = facts.actor;
  ask.source = facts.source;
  if (route.config.bytes == BytesCharged::kAnnounced) {
    ask.bytes = facts.body_length.value_or(route.config.bytes_estimate);
  }
  ask.cost = route.config.cost;
  ask.modes = route.modes;
  ask.hedge = intent.hedge();
  ask.route = static_cast<std::uint16_t>(route.index + 1);
  if (const auto allowed = intent.allowed()) ask.deadline = facts.received_at + *allowed;
  return ask;
}

}  // namespace weir::inline v0::gateway
