#pragma once

// Replicas on real sockets whose answers a test decides, and a channel to them.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/method_handler.h>
#include <grpcpp/impl/codegen/rpc_service_method.h>
#include <gtest/gtest.h>

#include "weir/embed/clock.h"
#include "weir/embed/thread_parker.h"
#include "weir/experimental/grpc/hedged_channel.h"

namespace weir::inline v0::grpc::hedge_testkit {

inline constexpr const char* kRead = "/test.Store/Get";
inline constexpr const char* kOtherRead = "/test.Store/List";
inline constexpr const char* kIdempotentWrite = "/test.Store/Put";
inline constexpr const char* kWrite = "/test.Store/Append";

/// Waits until `what` holds; at most ten seconds.
[[nodiscard]] inline bool eventually(const std::function<bool()>& what) {
  embed::ThreadParker parker;
  const TimePoint limit = embed::now() + std::chrono::seconds(10);
  while (!what()) {
    if (embed::now() >= limit) return false;
    parker.park_until(embed::now() + std::chrono::milliseconds(1));
  }
  return true;
}

inline ::grpc::ByteBuffer bytes_of(const std::string& text) {
  const ::grpc::Slice slice(text);
  return {&slice, 1};
}
inline std::string text_of(const ::grpc::ByteBuffer& bytes) {
  std::vector<::grpc::Slice> slices;
  static_cast<void>(bytes.Dump(&slices));
  std::string text;
  for (const ::grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

/// What a replica does with a call.
struct Reply {
  ::grpc::Status status = ::grpc::Status::OK;
  std::string body = "ok";
  std::vector<std::pair<std::string, std::string>> trailers{};
  bool hold = false;  // until release(), or until the client gives up
};
inline Reply refusal(const std::string& pushback_ms) {
  return {.status = {::grpc::StatusCode::RESOURCE_EXHAUSTED, "too much"},
          .trailers = {{"grpc-retry-pushback-ms", pushback_ms}}};
}

struct Asked {
  std::string method;
  std::string body;
  std::string attempt;  // x-weir-attempt
  gpr_timespec deadline{};
  TimePoint at{};
};

/// One replica: a synchronous server of four methods.
class Replica : private ::grpc::Service {
 public:
  using Decide = std::function<Reply(const Asked&)>;
  explicit Replica(Decide decide, int streams_max = 1000,
                   const std::string& address = "127.0.0.1:0")
      : decide_(std::move(decide)) {
    for (const char* name : {kRead, kOtherRead, kIdempotentWrite, kWrite}) add(name);
    ::grpc::ServerBuilder builder;
    builder.AddListeningPort(address, ::grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, streams_max);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    server_ = builder.BuildAndStart();
  }
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;
  ~Replica() override { stop(); }

  [[nodiscard]] std::string target() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int calls() const { return calls_.load(); }
  /// Calls that ended before they were answered: the client gave up.
  [[nodiscard]] int cancels() const { return cancels_.load(); }
  [[nodiscard]] int held() const { return held_.load(); }
  [[nodiscard]] std::vector<Asked> asked() const {
    const std::scoped_lock lock(mutex_);
    return asked_;
  }
  /// Answers what is held, and holds nothing from now on.
  void release() {
    const std::scoped_lock lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  void stop() {
    release();
    server_->Shutdown(gpr_now(GPR_CLOCK_REALTIME));
    server_->Wait();
  }

 private:
  void add(const char* name) {
    auto* handler =
        new ::grpc::internal::RpcMethodHandler<Replica, ::grpc::ByteBuffer, ::grpc::ByteBuffer,
                                               ::grpc::ByteBuffer, ::grpc::ByteBuffer>(
            [name](Replica* self, ::grpc::ServerContext* context, const ::grpc::ByteBuffer* request,
                   ::grpc::ByteBuffer* response) {
              return self->serve(name, *context, *request, *response);
            },
            this);
    AddMethod(new ::grpc::internal::RpcServiceMethod(name, ::grpc::internal::RpcMethod::NORMAL_RPC,
                                                     handler));
  }
  ::grpc::Status serve(const char* name, ::grpc::ServerContext& context,
                       const ::grpc::ByteBuffer& request, ::grpc::ByteBuffer& response) {
    // The client gave up after the headers: a server that parses messages does not get here.
    if (!request.Valid()) return ::grpc::Status::CANCELLED;
    Asked asked{.method = name,
                .body = text_of(request),
                .attempt = {},
                .deadline = context.raw_deadline(),
                .at = embed::now()};
    const auto& metadata = context.client_metadata();
    if (const auto found = metadata.find("x-weir-attempt"); found != metadata.end()) {
      asked.attempt.assign(found->second.data(), found->second.size());
    }
    {
      const std::scoped_lock lock(mutex_);
      asked_.push_back(asked);
    }
    ++calls_;
    const Reply reply = decide_(asked);
    if (reply.hold && !wait_for_release(context)) {
      ++cancels_;
      return ::grpc::Status::CANCELLED;
    }
    for (const auto& [key, value] : reply.trailers) context.AddTrailingMetadata(key, value);
    response = bytes_of(reply.body);
    return reply.status;
  }
  /// False: the client has given up.
  bool wait_for_release(const ::grpc::ServerContext& context) {
    ++held_;
    std::unique_lock lock(mutex_);
    while (!released_ && !context.IsCancelled()) {
      changed_.wait_for(lock, std::chrono::milliseconds(2));
    }
    --held_;
    return released_;
  }

  Decide decide_;
  std::atomic<int> calls_{0};
  std::atomic<int> cancels_{0};
  std::atomic<int> held_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Asked> asked_;  // under mutex_
  bool released_ = false;     // under mutex_
  int port_ = 0;
  std::unique_ptr<::grpc::Server> server_;
};

inline Replica::Decide always(Reply reply) {
  return [reply = std::move(reply)](const Asked&) { return reply; };
}

inline HedgedChannelConfig config_of(const std::vector<const Replica*>& replicas) {
  HedgedChannelConfig config;
  for (const Replica* one : replicas) config.replicas.push_back({.target = one->target()});
  config.methods = {{.path = kRead},
                    {.path = kOtherRead},
                    {.path = kIdempotentWrite, .kind = MethodKind::kIdempotent}};
  config.timeout = std::chrono::seconds(30);
  return config;
}

/// A configuration whose reads are hedged after this time, whatever the latencies are.
inline HedgedChannelConfig hedging_after(Duration delay,
                                         const std::vector<const Replica*>& replicas) {
  HedgedChannelConfig config = config_of(replicas);
  config.hedge.min_delay = config.hedge.default_delay = config.hedge.max_delay = delay;
  return config;
}

/// Fails the test if the configuration is not accepted, or `connected` replicas do not connect.
inline HedgedChannel channel_of(HedgedChannelConfig config, std::size_t connected) {
  auto made = HedgedChannel::create(std::move(config));
  for (const ConfigError& error : made ? ConfigErrors{} : made.error()) {
    ADD_FAILURE() << error.key << " = " << error.value << ": allowed is " << error.allowed;
  }
  EXPECT_TRUE(made->wait_connected(connected, std::chrono::seconds(10)));
  return std::move(*made);
}

/// Answers by callback, in the order of their arrival. Callbacks may outlive it.
class Answers {
 public:
  [[nodiscard]] HedgedChannel::OnAnswer next() {
    return [all = all_](HedgedAnswer answer) {
      const std::scoped_lock lock(all->mutex);
      all->answers.push_back(std::move(answer));
    };
  }
  [[nodiscard]] std::vector<HedgedAnswer> list() const {
    const std::scoped_lock lock(all_->mutex);
    return all_->answers;
  }
  [[nodiscard]] std::size_t count() const { return list().size(); }
  [[nodiscard]] std::size_t count(::grpc::StatusCode code) const {
    const std::vector<HedgedAnswer> answers = list();
    return static_cast<std::size_t>(
        std::count_if(answers.begin(), answers.end(),
                      [&](const HedgedAnswer& one) { return one.status.error_code() == code; }));
  }

 private:
  struct All {
    std::mutex mutex;
    std::vector<HedgedAnswer> answers;  // under mutex
  };
  std::shared_ptr<All> all_ = std::make_shared<All>();
};

}  // namespace weir::inline v0::grpc::hedge_testkit
