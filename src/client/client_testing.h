#pragma once

// Replicas on real sockets whose answers a test decides, and a client of them.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/experimental/client/client.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/thread_parker.h"

#include "server/server_testing.h"

namespace weir::inline v0::inline client::testkit {

/// Waits until `what` holds; at most ten seconds.
[[nodiscard]] inline bool eventually(const std::function<bool()>& what) {
  io::ThreadParker parker;
  const TimePoint limit = io::monotonic_now() + std::chrono::seconds(10);
  while (!what()) {
    if (io::monotonic_now() >= limit) return false;
    parker.park_until(io::monotonic_now() + std::chrono::milliseconds(1));
  }
  return true;
}

/// What a replica does with a request.
struct Reply {
  std::uint16_t status = 200;
  std::string body = "ok";
  std::vector<std::pair<std::string, std::string>> fields{};
  bool hold = false;          // until release()
  bool echo = false;          // the body is that of the request
  bool unknown_size = false;  // no Content-Length
};

struct Asked {
  std::string method;
  std::string path;
  std::vector<ClientHeader> headers;
  TimePoint at{};

  [[nodiscard]] std::string header(std::string_view name) const {
    for (const ClientHeader& one : headers) {
      if (one.name == name) return one.value;
    }
    return {};
  }
};

/// One replica: Weir's own server with one loop.
class Replica {
 public:
  using Decide = std::function<Reply(const Asked&)>;
  explicit Replica(Decide decide, ServerConfig config = server::testkit::small_config())
      : decide_(std::move(decide)), server_(config, [this](const HandlerPlace& place) {
          loop_ = &place.loop;
          return make();
        }) {}
  ~Replica() { release(); }

  [[nodiscard]] std::string name() const { return "127.0.0.1:" + std::to_string(server_.port()); }
  [[nodiscard]] std::string tls_name() {
    return "127.0.0.1:" + std::to_string(server_->tls_port());
  }
  [[nodiscard]] int requests() const { return requests_.load(); }
  /// Requests that ended before they were answered: the other side gave up.
  [[nodiscard]] int aborts() const { return aborts_.load(); }
  [[nodiscard]] std::uint64_t connections() const { return server_.stats().connections.used; }
  [[nodiscard]] std::vector<Asked> asked() const {
    const std::scoped_lock lock(mutex_);
    return asked_;
  }
  /// Answers everything that is held, and holds nothing from now on.
  void release() {
    loop_->call([this] {
      holding_ = false;
      for (ServerStream* stream : std::exchange(held_, {})) answer(*stream);
    });
  }
  Server& server() { return *server_; }

 private:
  struct State {
    Reply reply;
    std::string body;
    std::size_t sent = 0;
  };
  static State& state_of(ServerStream& stream) { return *static_cast<State*>(stream.user_data); }

  std::unique_ptr<Handler> make() {
    auto handler = std::make_unique<server::testkit::ScriptedHandler>();
    handler->headers = [this](ServerStream& stream, const ServerRequest& request) {
      Asked asked{.method = std::string(request.meta.method),
                  .path = std::string(request.meta.path),
                  .headers = {},
                  .at = io::monotonic_now()};
      for (const http::HeaderView& field : *request.headers) {
        asked.headers.push_back({std::string(field.name), std::string(field.value)});
      }
      stream.user_data = new State{.reply = decide_(asked), .body = {}, .sent = 0};
      const std::scoped_lock lock(mutex_);
      asked_.push_back(std::move(asked));
      ++requests_;
    };
    handler->body = [](ServerStream& stream, const http::BodyChunk& chunk) {
      state_of(stream).body += chunk.text();
    };
    handler->complete = [this](ServerStream& stream) {
      if (state_of(stream).reply.hold && holding_) {
        held_.push_back(&stream);
      } else {
        answer(stream);
      }
    };
    handler->writable = [](ServerStream& stream) { continue_body(stream); };
    handler->finished = [this](ServerStream& stream) { forget(stream); };
    handler->aborted = [this](ServerStream& stream, CloseReason) {
      ++aborts_;
      forget(stream);
    };
    return handler;
  }
  void forget(ServerStream& stream) {
    std::erase(held_, &stream);
    delete &state_of(stream);
  }
  static void continue_body(ServerStream& stream) {
    State& state = state_of(stream);
    if (!state.reply.unknown_size || !stream.response_started()) return;
    const std::string_view rest = std::string_view(state.reply.body).substr(state.sent);
    if (!rest.empty()) state.sent += stream.send_data(rest, true);
  }
  static void answer(ServerStream& stream) {
    const State& state = state_of(stream);
    std::vector<ResponseField> fields;
    for (const auto& [name, value] : state.reply.fields) fields.push_back({name, value});
    const std::string& body = state.reply.echo ? state.body : state.reply.body;
    const server::ResponseHead head{
        .status = state.reply.status, .fields = fields, .content_length = {}};
    if (!state.reply.unknown_size) {
      EXPECT_EQ(stream.send_response(head, body), SendResult::kSent);
      return;
    }
    EXPECT_EQ(stream.send_headers(head), SendResult::kSent);
    continue_body(stream);
  }

