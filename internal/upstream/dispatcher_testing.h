#pragma once

// A dispatcher on a loop that the test steps, and an origin that the test controls.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "weir/experimental/io/address.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/listener.h"

#include "upstream/call.h"
#include "upstream/dispatcher.h"
#include "upstream/upstream.h"

namespace weir::inline v0::upstream {

/// An origin server on a real socket, whose every step a test controls.
class FakeOrigin {
 public:
  FakeOrigin() {
    auto fd = io::listen_on(*io::parse_socket_name("127.0.0.1:0"), {});
    EXPECT_TRUE(fd.has_value());
    listening_ = std::move(fd).value();
  }
  [[nodiscard]] io::SocketName name() const { return io::bound_name(listening_.get()); }

  /// Steps the loop until a connection arrives.
  void accept(io::Loop& loop) {
    for (int i = 0; i < 1000 && !readable(listening_.get()); ++i) loop.run_once();
    connection_ = io::Fd(::accept(listening_.get(), nullptr, nullptr));
    ASSERT_GE(connection_.get(), 0);
  }
  /// Accepts one more; the connections before it stay open and are not read.
  void accept_another(io::Loop& loop) {
    others_.push_back(std::move(connection_));
    accept(loop);
  }
  [[nodiscard]] bool has_caller() const { return readable(listening_.get()); }

