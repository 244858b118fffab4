#pragma once

// A server on port 0 and blocking clients, for the tests of this layer.

#include <atomic>
#include <cerrno>
#include <charconv>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/thread_parker.h"
#include "weir/experimental/server/server.h"

namespace weir::inline v0::inline server::testkit {

/// A handler made of closures; a closure that is not set has the default behaviour of Handler.
struct ScriptedHandler : Handler {
  std::function<void(ServerStream&, const ServerRequest&)> headers = [](auto&, auto&) {};
  std::function<void(ServerStream&, const http::HeaderView&)> header;
  std::function<void(ServerStream&, const http::BodyChunk&)> body;
  std::function<void(ServerStream&, const http::HeaderList&)> trailers;
  std::function<void(ServerStream&)> complete;
  std::function<void(ServerStream&)> writable;
  std::function<void(ServerStream&, Arena*)> arena;
  std::function<void(ServerStream&)> finished;
  std::function<void(ServerStream&, CloseReason)> aborted;

  void on_headers(ServerStream& s, const ServerRequest& r) override { headers(s, r); }
  void on_header(ServerStream& s, const http::HeaderView& h) override {
    if (header) header(s, h);
  }
  void on_body(ServerStream& s, const http::BodyChunk& c) override {
    if (body) body(s, c);
  }
  void on_trailers(ServerStream& s, const http::HeaderList& t) override {
    if (trailers) trailers(s, t);
  }
  void on_complete(ServerStream& s) override {
    if (complete) complete(s);
  }
  void on_writable(ServerStream& s) override {
    if (writable) writable(s);
  }
  void on_arena(ServerStream& s, Arena* a) override {
    if (arena) return arena(s, a);
    Handler::on_arena(s, a);
  }
  void on_finished(ServerStream& s) override {
    if (finished) finished(s);
  }
  void on_abort(ServerStream& s, CloseReason r) override {
    if (aborted) aborted(s, r);
  }
};

inline SendResult reply(ServerStream& stream, std::uint16_t status, std::string_view body,
                        BodyLife life = BodyLife::kCall) {
  return stream.send_response({.status = status, .fields = {}, .content_length = {}}, body, life);
}

/// A configuration small enough for tests to reach its bounds.
inline ServerConfig small_config() {
  ServerConfig config;
  config.listen = {"127.0.0.1:0"};
  config.loops = 1;
  config.max_connections = 64;
  config.tcp_write_buffer_pool_size = 64;
  config.arena_pool_size = 8;
  config.arena_size = 256 * 1024;
  config.reserved_connections = 0;
  config.reserved_write_buffers = 0;
  config.reserved_arenas = 0;
  config.tick = std::chrono::milliseconds(5);
  config.stall_grace = std::chrono::hours(1);  // half a head keeps its place; tests may lower it
  return config;
}

/// Waits until the statistics satisfy `what`; at most ten seconds.
[[nodiscard]] inline bool eventually(const Server& server,
                                     const std::function<bool(const ServerStats&)>& what) {
  io::ThreadParker parker;
  const TimePoint limit = io::monotonic_now() + std::chrono::seconds(10);
  while (!what(server.stats())) {
    const TimePoint now = io::monotonic_now();
    if (now >= limit) return false;
    parker.park_until(now + std::chrono::milliseconds(1));
  }
  return true;
}

/// Runs a server whose loops all use handlers made by `make`.
class RunningServer {
 public:
  using Make = std::function<std::unique_ptr<Handler>(const HandlerPlace&)>;
  RunningServer(const ServerConfig& config, Make make) : server_(config, std::move(make)) {
    EXPECT_EQ(config.validate(), ConfigErrors{});
    const auto started = server_.start();
    EXPECT_TRUE(started.has_value());
  }
  Server& operator*() { return server_; }
  Server* operator->() { return &server_; }
  [[nodiscard]] ServerStats stats() const { return server_.stats(); }
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }

  [[nodiscard]] bool eventually(const std::function<bool(const ServerStats&)>& what) const {
    return testkit::eventually(server_, what);
  }

 private:
  Server server_;
};

inline RunningServer::Make every_loop(std::function<void(ScriptedHandler&)> script) {
  return [script](const HandlerPlace&) {
    auto handler = std::make_unique<ScriptedHandler>();
    script(*handler);
    return handler;
  };
}

