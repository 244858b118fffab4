// traffic.cc over HTTP/2: an open-loop client that sends at the planned times, independent of the
// answers, and prints the same JSON. It knows nothing of Weir; its codec is nghttp2.
//
//   http2_traffic --port 8443 --tls 1 --grpc 1 --seconds 5 --connections 16 --streams 64
//                 --class PATH:RATE[:HEADER] …
//
// With --grpc 1 each request is a unary call with a message of --message bytes: "ok" is an answer
// with a whole message and grpc-status 0, "refused" one with RESOURCE_EXHAUSTED or UNAVAILABLE. A
// request that finds no connection with a free stream counts as "unsent"; one that the server has
// certainly not processed (REFUSED_STREAM, or above the stream of a GOAWAY) is sent again.
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "traffic_classes.h"

namespace {

using weir_test::as_duration;
using weir_test::Clock;
using weir_test::read_number;
using weir_test::Time;
using weir_test::TrafficClass;

constexpr std::int32_t kWindow = 1 << 24;  // windows are not under test

struct Options {
  std::uint16_t port = 0;
  double seconds = 5;  // counted
  double settle = 0;   // before that, not counted
  double grace = 2;    // after the last request, for answers
  std::size_t connections = 16;
  std::size_t streams = 64;  // of one connection
  std::size_t message = 16;
  int tls = 0;
  int grpc = 0;
  std::vector<TrafficClass> classes;
};

/// One request and its answer.
struct Request {
  TrafficClass* of = nullptr;
  Time planned{};
  int status = 0;
  int grpc_status = -1;
  std::size_t received = 0;
  std::size_t unsent = 0;  // of its message
};

class Traffic;

/// One connection: TLS or cleartext, and its HTTP/2 session.
struct Connection {
  Traffic* traffic = nullptr;
  int fd = -1;
  SSL* ssl = nullptr;
  nghttp2_session* session = nullptr;
  std::unordered_map<std::int32_t, Request> open;
  std::string output;
  bool ready = false;    // connected, and the handshake is done
  bool leaving = false;  // GOAWAY: its streams finish, no new ones
};

nghttp2_nv field(std::string_view name, std::string_view value) {
  nghttp2_nv nv{};
  nv.name = reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data()));
  nv.namelen = name.size();
  nv.value = reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data()));
  nv.valuelen = value.size();
  return nv;
}

class Traffic {
 public:
  explicit Traffic(Options options);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  void run();
  void report() { weir_test::print_report(seconds_, options_.classes); }

 private:
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* user);
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t*,
                     std::size_t size, void* user);
  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t error, void* user);
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user);
  static ssize_t read_message(nghttp2_session*, std::int32_t id, std::uint8_t* buffer,
                              std::size_t size, std::uint32_t* flags, nghttp2_data_source*,
                              void* user);

  void open(Connection& connection);
  void close(Connection& connection);
  void start_session(Connection& connection);
  void send_due(Time now);
  void send(const Request& request);
  Connection* with_room();
  void handle(Connection& connection, std::uint32_t events);
  bool handshake(Connection& connection);
  void read(Connection& connection);
  void write(Connection& connection);
  ssize_t write_some(Connection& connection, const char* data, std::size_t size);
  void poll(Time wake);
  void record(const Request& request, std::uint32_t error);
  bool counts(const Request& request) const { return request.planned >= counted_from_; }

  Options options_;
  int epoll_;
  SSL_CTX* tls_ = nullptr;
  nghttp2_session_callbacks* callbacks_ = nullptr;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Request> again_;
  std::string message_;  // a gRPC frame
  std::string length_;   // of it, as text
  std::size_t turn_ = 0;
  std::size_t under_way_ = 0;
  Time counted_from_{};
  double seconds_ = 0;
};