  /// Steps the loop until this many bytes, or an end, are received.
  std::string read(io::Loop& loop, std::size_t at_least) {
    std::string got;
    for (int i = 0; i < 2000 && got.size() < at_least; ++i) {
      loop.run_once();
      if (!readable(connection_.get())) continue;
      char buffer[65536];
      const auto n = ::recv(connection_.get(), buffer, sizeof buffer, 0);
      if (n <= 0) break;
      got.append(buffer, static_cast<std::size_t>(n));
    }
    return got;
  }
  /// What has arrived, without stepping the loop; empty if nothing has.
  [[nodiscard]] std::string read_some() const {
    if (!readable(connection_.get())) return {};
    char buffer[65536];
    const auto n = ::recv(connection_.get(), buffer, sizeof buffer, 0);
    return n > 0 ? std::string(buffer, static_cast<std::size_t>(n)) : std::string();
  }
  /// Reads one request head.
  std::string read_head(io::Loop& loop) {
    std::string got;
    for (int i = 0; i < 2000 && got.find("\r\n\r\n") == std::string::npos; ++i) {
      got += read(loop, 1);
    }
    return got;
  }
  void write(std::string_view bytes) const {
    ASSERT_EQ(::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void close() { connection_ = io::Fd(); }
  void reset() {
    const linger hard{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(connection_.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }
  void stop_listening() { listening_ = io::Fd(); }

 private:
  static bool readable(int fd) {
    pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&p, 1, 1) == 1;
  }
  io::Fd listening_;
  io::Fd connection_;
  std::vector<io::Fd> others_;
};

/// Records the events of a call.
class CallRecorder final : public CallEvents {
 public:
  bool on_upstream_interim(const ResponseHead& head) override {
    interim.push_back(head.status);
    return take_interim;
  }
  bool on_upstream_head(const ResponseHead& head) override {
    ++heads;
    if (!take_heads) return false;
    status = head.status;
    tunnel = head.tunnel;
    return true;
  }
  std::size_t on_upstream_body(std::string_view bytes) override {
    const std::size_t n = std::min(bytes.size(), take_at_most);
    body += bytes.substr(0, n);
    return n;
  }
  bool on_upstream_trailers(const http::HeaderList& list) override {
    if (!take_trailers) return false;
    trailers = list.size();
    return true;
  }
  void on_upstream_complete() override { complete = true; }
  void on_upstream_blocked() override { ++blocked; }
  void on_upstream_writable() override { ++writable; }
  void on_upstream_failed(UpstreamFailure why) override { failure = why; }

  unsigned status = 0;
  std::string body;
  std::vector<unsigned> interim;
  std::size_t take_at_most = ~std::size_t{0};
  std::size_t trailers = 0;
  int blocked = 0;
  int writable = 0;
  int heads = 0;
  bool take_interim = true;
  bool take_heads = true;
  bool take_trailers = true;
  bool tunnel = false;
  bool complete = false;
  UpstreamFailure failure = UpstreamFailure::kNone;
};

/// A call and its recorder.
struct Asked {
  CallRecorder seen;
  Call call{seen};
};

/// The parts of "METHOD path HTTP/1.1\r\nhost: h\r\n…" without the empty line.
inline RequestHead head_parts(std::string_view text, http::Method method, RequestFraming framing) {
  RequestHead head;
  head.method_size = static_cast<std::uint32_t>(text.find(' '));
  head.path_size =
      static_cast<std::uint32_t>(text.find(' ', head.method_size + 1)) - head.method_size - 1;
  head.authority_begin = static_cast<std::uint32_t>(text.find("\r\nhost: ") + 8);
  head.authority_size =
      static_cast<std::uint32_t>(text.find("\r\n", head.authority_begin)) - head.authority_begin;
  head.fields_begin = head.authority_begin + head.authority_size + 2;
  head.size = static_cast<std::uint32_t>(text.size());
  const std::size_t chunked = text.find("transfer-encoding: ");
  head.fields_end =
      chunked == std::string_view::npos ? head.size : static_cast<std::uint32_t>(chunked);
  head.method = method;
  head.framing = framing;
  return head;
}

class DispatcherTest : public ::testing::Test {
 protected:
  static constexpr std::string_view kGet = "GET / HTTP/1.1\r\nhost: x\r\n";
  static constexpr std::string_view kGetOnWire = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

  void make(const std::vector<io::SocketName>& endpoints, UpstreamConfig config = {},
            std::uint32_t reserved = 0) {
    config.name = "u";
    std::vector<DiscoveredEndpoint> found;
    for (const io::SocketName& name : endpoints) found.emplace_back().address = name;
    upstream = std::make_unique<Upstream>(Upstream::Setup{.config = std::move(config),
                                                          .loops = 2,
                                                          .reserved = reserved,
                                                          .rng = Rng(1),
                                                          .observer = nullptr,
                                                          .tls = nullptr},
                                          std::move(found), loop.now());
    dispatcher = make_dispatcher(loop, 0);
  }
  std::unique_ptr<Dispatcher> make_dispatcher(io::Loop& on, std::uint32_t index) {
    return std::make_unique<Dispatcher>(Dispatcher::Setup{.loop = on,
                                                          .loop_index = index,
                                                          .upstream = *upstream,
                                                          .memory = memory,
                                                          .response_limits = limits,
                                                          .rng = Rng(index + 2)});
  }
  void TearDown() override {
    if (!dispatcher) return;
    dispatcher->stop();
    for (int i = 0; i < 100 && !dispatcher->stopped(); ++i) loop.run_once();
    dispatcher.reset();
    loop.run_once();
    EXPECT_EQ(memory.heads.stats().used, 0U);
    EXPECT_EQ(memory.bodies.stats().used, 0U);
    EXPECT_EQ(memory.regions.stats().used, 0U);
    EXPECT_EQ(upstream->connections(), 0U);
    EXPECT_EQ(upstream->held(), 0U);
    for (const EndpointSet::Member& member : upstream->endpoints()->members) {
      EXPECT_EQ(member.endpoint->in_flight(), 0U);
    }
  }
  static void put_head(Dispatcher& at, Call& call, std::string_view text, const RequestHead& parts,
                       io::Access access = io::Access::kOrdinary) {
    ASSERT_TRUE(at.open(call, access));
    ASSERT_LE(text.size(), call.space().size());
    std::copy(text.begin(), text.end(), call.space().begin());
    call.commit(parts);
  }
  Result<void, UpstreamFailure> get(Call& call, const Call::Start& start = {},
                                    io::Access access = io::Access::kOrdinary) {
    put_head(*dispatcher, call, kGet, head_parts(kGet, http::Method::kGet, RequestFraming::kNone),
             access);
    return call.start(start);
  }
  /// The head of a GET reaches the origin over a new connection.
  void get_from(FakeOrigin& origin, Call& call) {
    ASSERT_TRUE(get(call));
    origin.accept(loop);
    EXPECT_EQ(origin.read_head(loop), kGetOnWire);
  }
  /// One call over a new connection, which then stays idle.
  void keep_one_idle(FakeOrigin& origin) {
    Asked asked;
    get_from(origin, asked.call);
    origin.write("HTTP/1.1 204 No Content\r\n\r\n");
    run_until([&] { return asked.seen.complete; });
    ASSERT_EQ(dispatcher->idle_connections(), 1U);
  }
  void run_until_failed(const CallRecorder& seen) {
    run_until([&] { return seen.failure != UpstreamFailure::kNone; });
  }
  template <class Done>
  void run_until(Done done) {
    for (int i = 0; i < 3000 && !done(); ++i) {
      loop.run_once();
      ::poll(nullptr, 0, 1);
    }
    ASSERT_TRUE(done());
  }

  io::Loop loop;
  UpstreamMemory memory{{.heads = 16,
                         .head_bytes = 16 * 1024,
                         .bodies = 16,
                         .body_bytes = 32 * 1024,
                         .regions = 16,
                         .region_bytes = 32 * 1024,
                         .sessions = 4,
                         .session_bytes = 256 * 1024,
                         .loops = 2,
                         .reserved = 0}};
  http::HttpLimits limits;
  std::unique_ptr<Upstream> upstream;
  std::unique_ptr<Dispatcher> dispatcher;
};

}  // namespace weir::inline v0::upstream
