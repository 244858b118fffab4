#pragma once

// A gRPC service whose every frame a test decides, and a gateway before it.

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "gateway_testing.h"
#include "server/h2/h2_testing.h"

namespace weir::inline v0::gateway::testkit {

namespace wire = http::h2::wire;
using server::testkit::Frame;
using server::testkit::H2Client;
using server::testkit::Reply;

inline wire::Fields grpc_head(const wire::Fields& more = {}) {
  return wire::with({{":status", "200"}, {"content-type", "application/grpc"}}, more);
}
inline wire::Fields grpc_trailers(std::string_view status = "0", const wire::Fields& more = {}) {
  return wire::with({{"grpc-status", std::string(status)}}, more);
}
/// Trailers-Only.
inline wire::Fields grpc_status(std::string_view status, const wire::Fields& more = {}) {
  return grpc_head(wire::with(grpc_trailers(status), more));
}
/// A message as gRPC frames it.
inline std::string grpc_message(std::string_view text) {
  return wire::u8(0) + wire::u32(static_cast<std::uint32_t>(text.size())) + std::string(text);
}

inline std::string value_of(const wire::Fields& fields, std::string_view name) {
  std::string all;
  for (const auto& [have, value] : fields) {
    if (have == name) all += all.empty() ? value : "," + value;
  }
  return all;
}

/// One connection of the gateway to a FrameOrigin. It acknowledges SETTINGS and PING, and opens
/// the windows for what it has read, unless a test sets open_windows to false.
class FrameConnection {
 public:
  struct Call {
    std::uint32_t id = 0;
    wire::Fields fields;
    wire::Fields trailers;
    std::string body;
    bool ended = false;
    std::optional<std::uint32_t> reset;
    [[nodiscard]] std::string field(std::string_view name) const { return value_of(fields, name); }
  };