Traffic::Traffic(Options options)
    : options_(std::move(options)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (options_.tls != 0) {
    tls_ = SSL_CTX_new(TLS_client_method());
    static const unsigned char kProtocols[] = "\x02h2";
    SSL_CTX_set_alpn_protos(tls_, kProtocols, 3);
    SSL_CTX_set_mode(tls_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  }
  nghttp2_session_callbacks_new(&callbacks_);
  nghttp2_session_callbacks_set_on_header_callback(callbacks_, &Traffic::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks_, &Traffic::on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks_, &Traffic::on_close);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks_, &Traffic::on_frame);
  message_.assign(5 + options_.message, 'm');
  const std::size_t size = options_.message;
  for (unsigned i = 0; i < 5; ++i) {
    message_[i] = i == 0 ? '\0' : static_cast<char>(size >> (8 * (4 - i)) & 0xff);
  }
  length_ = std::to_string(message_.size());
  for (std::size_t i = 0; i < options_.connections; ++i) {
    connections_.push_back(std::make_unique<Connection>());
    connections_.back()->traffic = this;
    open(*connections_.back());
  }
}

Traffic::~Traffic() {
  for (auto& connection : connections_) {
    connection->open.clear();
    close(*connection);
  }
  nghttp2_session_callbacks_del(callbacks_);
  SSL_CTX_free(tls_);
  ::close(epoll_);
}

void Traffic::open(Connection& connection) {
  connection.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connection.fd < 0) return;
  const int on = 1;
  ::setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(options_.port);
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int done = ::connect(connection.fd, reinterpret_cast<sockaddr*>(&there), sizeof there);
  if (done != 0 && errno != EINPROGRESS) return close(connection);
  if (tls_ != nullptr) {
    connection.ssl = SSL_new(tls_);
    SSL_set_fd(connection.ssl, connection.fd);
    SSL_set_connect_state(connection.ssl);
  }
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLET;
  event.data.ptr = &connection;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event);
}

void Traffic::close(Connection& connection) {
  for (const auto& [id, request] : connection.open) {
    if (counts(request)) ++request.of->broken;
    --under_way_;
  }
  connection.open.clear();
  connection.output.clear();
  connection.ready = connection.leaving = false;
  nghttp2_session_del(std::exchange(connection.session, nullptr));
  SSL_free(std::exchange(connection.ssl, nullptr));
  if (connection.fd >= 0) ::close(std::exchange(connection.fd, -1));
}

void Traffic::start_session(Connection& connection) {
  nghttp2_session_client_new(&connection.session, callbacks_, &connection);
  const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                             {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindow}};
  nghttp2_submit_settings(connection.session, NGHTTP2_FLAG_NONE, settings, 2);
  nghttp2_session_set_local_window_size(connection.session, NGHTTP2_FLAG_NONE, 0, kWindow);
  connection.ready = true;
}

void Traffic::run() {
  const Time begin = Clock::now();
  counted_from_ = begin + as_duration(options_.settle);
  const Time end = counted_from_ + as_duration(options_.seconds);
  for (TrafficClass& one : options_.classes) {
    one.gap = as_duration(1.0 / one.rate);
    one.next = begin;
  }
  for (;;) {
    const Time now = Clock::now();
    for (const Request& request : std::exchange(again_, {})) send(request);
    if (now < end) send_due(now);
    for (auto& connection : connections_) write(*connection);
    if (now >= end && (under_way_ == 0 || now >= end + as_duration(options_.grace))) break;
    Time wake = now + std::chrono::milliseconds(20);
    if (now < end) {
      for (const TrafficClass& one : options_.classes) wake = std::min(wake, one.next);
    }
    poll(wake);
  }
  for (auto& connection : connections_) close(*connection);
  seconds_ = std::chrono::duration<double>(std::min(Clock::now(), end) - counted_from_).count();
}

void Traffic::send_due(Time now) {
  for (TrafficClass& one : options_.classes) {
    while (one.next <= now) {
      if (one.next >= counted_from_) ++one.offered;
      send({.of = &one, .planned = one.next});
      one.next += one.gap;
    }
  }
}

Connection* Traffic::with_room() {
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    Connection& one = *connections_[++turn_ % connections_.size()];
    if (one.ready && !one.leaving && one.open.size() < options_.streams) return &one;
  }
  return nullptr;
}

