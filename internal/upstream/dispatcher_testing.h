#pragma once

// A dispatcher on a loop that the test steps, and an origin that the test controls.

#include <algorithm>
#include <deque>
#include <functional>
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
  /// Its address is known, but it refuses connections until open().
  enum class Refusing : bool { kYes = true };
  explicit FakeOrigin(Refusing)
      : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  }
  void open() const { open_with_backlog(128); }
  void open_with_backlog(int backlog) const { ASSERT_EQ(::listen(listening_.get(), backlog), 0); }
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
  /// The connection that was accepted as the nth, from 0, is the one to read and write again.
  void back_to(std::size_t nth) {
    others_.push_back(std::move(connection_));
    connection_ = std::move(others_[nth]);
  }
  /// The other side has ended or reset the connection.
  [[nodiscard]] bool ended() const {
    char c = 0;
    return readable(connection_.get()) &&
           ::recv(connection_.get(), &c, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
  }

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
  std::string read_head(io::Loop& loop) { return read_until(loop, "\r\n\r\n"); }
  /// Reads until the text has arrived.
  std::string read_until(io::Loop& loop, std::string_view text) {
    std::string got;
    for (int i = 0; i < 2000 && got.find(text) == std::string::npos; ++i) got += read(loop, 1);
    return got;
  }
  void write(std::string_view bytes) const {
    ASSERT_EQ(::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void close() { connection_ = io::Fd(); }
  void close_all() {
    close();
    others_.clear();
  }
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

enum class CallEvent { kInterim, kHead, kBody, kTrailers, kComplete, kBlocked, kWritable, kFailed };

/// Records the events of a call, and does what a test wants within one of them.
class CallRecorder final : public CallEvents {
 public:
  bool on_upstream_interim(const ResponseHead& head) override {
    interim.push_back(head.status);
    const bool taken = take_interim;
    act(CallEvent::kInterim);
    return taken;
  }
  bool on_upstream_head(const ResponseHead& head) override {
    ++heads;
    if (!take_heads) return false;
    status = head.status;
    tunnel = head.tunnel;
    act(CallEvent::kHead);
    return true;
  }
  std::size_t on_upstream_body(std::string_view bytes) override {
    const std::size_t n = std::min(bytes.size(), take_at_most);
    body += bytes.substr(0, n);
    act(CallEvent::kBody);
    return n;
  }
  bool on_upstream_trailers(const http::HeaderList& list) override {
    if (!take_trailers) return false;
    trailers = list.size();
    act(CallEvent::kTrailers);
    return true;
  }
  void on_upstream_complete() override {
    complete = true;
    ++ends;
    act(CallEvent::kComplete);
  }
  void on_upstream_received() override { received = true; }
  void on_upstream_blocked() override {
    ++blocked;
    act(CallEvent::kBlocked);
  }
  void on_upstream_writable() override {
    ++writable;
    act(CallEvent::kWritable);
  }
  void on_upstream_failed(UpstreamFailure why) override {
    failure = why;
    ++ends;
    act(CallEvent::kFailed);
  }
  void on_upstream_held() override { ++held; }
  bool may_leave_hold() override { return leaves_hold; }
  [[nodiscard]] bool ended() const { return ends > 0; }

  /// Runs once, within the first `at`; may destroy this object.
  void within(CallEvent at, std::function<void()> what) {
    act_at_ = at;
    act_ = std::move(what);
  }

  unsigned status = 0;
  std::string body;
  std::vector<unsigned> interim;
  std::size_t take_at_most = ~std::size_t{0};
  std::size_t trailers = 0;
  int blocked = 0;
  int writable = 0;
  int heads = 0;
  int held = 0;
  bool leaves_hold = true;
  bool take_interim = true;
  bool take_heads = true;
  bool take_trailers = true;
  bool tunnel = false;
  bool complete = false;
  bool received = false;
  int ends = 0;
  UpstreamFailure failure = UpstreamFailure::kNone;

 private:
  void act(CallEvent event) {
    if (act_ == nullptr || event != act_at_) return;
    const std::function<void()> what = std::exchange(act_, nullptr);
    what();
  }
  CallEvent act_at_ = CallEvent::kComplete;
  std::function<void()> act_;
};

/// A call and its recorder.
struct Asked {
  Asked() = default;
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  /// A test that gives up reports its failure, not that it left a call behind.
  ~Asked() {
    if (::testing::Test::HasFatalFailure()) call.cancel();
  }
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

/// Takes places in the queue of an endpoint's second loop, as if requests waited there.
class QueueFiller {
 public:
  QueueFiller() = default;
  QueueFiller(const QueueFiller&) = delete;
  QueueFiller& operator=(const QueueFiller&) = delete;
  ~QueueFiller() { clear(); }

  void fill(Endpoint& endpoint, int places) {
    for (int i = 0; i < places; ++i) {
      ASSERT_TRUE(endpoint.queue(1).put(items_.emplace_back(), TimePoint{}).accepted());
    }
  }
  void clear() {
    for (control::OutgoingItem& item : items_) item.queue()->withdraw(item);
    items_.clear();
  }

 private:
  std::deque<control::OutgoingItem> items_;
};

class DispatcherTest : public ::testing::Test {
 protected:
  static constexpr std::string_view kGet = "GET / HTTP/1.1\r\nhost: x\r\n";
  static constexpr std::string_view kGetOnWire = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
  static constexpr std::string_view kNoContent = "HTTP/1.1 204 No Content\r\n\r\n";
  static constexpr std::string_view kUnavailable =
      "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nlate";

  /// Without warm connections: each connection that arrives was opened for a call.
  static UpstreamConfig plain() {
    UpstreamConfig config;
    config.warm_connections = 0;
    return config;
  }
  static std::vector<DiscoveredEndpoint> found(const std::vector<io::SocketName>& names) {
    std::vector<DiscoveredEndpoint> all;
    for (const io::SocketName& name : names) all.emplace_back().address = name;
    return all;
  }
  void make(const std::vector<io::SocketName>& endpoints, UpstreamConfig config = plain(),
            std::uint32_t reserved = 0) {
    config.name = "u";
    upstream = std::make_unique<Upstream>(Upstream::Setup{.config = std::move(config),
                                                          .loops = 2,
                                                          .reserved = reserved,
                                                          .rng = Rng(1),
                                                          .observer = nullptr,
                                                          .tls = nullptr,
                                                          .cancel_pace = cancel_pace,
                                                          .read_classes = read_classes},
                                          found(endpoints), loop.now());
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
    EXPECT_EQ(memory.buffers.stats().used, 0U);
    EXPECT_EQ(memory.regions.stats().used, 0U);
    EXPECT_EQ(upstream->connections(), 0U);
    EXPECT_EQ(upstream->held(), 0U);
    EXPECT_EQ(upstream->waiting(), 0U);
    const std::shared_ptr<const EndpointSet> set = upstream->endpoints();
    for (const EndpointSet::Member& member : set->members) {
      EXPECT_EQ(member.endpoint->in_flight(), 0U);
      const control::OutgoingStats queues = member.endpoint->queue_stats();
      EXPECT_EQ(queues.queued + queues.in_flight, 0U);
      EXPECT_EQ(queues.offered,
                queues.sent + queues.failed + queues.dropped + queues.refused + queues.expired);
      EXPECT_EQ(member.endpoint->queue_state(), policy::OutgoingState::kHealthy);
      for (std::uint32_t i = 0; i < member.endpoint->loops(); ++i) {
        const EndpointCounters& counters = member.endpoint->counters(i);
        EXPECT_EQ(counters.connections.get(), 0U);
        EXPECT_EQ(counters.connecting.get(), 0U);
        EXPECT_EQ(counters.idle.get(), 0U);
        EXPECT_EQ(counters.oldest_unanswered_ns.load(), 0);
      }
    }
  }
  [[nodiscard]] Endpoint& endpoint(std::size_t i = 0) const {
    return *upstream->endpoints()->members[i].endpoint;
  }
  /// Of the first loop.
  [[nodiscard]] EndpointCounters& counters(std::size_t i = 0) const {
    return endpoint(i).counters(0);
  }
  [[nodiscard]] std::uint64_t failures(UpstreamFailure failure, std::size_t i = 0) const {
    return counters(i).failures[index_of(failure)].get();
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
  struct Request {
    http::Method method = http::Method::kPost;
    RequestFraming framing = RequestFraming::kLength;
    std::size_t length = 0;
    bool upgrade = false;
  };
  static std::string text_of(const Request& request) {
    std::string text = request.method == http::Method::kPost  ? "POST"
                       : request.method == http::Method::kPut ? "PUT"
                                                              : "GET";
    text += " / HTTP/1.1\r\nhost: x\r\n";
    if (request.framing == RequestFraming::kChunked) text += "transfer-encoding: chunked\r\n";
    if (request.framing == RequestFraming::kLength) {
      text += "content-length: " + std::to_string(request.length) + "\r\n";
    }
    if (request.upgrade) text += "connection: upgrade\r\nupgrade: w\r\n";
    return text;
  }
  /// A request whose body follows by send_body().
  Result<void, UpstreamFailure> ask(Call& call, const Request& request,
                                    const Call::Start& start = {}) {
    const std::string text = text_of(request);
    RequestHead parts = head_parts(text, request.method, request.framing);
    parts.upgrade = request.upgrade;
    put_head(*dispatcher, call, text, parts);
    return call.start(start);
  }
  /// The one of two origins that a connection arrives at, which it accepts.
  FakeOrigin& accept_at_one(FakeOrigin& a, FakeOrigin& b) {
    run_until([&] { return a.has_caller() || b.has_caller(); });
    FakeOrigin& one = a.has_caller() ? a : b;
    one.accept(loop);
    return one;
  }
  void run_until_ended(const CallRecorder& seen) {
    run_until([&] { return seen.ended(); });
  }
  /// Runs the loop for some time.
  void let_pass(Duration time) {
    const TimePoint until = loop.now() + time;
    run_until([&] { return loop.now() >= until; });
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
    origin.write(kNoContent);
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
                         .buffers = 4,
                         .buffer_bytes = 16 * 1024,
                         .regions = 16,
                         .region_bytes = 32 * 1024,
                         .sessions = 4,
                         .session_bytes = 256 * 1024,
                         .loops = 2,
                         .reserved = 0}};
  http::HttpLimits limits;
  std::uint32_t read_classes = 1;
  policy::CancelPaceRules cancel_pace;
  std::unique_ptr<Upstream> upstream;
  std::unique_ptr<Dispatcher> dispatcher;
};

}  // namespace weir::inline v0::upstream