  FrameConnection(int fd, const H2Client::Settings& settings) : fd_(fd) {
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    EXPECT_EQ(take(http::h2::kClientPreface.size()), http::h2::kClientPreface);
    send(wire::settings(settings));
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }
  /// All of these bytes in DATA frames, as the windows allow.
  bool send_data(std::uint32_t id, std::string_view bytes, unsigned last_flags = 0) {
    while (!bytes.empty()) {
      const std::int64_t room = std::min<std::int64_t>({16384, window_, window_of(id)});
      if (room <= 0) {
        if (calls[id].reset || !next()) return false;
        continue;
      }
      const auto n = std::min(bytes.size(), static_cast<std::size_t>(room));
      const unsigned flags = n == bytes.size() ? last_flags : 0;
      if (!send(wire::data(id, bytes.substr(0, n), flags))) return false;
      window_ -= static_cast<std::int64_t>(n);
      opened_[id] -= static_cast<std::int64_t>(n);
      bytes.remove_prefix(n);
    }
    return true;
  }
  /// As much of the bytes as the gateway takes now; returns how much.
  std::size_t send_what_fits(std::uint32_t id, std::string_view bytes) {
    std::size_t sent = 0;
    for (int tries = 0; tries < 3 && sent < bytes.size();) {
      const std::int64_t room = std::min<std::int64_t>({16384, window_, window_of(id)});
      if (room <= 0) {
        ++tries;
        if (!in_step()) break;
        continue;
      }
      tries = 0;
      const std::string_view piece = bytes.substr(sent, static_cast<std::size_t>(room));
      if (!send_data(id, piece)) break;
      sent += piece.size();
    }
    return sent;
  }
  /// Reads and notes the next frame; nullopt at the end.
  std::optional<Frame> next() {
    const std::string head = take(http::h2::kFrameHeaderBytes);
    if (head.size() < http::h2::kFrameHeaderBytes) return std::nullopt;
    Frame frame;
    frame.header = http::h2::read_frame_header(reinterpret_cast<const std::uint8_t*>(head.data()));
    frame.payload = take(frame.header.length);
    if (frame.payload.size() < frame.header.length) return std::nullopt;
    note(frame);
    return frame;
  }
  template <class Done>
  bool until(Done done) {
    while (!done()) {
      if (!next()) return false;
    }
    return true;
  }
  /// The next request, with its head.
  Call& accept_call() {
    const std::uint32_t id = next_call_;
    next_call_ += 2;
    EXPECT_TRUE(until([&] { return calls.contains(id); })) << "request " << id;
    return calls[id];
  }
  /// The same, with its end.
  Call& whole_call() {
    Call& call = accept_call();
    EXPECT_TRUE(until([&] { return call.ended || call.reset; }));
    return call;
  }
  /// Sends PING and reads its answer: the gateway has read all earlier frames.
  bool in_step() {
    const std::size_t before = pongs;
    send(wire::ping());
    return until([&] { return pongs > before; });
  }
  /// Head, one message, trailers.
  void answer(std::uint32_t id, std::string_view body, const wire::Fields& trailers) {
    send(wire::headers(id, grpc_head(), 0));
    send_data(id, body);
    send(wire::headers(id, trailers));
  }
  /// With a reset of TCP.
  void cut() {
    const linger hard{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    fd_ = io::Fd();
  }

  std::map<std::uint32_t, Call> calls;
  std::size_t pongs = 0;
  std::size_t pings = 0;
  bool open_windows = true;

 private:
  std::string take(std::size_t bytes) {
    while (input_.size() < bytes) {
      char block[65536];
      const ssize_t got = ::recv(fd_.get(), block, sizeof block, 0);
      if (got <= 0) return std::exchange(input_, {});
      input_.append(block, static_cast<std::size_t>(got));
    }
    std::string out = input_.substr(0, bytes);
    input_.erase(0, bytes);
    return out;
  }
  std::int64_t window_of(std::uint32_t id) { return initial_ + opened_[id]; }
  void note(const Frame& frame) {
    const std::uint32_t id = frame.header.stream;
    switch (static_cast<http::h2::FrameType>(frame.header.type)) {
      case http::h2::FrameType::kHeaders: {
        Call& call = calls[id];
        (call.id == 0 ? call.fields : call.trailers) = headers_.read(frame.payload);
        call.id = id;
        call.ended = call.ended || frame.ends();
        break;
      }
      case http::h2::FrameType::kData:
        calls[id].body += frame.payload;
        calls[id].ended = calls[id].ended || frame.ends();
        if (open_windows && !frame.payload.empty()) {
          send(wire::window_update(0, frame.header.length));
          if (!frame.ends()) send(wire::window_update(id, frame.header.length));
        }
        break;
      case http::h2::FrameType::kRstStream:
        calls[id].reset = frame.word();
        break;
      case http::h2::FrameType::kWindowUpdate:
        (id == 0 ? window_ : opened_[id]) += frame.word();
        break;
      case http::h2::FrameType::kPing:
        if (frame.header.has(http::h2::flag::kAck)) {
          ++pongs;
        } else {
          ++pings;
          send(wire::frame(6, wire::kAck, 0, frame.payload));
        }
        break;
      case http::h2::FrameType::kSettings:
        if (frame.header.has(http::h2::flag::kAck)) break;
        for (std::size_t at = 0; at + 6 <= frame.payload.size(); at += 6) {
          const bool window = frame.payload[at] == 0 && frame.payload[at + 1] == 4;
          if (window) initial_ = frame.word(at + 2);
        }
        send(wire::settings_ack());
        break;
      default:
        break;
    }
  }

  io::Fd fd_;
  std::string input_;
  wire::HeaderReader headers_;
  std::uint32_t next_call_ = 1;
  std::int64_t window_ = 65535;  // for our DATA, of the connection
  std::int64_t initial_ = 65535;
  std::map<std::uint32_t, std::int64_t> opened_;
};

/// Listens for the gateway.
class FrameOrigin {
 public:
  FrameOrigin() {
    auto fd = io::listen_on(*io::parse_socket_name("127.0.0.1:0"), {});
    EXPECT_TRUE(fd.has_value());
    listening_ = std::move(*fd);
  }
  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(io::bound_name(listening_.get()).address.port);
  }
  [[nodiscard]] bool has_caller(int within_ms) const {
    pollfd one{.fd = listening_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, within_ms) == 1;
  }
  /// Waits for the gateway's next connection.
  std::unique_ptr<FrameConnection> accept(const H2Client::Settings& settings = {}) {
    EXPECT_TRUE(has_caller(10'000)) << "no connection";
    return std::make_unique<FrameConnection>(::accept(listening_.get(), nullptr, nullptr),
                                             settings);
  }

 private:
  io::Fd listening_;
};

inline config::Config http2_to(const std::vector<std::string>& endpoints) {
  config::Config config = gateway_config(endpoints);
  config.server.loops = 1;
  config.upstreams[0].protocol = upstream::Protocol::kHttp2;
  return config;
}

/// A client, a gateway and a service, and one connection on each side.
struct GrpcPath {
  using Change = std::function<void(config::Config&)>;

  explicit GrpcPath(const H2Client::Options& options = {}, const Change& change = nullptr)
      : gateway(config_for(origin, change)), client(gateway.port(), options) {}

  static config::Config config_for(const FrameOrigin& origin, const Change& change) {
    config::Config config = http2_to({origin.address()});
    if (change) change(config);
    return config;
  }
  /// The head of a call.
  std::uint32_t begin(const wire::Fields& more = {}) {
    return client.post(
        "/pkg.Service/Method",
        wire::with({{"content-type", "application/grpc"}, {"te", "trailers"}}, more));
  }
  /// A unary call.
  std::uint32_t say(const wire::Fields& more = {}) {
    const std::uint32_t id = begin(more);
    client.send(wire::data(id, grpc_message("hello"), wire::kEnd));
    return id;
  }
  /// The service's end of the first connection, or the one in use.
  FrameConnection& service(const H2Client::Settings& settings = {}) {
    if (!connection) connection = origin.accept(settings);
    return *connection;
  }

  FrameOrigin origin;
  RunningGateway gateway;
  H2Client client;
  std::unique_ptr<FrameConnection> connection;
};

}  // namespace weir::inline v0::gateway::testkit
