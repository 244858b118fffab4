// A small server for benchmarks and attack tests: fixed answers, an echo, long and slow responses.
//
//   hello_server --port 0 [--loops N] [--max-connections N] …    prints "port N" when it is ready
//   hello_server --tls-port 0 …        also serves TLS, with a certificate generated at start
//
//   /            128 bytes               /echo      sends the body back as it arrives
//   /bytes/N     N bytes                 /slow/MS   answers after MS milliseconds
//   /stats       counters as JSON        /arena     buffers the body in an arena, then echoes it
//   /queue       the same, but stays pending while no arena is free
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/self_signed.h"
#include "weir/experimental/io/signal.h"
#include "weir/experimental/io/timer.h"
#include "weir/experimental/io/tls_memory.h"
#include "weir/experimental/server/body_buffer.h"
#include "weir/experimental/server/memory_budget.h"
#include "weir/experimental/server/server.h"
#include "weir/experimental/server/stats_json.h"

namespace {

using weir::ArenaStatus;
using weir::BodyBuffer;
using weir::Handler;
using weir::ResponseField;
using weir::ResponseHead;
using weir::SendResult;
using weir::ServerRequest;
using weir::ServerStream;
using weir::http::BodyChunk;

constexpr std::string_view kHello =
    "Hello from a server whose memory has a ceiling. This answer is 128 bytes long so that servers "
    "can be compared by it. ..........\n";
static_assert(kHello.size() == 128);

constexpr ResponseField kPlain[] = {{"content-type", "text/plain"}};

std::uint64_t number_in(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Answers at once from a literal; tries again if no buffer was free.
class Hello final : public Handler {
 public:
  void on_headers(ServerStream&, const ServerRequest&) override {}
  void on_complete(ServerStream& stream) override { on_writable(stream); }
  void on_writable(ServerStream& stream) override {
    const ResponseHead head{.status = status_, .fields = kPlain, .content_length = {}};
    static_cast<void>(stream.send_response(head, text_, weir::BodyLife::kStream));
  }
  Hello(std::uint16_t status, std::string_view text) : status_(status), text_(text) {}

 private:
  std::uint16_t status_;
  std::string_view text_;
};

/// Sends each piece of the body back as it arrives; without room for it, reading is paused.
class Echo final : public Handler {
 public:
  struct State {
    bool started;
    bool ended;
  };
  void on_headers(ServerStream& stream, const ServerRequest&) override {
    stream.make_state<State>();
    static_cast<void>(start(stream));
  }
  void on_body(ServerStream& stream, const weir::http::BodyChunk& chunk) override {
    // The view is valid only during this call: reset if it cannot be sent now.
    if (!start(stream)) return stream.reset();
    if (stream.send_data(chunk.text()) < chunk.len) stream.reset();
    // Not after the last piece: no sent byte would then end the pause.
    if (!chunk.last() && stream.writable_bytes() < 64 * 1024) stream.pause();
  }
  void on_complete(ServerStream& stream) override {
    stream.state<State>().ended = true;
    on_writable(stream);
  }
  void on_writable(ServerStream& stream) override {
    if (!start(stream)) return;
    stream.resume();
    if (stream.state<State>().ended) static_cast<void>(stream.send_data({}, true));
  }

 private:
  static bool start(ServerStream& stream) {
    State& state = stream.state<State>();
    if (!state.started) {
      const ResponseHead head{.status = 200, .fields = kPlain, .content_length = {}};
      state.started = stream.send_headers(head) == SendResult::kSent;
    }
    return state.started;
  }
};

/// N bytes, as fast as the client reads them.
class Bytes final : public Handler {
 public:
  void on_headers(ServerStream& stream, const ServerRequest& request) override {
    stream.make_state<std::uint64_t>() = number_in(request.meta.path.substr(sizeof "/bytes"));
  }
  void on_complete(ServerStream& stream) override { on_writable(stream); }
  void on_writable(ServerStream& stream) override {
    std::uint64_t& left = stream.state<std::uint64_t>();
    if (!stream.response_started()) {
      const ResponseHead head{.status = 200, .fields = kPlain, .content_length = left};
      if (stream.send_headers(head, left == 0) != SendResult::kSent) return;
    }
    static const std::string block(64 * 1024, 'w');
    while (left > 0) {
      const std::size_t size = left < block.size() ? static_cast<std::size_t>(left) : block.size();
      const std::size_t taken = stream.send_data({block.data(), size}, left == size);
      left -= taken;
      if (taken < size) return;
    }
  }
};

/// Answers after some milliseconds.
class Slow final : public Handler {
 public:
  void on_headers(ServerStream& stream, const ServerRequest& request) override {
    auto* timer = new (slot(stream)) weir::io::Timer(weir::io::Timer::Fired(
        [](void* at, weir::TimePoint) { answer(*static_cast<ServerStream*>(at)); }, &stream));
    const auto millis =
        static_cast<std::int64_t>(number_in(request.meta.path.substr(sizeof "/slow")));
    stream.loop().arm(*timer, weir::Duration(std::chrono::milliseconds(millis)));
  }
  void on_writable(ServerStream& stream) override { answer(stream); }
  void on_finished(ServerStream& stream) override { forget(stream); }
  void on_abort(ServerStream& stream, weir::CloseReason) override { forget(stream); }

 private:
  struct Room {
    alignas(weir::io::Timer) std::byte memory[sizeof(weir::io::Timer)];
  };
  static void* slot(ServerStream& stream) { return stream.make_state<Room>().memory; }
  static void answer(ServerStream& stream) {
    const ResponseHead head{.status = 200, .fields = kPlain, .content_length = {}};
    static_cast<void>(stream.send_response(head, kHello, weir::BodyLife::kStream));
  }
  static void forget(ServerStream& stream) {
    auto* timer = std::launder(reinterpret_cast<weir::io::Timer*>(stream.state<Room>().memory));
    stream.loop().cancel(*timer);
    timer->~Timer();
  }
};

/// Collects the body in an arena and echoes it whole: 503 if no arena is free. The arena is taken
/// when the first byte of the body arrives: a client that sends only a head holds none.
class Buffered final : public Handler {
 public:
  void on_headers(ServerStream& stream, const ServerRequest&) override {
    stream.make_state<BodyBuffer>();
  }
  void on_body(ServerStream& stream, const weir::http::BodyChunk& chunk) override {
    if (stream.response_started()) return;
    if (stream.arena() == nullptr) {
      const weir::ArenaAnswer answer = stream.acquire_arena();
      if (answer.arena == nullptr) return stream.send_503();
      stream.state<BodyBuffer>() = BodyBuffer(*answer.arena);
    }
    if (!stream.state<BodyBuffer>().append(chunk)) stream.send_503();
  }
  void on_complete(ServerStream& stream) override { on_writable(stream); }
  void on_writable(ServerStream& stream) override {
    const ResponseHead head{.status = 200, .fields = kPlain, .content_length = {}};
    const std::string_view body = stream.state<BodyBuffer>().get();
    static_cast<void>(stream.send_response(head, body, weir::BodyLife::kStream));
  }
};

/// The same, but it waits for an arena and does not read the body meanwhile. It must request the
/// arena before the body arrives, because a view cannot be kept.
class Queued final : public Handler {
 public:
  void on_headers(ServerStream& stream, const ServerRequest&) override {
    const weir::ArenaAnswer answer = stream.acquire_arena(weir::ArenaWait::kQueue);
    if (answer.status == ArenaStatus::kRefused) return stream.send_503();
    if (answer.status == ArenaStatus::kGranted) on_arena(stream, answer.arena);
  }
  void on_arena(ServerStream& stream, weir::Arena* arena) override {
    if (arena == nullptr) return stream.send_503();
    stream.make_state<BodyBuffer>() = BodyBuffer(*arena);
  }
  void on_body(ServerStream& stream, const weir::http::BodyChunk& chunk) override {
    if (!stream.state<BodyBuffer>().append(chunk)) stream.send_503();
  }
  void on_complete(ServerStream& stream) override { on_writable(stream); }
  void on_writable(ServerStream& stream) override {
    const ResponseHead head{.status = 200, .fields = kPlain, .content_length = {}};
    const std::string_view body = stream.state<BodyBuffer>().get();
    static_cast<void>(stream.send_response(head, body, weir::BodyLife::kStream));
  }
};

class Router final : public Handler {
 public:
  explicit Router(weir::Server*& server) : stats_(server) {}

  void on_headers(ServerStream& stream, const ServerRequest& request) override {
    Handler& next = pick(request.meta.path);
    stream.set_handler(next);
    next.on_headers(stream, request);
  }

 private:
  class Stats final : public Handler {
   public:
    explicit Stats(weir::Server*& server) : server_(server) {}
    void on_headers(ServerStream&, const ServerRequest&) override {}
    void on_complete(ServerStream& stream) override {
      const ResponseHead head{.status = 200, .fields = kJson, .content_length = {}};
      const std::string text = weir::stats_json(server_->stats(), server_->config());
      if (stream.send_response(head, text) != SendResult::kSent) stream.send_503();
    }

   private:
    static constexpr ResponseField kJson[] = {{"content-type", "application/json"}};
    weir::Server*& server_;
  };

  Handler& pick(std::string_view path) {
    if (path == "/") return hello_;
    if (path == "/echo") return echo_;
    if (path.starts_with("/bytes/")) return bytes_;
    if (path.starts_with("/slow/")) return slow_;
    if (path == "/arena") return buffered_;
    if (path == "/queue") return queued_;
    if (path == "/stats") return stats_;
    return nothing_;
  }

  Hello hello_{200, kHello};
  Hello nothing_{404, "no such thing\n"};
  Echo echo_;
  Bytes bytes_;
  Slow slow_;
  Buffered buffered_;
  Queued queued_;
  Stats stats_;
};

bool set(weir::ServerConfig& config, std::string_view key, std::uint64_t value) {
  const auto small = static_cast<std::uint32_t>(value);
  const auto millis = std::chrono::milliseconds(static_cast<std::int64_t>(value));
  if (key == "--loops")
    config.loops = small;
  else if (key == "--max-connections")
    config.max_connections = small;
  else if (key == "--connections-per-source")
    config.connections_per_source_max = small;
  else if (key == "--write-buffers")
    config.tcp_write_buffer_pool_size = small;
  else if (key == "--arenas")
    config.arena_pool_size = small;
  else if (key == "--arena-size")
    config.arena_size = small;
  else if (key == "--pending")
    config.pending_stream_pool_size = small;
  else if (key == "--header-timeout-ms")
    config.header_timeout = config.http2.header_block_timeout = millis;
  else if (key == "--settings-ack-timeout-ms")
    config.http2.settings_ack_timeout = millis;
  else if (key == "--http2")
    config.http2_enabled = value != 0;
  else if (key == "--http2-sessions")
    config.http2_sessions_max = small;
  else if (key == "--streams")
    config.streams_max = small;
  else if (key == "--body-leases")
    config.body_lease_pool_size = small;
  else if (key == "--body-timeout-ms")
    config.body_timeout = millis;
  else if (key == "--body-min-rate")
    config.body_min_rate = small;
  else if (key == "--write-timeout-ms")
    config.write_timeout = millis;
  else if (key == "--write-min-rate")
    config.write_min_rate = small;
  else if (key == "--idle-timeout-ms")
    config.idle_timeout = millis;
  else if (key == "--backpressure-timeout-ms")
    config.backpressure_timeout = millis;
  else if (key == "--handshake-slots")
    config.handshake_slots = small;
  else if (key == "--stall-grace-ms")
    config.stall_grace = millis;
  else if (key == "--handshake-timeout-ms")
    config.tls.handshake_timeout = millis;
  else if (key == "--send-buffer")
    config.socket_send_buffer_size = small;
  else if (key == "--receive-buffer")
    config.socket_receive_buffer_size = small;
  else
    return false;
  return true;
}

constexpr const char* kUsage =
    "hello_server [--port N] [--loops N] [--max-connections N] [--connections-per-source N]\n"
    "  [--write-buffers N] [--arenas N] [--arena-size BYTES] [--pending N]\n"
    "  [--header-timeout-ms N] [--body-timeout-ms N] [--body-min-rate N] [--idle-timeout-ms N]\n"
    "  [--write-timeout-ms N] [--write-min-rate N] [--backpressure-timeout-ms N]\n"
    "  [--send-buffer BYTES] [--receive-buffer BYTES] [--body-leases N]\n"
    "  [--settings-ack-timeout-ms N] [--http2 0|1] [--http2-sessions N] [--streams N]\n"
    "  [--tls-port N] [--handshake-slots N] [--handshake-timeout-ms N] [--stall-grace-ms N]\n"
    "serves / /bytes/N /slow/MS /echo /arena /queue /stats on 127.0.0.1\n";

struct Stopper {
  void on_signal(int) { loop->stop(); }
  weir::io::Loop* loop;
};

}  // namespace

int main(int argc, char** argv) {
  weir::ServerConfig config;
  config.loops = 1;
  std::string port = "0";
  std::string tls_port;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view key = argv[i];
    const bool has_value = i + 1 < argc;
    if (has_value && key == "--port") {
      port = argv[i + 1];
    } else if (has_value && key == "--tls-port") {
      tls_port = argv[i + 1];
    } else if (!has_value || !set(config, key, number_in(argv[i + 1]))) {
      const bool asked = key == "--help";
      std::fputs(kUsage, asked ? stdout : stderr);
      return asked ? 0 : 2;
    }
  }
  // Small pools may be too small for the default reserves.
  config.reserved_connections = std::min(config.reserved_connections, config.max_connections / 8);
  config.reserved_write_buffers =
      std::min(config.reserved_write_buffers, config.tcp_write_buffer_pool_size / 8);
  config.reserved_arenas = std::min(config.reserved_arenas, config.arena_pool_size / 8);
  config.reserved_streams = std::min(config.reserved_streams, config.streams_max / 8);
  config.reserved_handshakes = std::min(config.reserved_handshakes, config.handshake_slots / 8);
  config.listen = {"127.0.0.1:" + port};
  if (!tls_port.empty()) {
    // Before OpenSSL allocates anything: its memory is part of the ceiling.
    if (!weir::io::install_tls_memory(~std::uint64_t{0})) return 1;
    const weir::io::MadeCertificate made = weir::io::make_certificate(
        {.names = {"localhost", "127.0.0.1"}, .signer_pem = {}, .authority = false});
    config.tls.listen = {"127.0.0.1:" + tls_port};
    config.tls.certificate_pem = made.certificate_pem;
    config.tls.private_key_pem = made.key_pem;
    weir::io::set_tls_memory_budget(weir::tls_memory_bytes(config));
  }
  for (const weir::ConfigError& error : config.validate()) {
    std::fprintf(stderr, "%s = %s: allowed is %s\n", error.key.c_str(), error.value.c_str(),
                 error.allowed.c_str());
    return 2;
  }
  weir::Server* running = nullptr;
  weir::Server server(config,
                      [&](const weir::HandlerPlace&) { return std::make_unique<Router>(running); });
  running = &server;
  if (const auto started = server.start(); !started) {
    std::fprintf(stderr, "%s: %s\n", started.error().where.c_str(),
                 std::string(name_of(started.error().error)).c_str());
    return 1;
  }
  weir::io::Loop loop;
  Stopper stopper{&loop};
  weir::io::SignalWatcher interrupt;
  weir::io::SignalWatcher terminate;
  const auto callback = weir::io::Callback<int>::to<&Stopper::on_signal>(stopper);
  if (!interrupt.start(loop, SIGINT, callback) || !terminate.start(loop, SIGTERM, callback))
    return 1;
  // Printed last: the reader of the port may send SIGTERM at once.
  std::printf("port %u\n", server.port());
  if (!tls_port.empty()) std::printf("tls-port %u\n", server.tls_port());
  std::printf("ceiling %llu\n", static_cast<unsigned long long>(weir::worst_case_bytes(config)));
  std::fflush(stdout);
  loop.run();
  interrupt.close();
  terminate.close();
  loop.run_once();
  server.drain(std::chrono::seconds(5));
  server.stop();
  return 0;
}
