#pragma once

// A gateway on port 0 in front of origins that a test scripts, and its counters.

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

#include "weir/experimental/gateway/gateway.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/listener.h"
#include "weir/experimental/io/thread_parker.h"

#include "server/server_testing.h"

namespace weir::inline v0::gateway::testkit {

using server::testkit::Answer;
using server::testkit::Client;
using server::testkit::count_body;
using server::testkit::every_loop;
using server::testkit::Gate;
using server::testkit::pattern;
using server::testkit::reply;
using server::testkit::RunningServer;
using server::testkit::says_hello;
using server::testkit::ScriptedHandler;
using server::testkit::small_config;

inline bool eventually(const std::function<bool()>& what) {
  io::ThreadParker parker;
  const TimePoint limit = io::monotonic_now() + std::chrono::seconds(10);
  while (!what()) {
    const TimePoint now = io::monotonic_now();
    if (now >= limit) return false;
    parker.park_until(now + std::chrono::milliseconds(1));
  }
  return true;
}

/// An origin that sends exactly the bytes that a test gives it, one connection after another.
class RawOrigin {
 public:
  using Script = std::function<void(int fd, const std::string& head)>;

  explicit RawOrigin(Script script) : script_(std::move(script)) {
    auto fd = io::listen_on(*io::parse_socket_name("127.0.0.1:0"), {});
    EXPECT_TRUE(fd.has_value());
    listening_ = std::move(*fd);
    port_ = io::bound_name(listening_.get()).address.port;
    thread_ = std::thread([this] { run(); });
  }
  RawOrigin(const RawOrigin&) = delete;
  RawOrigin& operator=(const RawOrigin&) = delete;
  ~RawOrigin() {
    stopping_ = true;
    thread_.join();
  }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int served() const { return served_; }

  static void say(int fd, std::string_view bytes) {
    static_cast<void>(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }

 private:
  void run() {
    while (!stopping_) {
      pollfd one{.fd = listening_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&one, 1, 10) != 1) continue;
      const io::Fd fd(::accept(listening_.get(), nullptr, nullptr));
      std::string head;
      while (head.find("\r\n\r\n") == std::string::npos) {
        char block[4096];
        const ssize_t got = ::recv(fd.get(), block, sizeof block, 0);
        if (got <= 0) break;
        head.append(block, static_cast<std::size_t>(got));
      }
      if (head.empty()) continue;
      ++served_;
      script_(fd.get(), head);
    }
  }

  Script script_;
  io::Fd listening_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int> served_{0};
  std::thread thread_;
};

/// An origin on Weir's own server.
class Origin {
 public:
  explicit Origin(std::function<void(ScriptedHandler&)> script)
      : server_(small_config(), every_loop(std::move(script))) {}
  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(server_.port());
  }
  RunningServer& server() { return server_; }

 private:
  RunningServer server_;
};

/// An origin that answers with its own name.
struct NamedOrigin {
  explicit NamedOrigin(const std::string& name)
      : origin([name](ScriptedHandler& handler) {
          handler.complete = [name](ServerStream& stream) {
            EXPECT_EQ(reply(stream, 200, name), SendResult::kSent);
          };
        }) {}
  [[nodiscard]] std::string address() const { return origin.address(); }
  [[nodiscard]] std::string port() const { return address().substr(address().rfind(':')); }

  Origin origin;
};

inline constexpr std::string_view kGet = "GET / HTTP/1.1\r\nhost: t\r\n\r\n";

