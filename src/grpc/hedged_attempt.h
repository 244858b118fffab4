#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>
#include <grpcpp/support/time.h>

#include "weir/base/time.h"
#include "weir/control/outgoing_item.h"
#include "weir/experimental/grpc/hedged_call.h"

#include "control/hedge_executor.h"
#include "hedged_tag.h"
#include "replica_link.h"

namespace weir::inline v0::grpc {

class HedgedPending;

/// One attempt of a call at one replica, from the queue until gRPC has given everything back.
///
///   queued    in the queue of the replica
///   started   gRPC has it; its headers wait for a connection and for a free stream, and then its
///             message is given to gRPC. Until then the replica has certainly not worked on it
///   resolved  message and status are here
///   drained   no tag of it is outstanding: it can be destroyed
///
/// The message is not given to gRPC before the headers were sent, so that a call that leaves the
/// replica before is never carried out there.
///
/// Thread-safety: the lock of its channel. Lifetime: outlives its call if it has to.
class HedgedAttempt {
 public:
  struct Setup {
    HedgedPending* call = nullptr;
    std::shared_ptr<ReplicaLink> link;
    control::AttemptNumber number = 0;
    bool hedge = false;
    Priority priority = Priority::kNormal;
    std::uint64_t bytes = 0;
  };
  explicit HedgedAttempt(Setup setup);
  HedgedAttempt(const HedgedAttempt&) = delete;
  HedgedAttempt& operator=(const HedgedAttempt&) = delete;

  struct Request {
    const std::string& method;
    const HedgedCallOptions& options;
    gpr_timespec deadline;
    std::uint32_t attempt;  // x-weir-attempt; 1: not sent
  };
  void start(const Request& request, ::grpc::CompletionQueue& queue);
  /// Its headers were sent.
  void write(const ::grpc::ByteBuffer& message, TimePoint now);
  /// A tag has come back.
  void returned(HedgedTag::Kind kind, bool ok);
  void cancel();

  [[nodiscard]] bool started() const noexcept { return stream_ != nullptr; }
  [[nodiscard]] bool written() const noexcept { return written_at != TimePoint{}; }
  [[nodiscard]] bool resolved() const noexcept {
    return started() && !is_out(HedgedTag::Kind::kMessage) && !is_out(HedgedTag::Kind::kStatus);
  }
  [[nodiscard]] bool drained() const noexcept { return out_ == 0; }
  [[nodiscard]] const ::grpc::ClientContext& context() const noexcept { return context_; }

  HedgedPending* call;  // nullptr: it has ended, or this attempt is not needed any more
  const std::shared_ptr<ReplicaLink> link;
  const control::AttemptNumber number;
  const bool hedge;
  control::OutgoingItem item;
  TimePoint written_at{};    // the headers were sent
  TimePoint drains_since{};  // a loser that was not cancelled
  bool has_message = false;
  ::grpc::ByteBuffer response;
  ::grpc::Status status;

 private:
  static constexpr std::size_t kTags = 4;

  [[nodiscard]] void* out(HedgedTag::Kind kind) noexcept;
  [[nodiscard]] bool is_out(HedgedTag::Kind kind) const noexcept {
    return (out_ & 1U << static_cast<unsigned>(kind)) != 0;
  }

  std::array<HedgedTag, kTags> tags_;
  std::uint32_t out_ = 0;  // tags that gRPC has, by kind
  bool cancelled_ = false;
  ::grpc::ClientContext context_;
  std::unique_ptr<::grpc::GenericClientAsyncReaderWriter> stream_;  // in the memory of the context
};

}  // namespace weir::inline v0::grpc