  Decide decide_;
  std::atomic<int> requests_{0};
  std::atomic<int> aborts_{0};
  mutable std::mutex mutex_;
  std::vector<Asked> asked_;  // under mutex_
  io::Loop* loop_ = nullptr;
  bool holding_ = true;  // on its loop, as held_
  std::vector<ServerStream*> held_;
  server::testkit::RunningServer server_;
};

inline Replica::Decide always(Reply reply) {
  return [reply](const Asked&) { return reply; };
}

/// Holds the first request that any of its replicas gets, and answers all others.
class FirstIsHeld {
 public:
  [[nodiscard]] Replica::Decide decide() {
    return [this](const Asked&) { return Reply{.hold = arrived_.fetch_add(1) == 0}; };
  }
  void again() { arrived_ = 0; }

 private:
  std::atomic<int> arrived_{0};
};

/// A scheme before an address: how it is spoken with.
inline constexpr const char* kSchemes[] = {"http://", "h2c://"};

inline ClientConfig config_for(const std::vector<const Replica*>& replicas,
                               const std::string& scheme = "http://") {
  ClientConfig config;
  for (const Replica* one : replicas) config.endpoints.push_back(scheme + one->name());
  return config;
}

/// Fails the test if the configuration is not accepted.
inline Client client_of(const ClientConfig& config) {
  auto made = Client::create(config);
  for (const ConfigError& error : made ? ConfigErrors{} : made.error()) {
    ADD_FAILURE() << error.key << " = " << error.value << ": allowed is " << error.allowed;
  }
  return std::move(*made);
}

/// A connection to each replica is ready: a hedge does not wait for one.
inline void wait_until_warm(const Client& client, std::size_t replicas) {
  ASSERT_TRUE(eventually([&] { return client.stats().idle_connections >= replicas; }));
}

/// A client that hedges after `delay`, with a connection to each replica.
inline Client hedging_client(const std::vector<const Replica*>& replicas, Duration delay,
                             const std::string& scheme = "http://") {
  ClientConfig config = config_for(replicas, scheme);
  config.hedge.default_delay = config.hedge.max_delay = delay;
  config.timeout = std::chrono::seconds(30);
  Client client = client_of(config);
  wait_until_warm(client, replicas.size());
  return client;
}

/// Answers by callback, in the order of their arrival. Callbacks may outlive it.
class Answers {
 public:
  [[nodiscard]] Client::OnAnswer next() {
    return [all = all_](Client::Answer answer) {
      const std::scoped_lock lock(all->mutex);
      all->answers.push_back(std::move(answer));
    };
  }
  [[nodiscard]] std::size_t count() const {
    return count_if([](const Client::Answer&) { return true; });
  }
  [[nodiscard]] std::size_t count(ClientErrorKind kind) const {
    return count_if([&](const Client::Answer& one) { return !one && one.error().kind == kind; });
  }
  [[nodiscard]] std::size_t count(std::uint16_t status) const {
    return count_if([&](const Client::Answer& one) { return one && one->status == status; });
  }

 private:
  struct All {
    std::mutex mutex;
    std::vector<Client::Answer> answers;  // under mutex
  };
  template <class What>
  [[nodiscard]] std::size_t count_if(What what) const {
    const std::scoped_lock lock(all_->mutex);
    return static_cast<std::size_t>(
        std::count_if(all_->answers.begin(), all_->answers.end(), what));
  }
  std::shared_ptr<All> all_ = std::make_shared<All>();
};

}  // namespace weir::inline v0::inline client::testkit