void Traffic::send(const Request& request) {
  Connection* const connection = with_room();
  if (connection == nullptr) {
    if (counts(request)) ++request.of->unsent;
    return;
  }
  const bool grpc = options_.grpc != 0;
  std::vector<nghttp2_nv> fields = {field(":method", grpc ? "POST" : "GET"),
                                    field(":scheme", options_.tls != 0 ? "https" : "http"),
                                    field(":authority", "test"), field(":path", request.of->path)};
  if (grpc) {
    fields.push_back(field("content-type", "application/grpc"));
    fields.push_back(field("te", "trailers"));
  }
  const std::string_view extra = request.of->field;
  if (const std::size_t colon = extra.find(": "); colon != std::string_view::npos) {
    fields.push_back(field(extra.substr(0, colon), extra.substr(colon + 2)));
  }
  nghttp2_data_provider body{};
  body.read_callback = &Traffic::read_message;
  const std::int32_t id = nghttp2_submit_request(connection->session, nullptr, fields.data(),
                                                 fields.size(), grpc ? &body : nullptr, nullptr);
  if (id < 0) {
    connection->leaving = true;
    if (counts(request)) ++request.of->unsent;
    return;
  }
  Request& kept = connection->open[id] = {.of = request.of, .planned = request.planned};
  kept.unsent = grpc ? message_.size() : 0;
  ++under_way_;
}

ssize_t Traffic::read_message(nghttp2_session*, std::int32_t id, std::uint8_t* buffer,
                              std::size_t size, std::uint32_t* flags, nghttp2_data_source*,
                              void* user) {
  Connection& connection = *static_cast<Connection*>(user);
  const std::string& message = connection.traffic->message_;
  Request& request = connection.open.at(id);
  const std::size_t count = std::min(size, request.unsent);
  std::memcpy(buffer, message.data() + (message.size() - request.unsent), count);
  request.unsent -= count;
  if (request.unsent == 0) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(count);
}

int Traffic::on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* user) {
  Connection& connection = *static_cast<Connection*>(user);
  const auto found = connection.open.find(frame->hd.stream_id);
  if (found == connection.open.end()) return 0;
  const std::string_view key{reinterpret_cast<const char*>(name), name_size};
  const std::string_view text{reinterpret_cast<const char*>(value), value_size};
  if (key == ":status") read_number(text, found->second.status);
  if (key == "grpc-status") read_number(text, found->second.grpc_status);
  return 0;
}

int Traffic::on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t*,
                     std::size_t size, void* user) {
  Connection& connection = *static_cast<Connection*>(user);
  const auto found = connection.open.find(id);
  if (found != connection.open.end()) found->second.received += size;
  return 0;
}

int Traffic::on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  if (frame->hd.type == NGHTTP2_GOAWAY) static_cast<Connection*>(user)->leaving = true;
  return 0;
}

int Traffic::on_close(nghttp2_session*, std::int32_t id, std::uint32_t error, void* user) {
  Connection& connection = *static_cast<Connection*>(user);
  const auto found = connection.open.find(id);
  if (found == connection.open.end()) return 0;
  connection.traffic->record(found->second, error);
  connection.open.erase(found);
  return 0;
}

void Traffic::record(const Request& request, std::uint32_t error) {
  --under_way_;
  if (error == NGHTTP2_REFUSED_STREAM && request.status == 0) {
    ++request.of->again;
    again_.push_back({.of = request.of, .planned = request.planned});
    return;
  }
  if (!counts(request)) return;
  TrafficClass& one = *request.of;
  const double ms =
      std::chrono::duration<double, std::milli>(Clock::now() - request.planned).count();
  const bool grpc = options_.grpc != 0;
  const bool served = request.status == 200 && (!grpc || request.grpc_status == 0);
  const bool refused = grpc ? request.grpc_status == 8 || request.grpc_status == 14
                            : request.status == 503 || request.status == 429;
  if (error != NGHTTP2_NO_ERROR || request.status == 0 ||
      (grpc && served && request.received < 5)) {
    ++one.broken;
  } else if (served) {
    ++one.ok;
    one.ok_ms.push_back(ms);
  } else if (refused) {
    ++one.refused;
    one.refused_ms.push_back(ms);
  } else {
    ++one.other;
  }
}

