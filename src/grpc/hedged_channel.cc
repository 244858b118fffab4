#include "weir/experimental/grpc/hedged_channel.h"

#include <optional>
#include <utility>

#include "weir/base/assert.h"
#include "weir/embed/thread_parker.h"

#include "hedged_core.h"

namespace weir::inline v0::grpc {

HedgedChannel::HedgedChannel(std::unique_ptr<HedgedCore> core) noexcept : core_(std::move(core)) {}
HedgedChannel::HedgedChannel(HedgedChannel&& other) noexcept = default;
HedgedChannel& HedgedChannel::operator=(HedgedChannel&& other) noexcept = default;
HedgedChannel::~HedgedChannel() = default;

Result<HedgedChannel, ConfigErrors> HedgedChannel::create(HedgedChannelConfig config,
                                                          Transport transport) {
  ConfigErrors errors = config.validate();
  if (!errors.empty()) return unexpected(std::move(errors));
  return HedgedChannel(std::make_unique<HedgedCore>(std::move(config), std::move(transport)));
}

HedgedAnswer HedgedChannel::call_bytes(const std::string& method, ::grpc::ByteBuffer request,
                                       const HedgedCallOptions& options) {
  WEIR_ASSERT(!core_->in_own_thread());
  embed::ThreadParker parker;
  std::mutex mutex;
  std::optional<HedgedAnswer> answer;  // under mutex
  const auto done = [&](HedgedAnswer given) {
    const std::scoped_lock lock(mutex);
    answer = std::move(given);
    parker.unpark();
  };
  const auto sent = send_bytes(method, std::move(request), done, options);
  if (!sent) return {.status = sent.error()};
  for (;;) {
    {
      const std::scoped_lock lock(mutex);
      if (answer) return std::move(*answer);
    }
    parker.park_until(TimePoint::max());
  }
}

Result<HedgedCallId, ::grpc::Status> HedgedChannel::send_bytes(const std::string& method,
                                                               ::grpc::ByteBuffer request,
                                                               OnAnswer on_answer,
                                                               const HedgedCallOptions& options) {
  return core_->send(method, std::move(request), std::move(on_answer), options);
}

bool HedgedChannel::cancel(HedgedCallId call) {
  return core_->cancel(call);
}

ConfigErrors HedgedChannel::set_replicas(const std::vector<HedgedReplica>& replicas) {
  ConfigErrors errors = validate(replicas);
  if (errors.empty()) core_->set_replicas(replicas);
  return errors;
}

bool HedgedChannel::wait_connected(std::size_t replicas, Duration at_most) {
  return core_->wait_connected(replicas, at_most);
}

bool HedgedChannel::close(Duration at_most) {
  return core_->close(at_most);
}

HedgedStats HedgedChannel::stats() const {
  return core_->stats();
}

}  // namespace weir::inline v0::grpc