/// Holds streams until the test answers them one by one, on their loop.
class Gate {
 public:
  void hold(ServerStream& stream) {
    const std::lock_guard lock(mutex_);
    held_.push_back(&stream);
  }
  void forget(ServerStream& stream) {
    const std::lock_guard lock(mutex_);
    std::erase(held_, &stream);
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  /// Answers the stream that is held longest.
  void open_one() {
    ServerStream* stream = nullptr;
    {
      const std::lock_guard lock(mutex_);
      ASSERT_FALSE(held_.empty());
      stream = held_.front();
      held_.erase(held_.begin());
    }
    std::promise<void> done;
    stream->loop().post([&] {
      EXPECT_EQ(reply(*stream, 200, "done"), SendResult::kSent);
      done.set_value();
    });
    done.get_future().wait();
  }
  /// Handlers that do not answer before the gate opens.
  [[nodiscard]] RunningServer::Make holding() {
    return every_loop([this](ScriptedHandler& h) {
      h.complete = [this](ServerStream& s) { hold(s); };
      h.aborted = [this](ServerStream& s, CloseReason) { forget(s); };
    });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<ServerStream*> held_;
};

/// Answers with the number of body bytes received.
inline void count_body(ScriptedHandler& h) {
  h.complete = [](ServerStream& s) {
    EXPECT_EQ(reply(s, 200, std::to_string(s.body_bytes_received())), SendResult::kSent);
  };
}

/// Answers every request with 200 "hello".
inline RunningServer::Make says_hello() {
  return every_loop([](ScriptedHandler& handler) {
    handler.complete = [](ServerStream& stream) {
      EXPECT_EQ(reply(stream, 200, "hello"), SendResult::kSent);
    };
  });
}

/// `size` bytes in which a missing, repeated or misplaced piece is visible.
inline std::string pattern(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + (i * 7 + i / 251) % 26);
  return text;
}

struct Answer {
  int status = 0;  // 0: no response
  std::string head;
  std::string body;

  [[nodiscard]] bool has(std::string_view line) const {
    return head.find(line) != std::string::npos;
  }
};

/// The source address of this thread's clients, as long as this object exists.
class From {
 public:
  explicit From(std::uint32_t address) { current() = address; }
  From(const From&) = delete;
  From& operator=(const From&) = delete;
  ~From() { current() = INADDR_ANY; }
  static std::uint32_t& current() {
    thread_local std::uint32_t address = INADDR_ANY;
    return address;
  }
};

/// A client with a blocking socket and a timeout of ten seconds for each operation.
class Client {
 public:
  explicit Client(std::uint16_t port, int receive_buffer = 0) {
    fd_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (receive_buffer > 0) {
      ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (From::current() != INADDR_ANY) {
      sockaddr_in here{};
      here.sin_family = AF_INET;
      here.sin_addr.s_addr = htonl(From::current());
      EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&here), sizeof here), 0);
    }
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&there), sizeof there) == 0;
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }
  void end_output() { ::shutdown(fd_.get(), SHUT_WR); }
  void close() { fd_.reset(); }
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    fd_.reset();
  }
  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

  /// Reads one response, framed by Content-Length, chunked or the end. `head_only` for HEAD.
  Answer read(bool head_only = false) {
    Answer answer;
    std::size_t end = std::string::npos;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return answer;
    }
    answer.head = input_.substr(0, end + 4);
    input_.erase(0, end + 4);
    std::from_chars(answer.head.data() + 9, answer.head.data() + 12, answer.status);
    const bool no_body =
        head_only || answer.status < 200 || answer.status == 204 || answer.status == 304;
    if (no_body) return answer;
    if (const std::size_t at = answer.head.find("content-length: "); at != std::string::npos) {
      std::size_t length = 0;
      const char* from = answer.head.data() + at + 16;
      std::from_chars(from, answer.head.data() + answer.head.size(), length);
      while (input_.size() < length && more()) {
      }
      answer.body = input_.substr(0, length);
      input_.erase(0, length);
    } else if (answer.has("transfer-encoding: chunked")) {
      read_chunks(answer);
    } else {
      while (more()) {
      }
      answer.body = std::exchange(input_, {});
    }
    return answer;
  }
  Answer ask(std::string_view request) { return send(request) ? read() : Answer{}; }
  Answer get(std::string_view path) {
    return ask("GET " + std::string(path) + " HTTP/1.1\r\nhost: t\r\n\r\n");
  }
  /// Reads `size` raw bytes, or fewer at the end.
  std::string take(std::size_t size) {
    while (input_.size() < size && more()) {
    }
    const std::size_t got = std::min(size, input_.size());
    std::string out = input_.substr(0, got);
    input_.erase(0, got);
    return out;
  }
  /// True when the peer ends the connection (in any way) without sending more.
  bool at_end() {
    if (!input_.empty()) return false;
    return !more();
  }
  [[nodiscard]] bool was_reset() const { return error_ == ECONNRESET; }
  [[nodiscard]] bool timed_out() const { return error_ == EAGAIN; }
  std::string trailers;

 private:
  bool more() {
    char block[16 * 1024];
    const ssize_t got = ::recv(fd_.get(), block, sizeof block, 0);
    if (got < 0) error_ = errno;
    if (got <= 0) return false;
    input_.append(block, static_cast<std::size_t>(got));
    return true;
  }
  std::string line() {
    std::size_t end = 0;
    while ((end = input_.find("\r\n")) == std::string::npos) {
      if (!more()) return {};
    }
    std::string out = input_.substr(0, end);
    input_.erase(0, end + 2);
    return out;
  }
  void read_chunks(Answer& answer) {
    while (true) {
      const std::string size_line = line();
      std::size_t size = 0;
      std::from_chars(size_line.data(), size_line.data() + size_line.size(), size, 16);
      if (size == 0) break;
      answer.body += take(size);
      if (!line().empty()) return;
    }
    for (std::string field = line(); !field.empty(); field = line()) trailers += field + "\n";
  }

  io::Fd fd_;
  std::string input_;
  int error_ = 0;
  bool connected_ = false;
};

}  // namespace weir::inline v0::inline server::testkit