void Traffic::poll(Time wake) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(wake - Clock::now());
  const int ms = std::max(0, static_cast<int>((left.count() + 999) / 1000));
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), ms);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    handle(*static_cast<Connection*>(event.data.ptr), event.events);
  }
}

void Traffic::handle(Connection& connection, std::uint32_t events) {
  if (connection.fd < 0) return;
  if (!connection.ready) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) return close(connection);
    if ((events & EPOLLOUT) == 0 && connection.ssl == nullptr) return;
    if (connection.ssl != nullptr && !handshake(connection)) return;
    start_session(connection);
  }
  write(connection);
  if (connection.fd >= 0) read(connection);
  const bool done = connection.leaving && connection.open.empty();
  if (connection.fd >= 0 && done) close(connection);
  if (connection.fd < 0) open(connection);
}

bool Traffic::handshake(Connection& connection) {
  const int done = SSL_do_handshake(connection.ssl);
  if (done == 1) return true;
  const int error = SSL_get_error(connection.ssl, done);
  if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) close(connection);
  return false;
}

void Traffic::read(Connection& connection) {
  std::array<char, 16384> block;
  for (;;) {
    ssize_t n = 0;
    if (connection.ssl != nullptr) {
      const int got = SSL_read(connection.ssl, block.data(), static_cast<int>(block.size()));
      if (got <= 0 && SSL_get_error(connection.ssl, got) == SSL_ERROR_WANT_READ) return;
      n = got;
    } else {
      n = ::recv(connection.fd, block.data(), block.size(), 0);
      if (n < 0 && errno == EAGAIN) return;
    }
    if (n <= 0) return close(connection);
    const ssize_t taken = nghttp2_session_mem_recv(
        connection.session, reinterpret_cast<const std::uint8_t*>(block.data()),
        static_cast<std::size_t>(n));
    if (taken < 0) return close(connection);
  }
}

ssize_t Traffic::write_some(Connection& connection, const char* data, std::size_t size) {
  if (connection.ssl == nullptr) {
    const ssize_t n = ::send(connection.fd, data, size, MSG_NOSIGNAL);
    return n < 0 && errno == EAGAIN ? 0 : (n <= 0 ? -1 : n);
  }
  const int n = SSL_write(connection.ssl, data, static_cast<int>(size));
  if (n > 0) return n;
  return SSL_get_error(connection.ssl, n) == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

void Traffic::write(Connection& connection) {
  if (!connection.ready) return;
  for (;;) {
    const std::uint8_t* data = nullptr;
    const ssize_t more = nghttp2_session_mem_send(connection.session, &data);
    if (more <= 0) break;
    connection.output.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(more));
  }
  while (!connection.output.empty()) {
    const ssize_t n = write_some(connection, connection.output.data(), connection.output.size());
    if (n == 0) return;
    if (n < 0) return close(connection);
    connection.output.erase(0, static_cast<std::size_t>(n));
  }
}

bool add_class(Options& options, std::string_view text) {
  std::optional<TrafficClass> one = weir_test::read_class(text);
  if (one) options.classes.push_back(*std::move(one));
  return one.has_value();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    const bool good = (name == "--port" && read_number(value, options.port)) ||
                      (name == "--seconds" && read_number(value, options.seconds)) ||
                      (name == "--settle" && read_number(value, options.settle)) ||
                      (name == "--grace" && read_number(value, options.grace)) ||
                      (name == "--connections" && read_number(value, options.connections)) ||
                      (name == "--streams" && read_number(value, options.streams)) ||
                      (name == "--message" && read_number(value, options.message)) ||
                      (name == "--tls" && read_number(value, options.tls)) ||
                      (name == "--grpc" && read_number(value, options.grpc)) ||
                      (name == "--class" && add_class(options, value));
    if (!good) {
      std::fprintf(stderr, "http2_traffic: cannot read %s %s\n", argv[i], argv[i + 1]);
      return 2;
    }
  }
  Traffic traffic(std::move(options));
  traffic.run();
  traffic.report();
  return 0;
}
