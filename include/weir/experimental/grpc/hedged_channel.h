#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "weir/base/config_error.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/grpc/hedged_call.h"
#include "weir/experimental/grpc/hedged_channel_config.h"
#include "weir/experimental/grpc/hedged_stats.h"

namespace weir::inline v0::grpc {

class HedgedCore;

/// Sends unary gRPC calls to the replicas of a service. A read whose replica is late is sent to a
/// second one, and the first good answer counts; the other attempt is cancelled.
///
/// Which methods are reads is said by HedgedChannelConfig::methods. All attempts of a call have the
/// same deadline. A refusal with grpc-retry-pushback-ms is followed by another attempt, if the
/// method allows it, not before that time, and by none if it is negative.
///
/// Promises: a call that was accepted ends exactly once, at its deadline at the latest. Hedges and
/// repeated attempts <= budget_pct × calls + max_budget_tokens. Only a MethodKind::kRead is hedged.
/// A hedge does not wait for a connect. At most max_in_flight calls are under way; one more is
/// refused at once with RESOURCE_EXHAUSTED.
/// Thread-safety: any member, any thread. A callback runs on a thread of the channel: it may send()
/// and must not block, throw, call(), close() or destroy the channel.
/// Cost: a lock per event of a call; gRPC allocates per attempt. Idle: ten wake-ups per replica and
/// second.
/// Lifetime: the destructor is close(0).
class HedgedChannel {
 public:
  using OnAnswer = std::function<void(HedgedAnswer)>;
  template <class Response>
  using OnResponse = std::function<void(::grpc::Status, Response)>;

  struct Transport {
    std::shared_ptr<::grpc::ChannelCredentials> credentials = ::grpc::InsecureChannelCredentials();
    /// Added to what the channel sets itself: a connection per replica, no retries of gRPC, quick
    /// reconnects.
    ::grpc::ChannelArguments arguments{};
  };

  /// Starts the threads and connects to all replicas, without waiting for that.
  [[nodiscard]] static Result<HedgedChannel, ConfigErrors> create(HedgedChannelConfig config,
                                                                  Transport transport);
  [[nodiscard]] static Result<HedgedChannel, ConfigErrors> create(HedgedChannelConfig config) {
    return create(std::move(config), Transport{});
  }
  HedgedChannel(HedgedChannel&& other) noexcept;
  HedgedChannel& operator=(HedgedChannel&& other) noexcept;
  HedgedChannel(const HedgedChannel&) = delete;
  HedgedChannel& operator=(const HedgedChannel&) = delete;
  ~HedgedChannel();

  // ---- with messages
  /// Blocks until the call has ended.
  template <class Request, class Response>
  [[nodiscard]] ::grpc::Status call(const std::string& method, const Request& request,
                                    Response& response, const HedgedCallOptions& options = {}) {
    ::grpc::ByteBuffer bytes;
    ::grpc::Status written = to_bytes(request, bytes);
    if (!written.ok()) return written;
    HedgedAnswer answer = call_bytes(method, std::move(bytes), options);
    return parse(answer, response);
  }

  /// Never blocks. If it is accepted, `on_response` is called once; otherwise the status says why
  /// not, and it is not called.
  template <class Response, class Request>
  [[nodiscard]] Result<HedgedCallId, ::grpc::Status> send(const std::string& method,
                                                          const Request& request,
                                                          OnResponse<Response> on_response,
                                                          const HedgedCallOptions& options = {}) {
    ::grpc::ByteBuffer bytes;
    ::grpc::Status written = to_bytes(request, bytes);
    if (!written.ok()) return unexpected(std::move(written));
    return send_bytes(
        method, std::move(bytes),
        [done = std::move(on_response)](HedgedAnswer answer) {
          Response response;
          ::grpc::Status status = parse(answer, response);
          done(std::move(status), std::move(response));
        },
        options);
  }

  // ---- with bytes: the core that the above are made of
  [[nodiscard]] HedgedAnswer call_bytes(const std::string& method, ::grpc::ByteBuffer request,
                                        const HedgedCallOptions& options = {});
  [[nodiscard]] Result<HedgedCallId, ::grpc::Status> send_bytes(
      const std::string& method, ::grpc::ByteBuffer request, OnAnswer on_answer,
      const HedgedCallOptions& options = {});

  /// Ends the call with CANCELLED, at the replicas too; false: it has ended already.
  bool cancel(HedgedCallId call);

  /// Replaces the replicas. One that stays keeps its connection and what is known of it; calls at
  /// one that leaves finish.
  [[nodiscard]] ConfigErrors set_replicas(const std::vector<HedgedReplica>& replicas);
  /// Blocks until that many replicas are connected; false: not in this time.
  bool wait_connected(std::size_t replicas, Duration at_most);

  /// Accepts no more calls and gives those under way this time; what is left ends with CANCELLED.
  /// Returns when all callbacks have returned and gRPC has given everything back: true if every
  /// call was finished.
  bool close(Duration at_most);

  [[nodiscard]] HedgedStats stats() const;

 private:
  explicit HedgedChannel(std::unique_ptr<HedgedCore> core) noexcept;

  template <class Message>
  [[nodiscard]] static ::grpc::Status to_bytes(const Message& message, ::grpc::ByteBuffer& bytes) {
    bool own = false;
    return ::grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own);
  }
  template <class Message>
  [[nodiscard]] static ::grpc::Status parse(HedgedAnswer& answer, Message& message) {
    if (!answer.status.ok()) return std::move(answer.status);
    if constexpr (std::is_same_v<Message, ::grpc::ByteBuffer>) {
      message.Swap(&answer.response);
      return std::move(answer.status);
    } else {
      return ::grpc::SerializationTraits<Message>::Deserialize(&answer.response, &message);
    }
  }

  std::unique_ptr<HedgedCore> core_;
};

}  // namespace weir::inline v0::grpc