/// An origin that answers when the test tells it to.
class HeldOrigin {
 public:
  HeldOrigin()
      : origin_([this](ScriptedHandler& handler) {
          handler.complete = [this](ServerStream& stream) {
            const std::scoped_lock lock(mutex_);
            held_.push_back(&stream);
          };
          handler.aborted = [this](ServerStream& stream, CloseReason) {
            const std::scoped_lock lock(mutex_);
            std::erase(held_, &stream);
          };
        }) {}
  [[nodiscard]] std::string address() const { return origin_.address(); }
  [[nodiscard]] std::size_t held() {
    const std::scoped_lock lock(mutex_);
    return held_.size();
  }
  bool wait_for(std::size_t count) {
    return eventually([&] { return held() == count; });
  }
  /// Sends a GET, which is then the only request held here.
  bool hold(Client& client) { return client.send(kGet) && wait_for(1); }
  void let_go() {
    const std::scoped_lock lock(mutex_);
    for (ServerStream* stream : held_) {
      stream->loop().post([stream] { EXPECT_EQ(reply(*stream, 200, "done"), SendResult::kSent); });
    }
    held_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<ServerStream*> held_;
  Origin origin_;
};

/// The address of a closed origin: nothing listens there.
inline std::string unused_address() {
  return RawOrigin([](int, const std::string&) {}).address();
}

/// Answers each request, once it is complete, with its own head and body.
inline void echo(ScriptedHandler& handler) {
  handler.headers = [](ServerStream& stream, const ServerRequest& request) {
    auto* text = new std::string(std::string(request.meta.method) + " " +
                                 std::string(request.meta.path) + "\n");
    for (const http::HeaderView& field : *request.headers) {
      text->append(field.name).append(": ").append(field.value).append("\n");
    }
    stream.user_data = text;
  };
  handler.body = [](ServerStream& stream, const http::BodyChunk& chunk) {
    static_cast<std::string*>(stream.user_data)->append(chunk.text());
  };
  handler.trailers = [](ServerStream& stream, const http::HeaderList& trailers) {
    for (const http::HeaderView& field : trailers) {
      static_cast<std::string*>(stream.user_data)
          ->append("trailer ")
          .append(field.name)
          .append("=")
          .append(field.value);
    }
  };
  handler.complete = [](ServerStream& stream) {
    EXPECT_EQ(reply(stream, 200, *static_cast<std::string*>(stream.user_data)), SendResult::kSent);
  };
  const auto drop = [](ServerStream& stream) {
    delete static_cast<std::string*>(std::exchange(stream.user_data, nullptr));
  };
  handler.finished = drop;
  handler.aborted = [drop](ServerStream& stream, CloseReason) { drop(stream); };
}

/// One upstream "app" with these endpoints, one route for everything, two loops, small pools; no
/// hedges, so that a slow machine does not send a request twice.
inline config::Config gateway_config(const std::vector<std::string>& endpoints) {
  config::Config config;
  config.hedge.enabled = false;
  config.server.listen = {"127.0.0.1:0"};
  config.server.loops = 2;
  config.server.max_connections = 256;
  config.server.tcp_write_buffer_pool_size = 512;
  config.admin.listen = *parse_net_address("127.0.0.1:0");
  config.admin.access_log = AccessLog::kOff;
  config.admin.hosts = {"t"};  // the Host that Client::get() sends
  upstream::UpstreamConfig upstream;
  upstream.name = "app";
  upstream.max_connections = 256;
  upstream.warm_connections = 0;  // origins that serve one connection after another would hang
  for (const std::string& text : endpoints) {
    upstream.endpoints.push_back(*upstream::parse_source(text));
  }
  RouteConfig route;
  route.upstream = "app";
  config.upstreams = {upstream};
  config.routes = {route};
  return config;
}

/// Without a waiting room.
inline config::Config with_fixed_limit(config::Config config, std::uint32_t limit) {
  config.admission.limit.policy = LimitKind::kFixed;
  config.admission.limit.initial_limit = limit;
  config.admission.normal_wait_max = Duration(0);
  config.admission.high_wait_max = Duration(0);
  return config;
}

class RunningGateway {
 public:
  explicit RunningGateway(const config::Config& config) : gateway_(config) {
    const auto started = gateway_.start();
    EXPECT_TRUE(started.has_value()) << (started ? "" : started.error().message);
  }
  Gateway& operator*() { return gateway_; }
  Gateway* operator->() { return &gateway_; }
  [[nodiscard]] std::uint16_t port() const { return port_in(gateway_.listening().front()); }
  [[nodiscard]] std::uint16_t admin_port() const { return port_in(gateway_.admin_listening()); }
  [[nodiscard]] std::uint16_t tls_port() const { return port_in(gateway_.tls_listening().front()); }
  [[nodiscard]] std::string page(std::string_view path) const {
    return Client(admin_port()).get(path).body;
  }
  [[nodiscard]] nlohmann::json stats() const { return nlohmann::json::parse(page("/stats")); }
  [[nodiscard]] int waiting() const { return stats()["upstreams"]["app"]["waiting"]; }
  /// Every request has ended and is counted once.
  [[nodiscard]] bool settled() const {
    return eventually([this] {
      const GatewayStatus s = gateway_.status();
      return s.received == s.answered + s.refused + s.aborted && s.in_flight == 0;
    });
  }

 private:
  static std::uint16_t port_in(const std::string& address) {
    std::uint16_t port = 0;
    const char* end = address.data() + address.size();
    std::from_chars(address.data() + address.rfind(':') + 1, end, port);
    return port;
  }
  Gateway gateway_;
};

/// The body of the answer to GET /.
inline std::string answer_of(const RunningGateway& gateway) {
  return Client(gateway.port()).get("/").body;
}

}  // namespace weir::inline v0::gateway::testkit
