#include "admission_core.h"

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/method_handler.h>

#include "weir/base/assert.h"
#include "weir/base/number_text.h"
#include "weir/base/rng.h"
#include "weir/embed/clock.h"

#include "call_alarm.h"
#include "private_members.h"
#include "trailer_names.h"
#include "weir_metadata.h"

namespace weir::inline v0::grpc {
namespace {

using ::grpc::StatusCode;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

/// How often windows are closed, and how late a waiter may be expired.
constexpr Duration kExpirePeriod = milliseconds(100);
constexpr Duration kAlarmSlack = milliseconds(1);
/// A deadline further away is none; the greatest of gRPC would not fit into our time.
constexpr std::chrono::seconds kDeadlineMax = std::chrono::hours(24 * 365);

std::optional<TimePoint> deadline_of(const ::grpc::ServerContextBase& context, TimePoint now) {
  const gpr_timespec deadline = context.raw_deadline();
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return std::nullopt;
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (left.tv_sec > kDeadlineMax.count()) return std::nullopt;
  return now + std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec);
}

std::unique_ptr<::grpc::internal::MethodHandler> make_callback_answer(::grpc::Status status) {
  using Buffer = ::grpc::ByteBuffer;
  return std::make_unique<::grpc::internal::CallbackUnaryHandler<Buffer, Buffer>>(
      [status = std::move(status)](::grpc::CallbackServerContext* context, const Buffer*, Buffer*) {
        ::grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
        reactor->Finish(status);
        return reactor;
      });
}

std::unique_ptr<::grpc::internal::MethodHandler> make_sync_answer(const ::grpc::Status& status) {
  using ::grpc::internal::ErrorMethodHandler;
  switch (status.error_code()) {
    case StatusCode::DEADLINE_EXCEEDED:
      return std::make_unique<ErrorMethodHandler<StatusCode::DEADLINE_EXCEEDED>>(
          status.error_message());
    case StatusCode::UNAVAILABLE:
      return std::make_unique<ErrorMethodHandler<StatusCode::UNAVAILABLE>>(status.error_message());
    default:
      return std::make_unique<ErrorMethodHandler<StatusCode::RESOURCE_EXHAUSTED>>(
          status.error_message());
  }
}

}  // namespace

struct AdmissionCore::ExpiryAlarm {
  ::grpc::Alarm alarm{};
  std::weak_ptr<AdmissionCore> core{};
  std::int64_t set_for_ns = 0;
};

AdmissionCore::AdmissionCore(AdmissionController& controller, ServerOptions options)
    : controller_(controller), options_(std::move(options)), judge_(options_.trust) {
  WEIR_ASSERT(options_.validate().empty());
  jitter_ = embed::random_seed();
  for (std::size_t i = 0; i < kReasonCount; ++i) {
    const ::grpc::Status status = status_for(static_cast<Reason>(i));
    callback_answers_[i] = make_callback_answer(status);
    sync_answers_[i] = make_sync_answer(status);
  }
}

void AdmissionCore::fill(CallRequest& request, ::grpc::ServerContextBase& context,
                         const MethodRule& rule, std::uint64_t bytes, TimePoint now) const {
  AdmissionRequest& ask = request.ask;
  ask.priority = rule.priority.value_or(Priority::kNormal);
  ask.scope = options_.scope;
  ask.bytes = bytes;
  ask.cost = rule.cost;
  if (const auto deadline = deadline_of(context, now)) ask.deadline = *deadline;

  Caller& caller = request.caller_;
  caller = judge_.judge(context.c_call());
  if (!caller.trusted) {
    request.actor_ = options_.actor ? options_.actor(context) : std::move(caller.identity);
    if (!request.actor_.empty()) ask.actor = controller_.identify(request.actor_);
    return;
  }
  const WeirMetadata said = read_weir_metadata(metadata_of(context));
  if (!said.priority.empty()) {
    ask.priority = priority_named(said.priority).value_or(Priority::kNormal);
  }
  const std::string_view proven = caller.identity.empty() ? caller.address : caller.identity;
  ask.peer = controller_.identify(said.peer.empty() ? proven : said.peer);
  ask.hedge = parse_number<std::uint64_t>(said.attempt).value_or(1) > 1;
  if (!said.actor.empty() && !ask.hedge) ask.actor = controller_.identify(said.actor);
}

