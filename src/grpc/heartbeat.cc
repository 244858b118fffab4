#include "heartbeat.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

namespace weir::inline v0::grpc {
namespace {

std::atomic<std::uint64_t> beats_made{0};

/// A call on its way to nowhere: owns itself until its completion.
struct Beat {
  ::grpc::ClientContext context{};
  ::grpc::Slice nothing{};
  ::grpc::ByteBuffer request{&nothing, 1};  // one without a slice cannot be sent
  ::grpc::ByteBuffer response{};
};

/// Calls on it fail at once. It is never destroyed: a channel that ends waits for the threads that
/// are kept awake here, and one of them could be the last that holds it.
const std::shared_ptr<::grpc::Channel>& channel_to_nowhere() {
  static const auto* const channel =
      new std::shared_ptr<::grpc::Channel>(::grpc::CreateChannel("", nullptr));
  return *channel;
}

class SharedHeartbeat final : public Heartbeat,
                              public std::enable_shared_from_this<SharedHeartbeat> {
 public:
  explicit SharedHeartbeat(Duration period)
      : period_ns_(period.count()), stub_(channel_to_nowhere()) {}

  void quicken(Duration period) noexcept {
    std::int64_t old = period_ns_.load(std::memory_order_relaxed);
    while (period.count() < old && !period_ns_.compare_exchange_weak(old, period.count())) {
    }
  }

  void set_alarm() {
    const auto period =
        gpr_time_from_nanos(period_ns_.load(std::memory_order_relaxed), GPR_TIMESPAN);
    // The alarm keeps its function: a strong pointer in it would keep this forever.
    alarm_.Set(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), period),
               [self = weak_from_this()](bool due) {
                 const auto alive = self.lock();
                 if (due && alive != nullptr) alive->beat();
               });
  }

 private:
  void beat() {
    auto* call = new Beat;
    stub_.UnaryCall(&call->context, "/weir.Heartbeat/Beat", ::grpc::StubOptions(), &call->request,
                    &call->response, [call](const ::grpc::Status&) {
                      beats_made.fetch_add(1, std::memory_order_relaxed);
                      delete call;
                    });
    set_alarm();
  }

  std::atomic<std::int64_t> period_ns_;
  ::grpc::GenericStub stub_;
  ::grpc::Alarm alarm_;
};

/// The one of the process, if there is one.
struct Current {
  std::mutex mutex{};
  std::weak_ptr<SharedHeartbeat> heartbeat{};
};

Current& current() {
  static Current one;
  return one;
}

}  // namespace

std::shared_ptr<Heartbeat> Heartbeat::share(Duration period) {
  const std::scoped_lock lock(current().mutex);
  std::shared_ptr<SharedHeartbeat> one = current().heartbeat.lock();
  if (one == nullptr) {
    one = std::make_shared<SharedHeartbeat>(period);
    current().heartbeat = one;
    one->set_alarm();
  } else {
    one->quicken(period);
  }
  return one;
}

bool Heartbeat::is_running() noexcept {
  const std::scoped_lock lock(current().mutex);
  return !current().heartbeat.expired();
}

std::uint64_t Heartbeat::beats() noexcept {
  return beats_made.load(std::memory_order_relaxed);
}

}  // namespace weir::inline v0::grpc