::grpc::Status AdmissionCore::status_for(Reason reason) const {
  if (reason == Reason::kAdmitted) {
    return {StatusCode::UNAVAILABLE, "the server is being shut down"};
  }
  const ReasonFacts& facts = facts_of(reason);
  const bool unavailable = reason == Reason::kOverload && options_.unavailable_on_overload;
  return {unavailable ? StatusCode::UNAVAILABLE : static_cast<StatusCode>(facts.grpc),
          std::string(facts.sentence)};
}

void AdmissionCore::add_trailers(::grpc::ServerContextBase& context, Reason reason,
                                 TimePoint now) noexcept {
  if (reason == Reason::kAdmitted) return;
  const ReasonFacts& facts = facts_of(reason);
  context.AddTrailingMetadata(kReasonTrailer, std::string(facts.name));
  if (!facts.pushback) return;
  Rng rng(jitter_.fetch_add(1, std::memory_order_relaxed));
  const Duration hint = controller_.retry_after(options_.scope, now, rng);
  const std::string text = std::to_string(duration_cast<milliseconds>(hint).count());
  context.AddTrailingMetadata(kPushbackTrailer, text);
  context.AddTrailingMetadata(kRetryAfterTrailer, text);
}

void AdmissionCore::on_call(TimePoint now) noexcept {
  std::int64_t due = next_expire_ns_.load(std::memory_order_relaxed);
  if (to_ns(now) < due) return;
  if (next_expire_ns_.compare_exchange_strong(due, to_ns(now + kExpirePeriod))) {
    controller_.expire(now);
  }
}

void AdmissionCore::end_wait() noexcept {
  if (waiting_.fetch_sub(1) != 1) return;
  // The last one: its call may end now, and the server and the controller after it. An alarm that
  // is using the controller is awaited.
  { const std::scoped_lock lock(alarm_mutex_); }
  waiting_.notify_all();
}

bool AdmissionCore::park(Waiter& waiter, TimePoint now) {
  begin_wait();
  if (closed() && controller_.cancel(waiter)) {
    end_wait();
    return false;
  }
  expire_in_time(now);
  return true;
}

void AdmissionCore::expire_in_time(TimePoint now) {
  const TimePoint when = controller_.next_expiry();
  if (when == TimePoint::max()) return;
  const std::int64_t when_ns = to_ns(when);
  std::int64_t set_for = alarm_set_for_ns_.load(std::memory_order_acquire);
  do {
    // An alarm cannot be moved: an earlier time sets another one, and the old one fires in vain.
    if (set_for - kAlarmSlack.count() <= when_ns) return;
  } while (!alarm_set_for_ns_.compare_exchange_weak(set_for, when_ns, std::memory_order_acq_rel));
  auto* alarm = new ExpiryAlarm{.core = weak_from_this(), .set_for_ns = when_ns};
  alarm->alarm.Set(alarm_time(when, now), [alarm](bool) {
    if (const auto core = alarm->core.lock()) core->on_alarm(alarm->set_for_ns);
    delete alarm;
  });
}

void AdmissionCore::on_alarm(std::int64_t set_for_ns) noexcept {
  alarm_set_for_ns_.compare_exchange_strong(set_for_ns, INT64_MAX, std::memory_order_acq_rel);
  const std::scoped_lock lock(alarm_mutex_);
  if (waiting() == 0) return;  // the controller may be gone with the server
  const TimePoint now = embed::now();
  controller_.expire(now);
  expire_in_time(now);
}

void AdmissionCore::close() noexcept {
  closed_.store(true);
  for (int left = waiting(); left != 0; left = waiting()) waiting_.wait(left);
}

void AdmissionCore::start_heartbeat() {
  if (options_.heartbeat > Duration::zero()) heartbeat_ = Heartbeat::share(options_.heartbeat);
}

}  // namespace weir::inline v0::grpc
