// Connections that begin with a PROXY header: who may send one, what they hold until it is
// complete, which bytes belong to the client after it, and what the announced address is used for.
#include "proxy_entry.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/un.h>

#include "server/h2/h2_testing.h"
#include "server/tls/tls_testing.h"
#include "shared.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Answer;
using testkit::Client;
using testkit::From;
using testkit::H2Client;
using testkit::reply;
using testkit::small_config;
using testkit::TlsClient;
using std::string_literals::operator""s;

const std::string kAnnounced = "PROXY TCP4 192.0.2.7 10.0.0.1 4242 80\r\n";
const std::string kAsk = "GET / HTTP/1.1\r\nhost: t\r\n\r\n";

std::string v2(char command, char family, const std::string& body) {
  std::string text("\r\n\r\n\0\r\nQUIT\n", 12);
  text += command;
  text += family;
  text += static_cast<char>(body.size() >> 8U);
  text += static_cast<char>(body.size() & 0xffU);
  return text + body;
}

std::string from_v4(int last) {
  return "PROXY TCP4 192.0.2." + std::to_string(last) + " 10.0.0.1 4242 80\r\n";
}

ServerConfig proxied(ServerConfig config = small_config()) {
  config.proxy_protocol = config.listen;
  config.proxy_protocol.insert(config.proxy_protocol.end(), config.tls.listen.begin(),
                               config.tls.listen.end());
  return config;
}

ServerConfig proxied_tls() {
  return proxied(testkit::tls_config());
}

/// A server that answers with the sender of the request, and the refusals that it tells.
class ProxiedServer {
 public:
  using Trusted = std::function<bool(const io::Address&)>;
  explicit ProxiedServer(
      const ServerConfig& config, Trusted trusted = [](const io::Address&) { return true; })
      : server_(config, testkit::every_loop(&ProxiedServer::name_sender)) {
    EXPECT_EQ(config.validate(), ConfigErrors{});
    server_.set_proxy_senders(
        {.trusted = std::move(trusted), .on_refused = [this](const ProxyRefusal& refusal) {
           const std::lock_guard lock(mutex_);
           told_.push_back(std::string(name_of(refusal.result)) + ": " + std::string(refusal.why));
         }});
    const auto started = server_.start();
    EXPECT_TRUE(started.has_value());
  }
  ~ProxiedServer() { server_.stop(); }
  Server* operator->() { return &server_; }
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }
  [[nodiscard]] std::uint16_t tls_port() const { return server_.tls_port(); }
  [[nodiscard]] ServerStats stats() const { return server_.stats(); }
  [[nodiscard]] bool eventually(const std::function<bool(const ServerStats&)>& what) const {
    return testkit::eventually(server_, what);
  }
  [[nodiscard]] bool counted(ProxyResult result, std::uint64_t times = 1) const {
    return eventually([&](const ServerStats& s) { return s.proxy_headers_by(result) == times; });
  }
  [[nodiscard]] std::vector<std::string> told() {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  static void name_sender(testkit::ScriptedHandler& handler) {
    handler.headers = [](ServerStream& stream, const ServerRequest& request) {
      const std::string who = request.peer.to_string() + (request.client_unknown ? " unknown" : "");
      EXPECT_EQ(reply(stream, 200, who), SendResult::kSent);
    };
  }

  Server server_;
  std::mutex mutex_;
  std::vector<std::string> told_;
};

TEST(ProxyEntry, TheAnnouncedAddressIsTheSenderOfEveryRequest) {
  ProxiedServer server(proxied());
  Client client(server.port());
  EXPECT_EQ(client.ask(kAnnounced + kAsk).body, "192.0.2.7:4242");
  EXPECT_EQ(client.ask(kAsk).body, "192.0.2.7:4242") << "the header comes once per connection";
  Client v6(server.port());
  EXPECT_EQ(v6.ask("PROXY TCP6 2001:db8::7 ::1 1 2\r\n" + kAsk).body, "[2001:db8::7]:1");
  Client binary(server.port());
  const std::string ends("\xc0\0\x02\x08\x0a\0\0\x01\x10\x92\0\x50", 12);
  EXPECT_EQ(binary.ask(v2('\x21', '\x11', ends) + kAsk).body, "192.0.2.8:4242");
  EXPECT_EQ(server.stats().proxy_headers_by(ProxyResult::kVersion1), 2U);
  EXPECT_EQ(server.stats().proxy_headers_by(ProxyResult::kVersion2), 1U);
}

TEST(ProxyEntry, WithoutAnAnnouncedAddressTheSocketsStays) {
  ProxiedServer server(proxied());
  const auto sender_after = [&](const std::string& header) {
    std::string body = Client(server.port()).ask(header + kAsk).body;
    return body.substr(0, body.find(':')) + body.substr(std::min(body.size(), body.find(' ')));
  };
  EXPECT_EQ(sender_after(v2('\x20', '\0', "")), "127.0.0.1") << "LOCAL: the proxy itself";
  EXPECT_EQ(sender_after("PROXY UNKNOWN\r\n"), "127.0.0.1 unknown");
  EXPECT_EQ(sender_after(v2('\x21', '\0', "")), "127.0.0.1 unknown");
  EXPECT_EQ(sender_after(v2('\x21', '\x31', std::string(216, 'u'))), "unix")
      << "no address, and not the proxy's";
  EXPECT_EQ(server.stats().proxy_headers_by(ProxyResult::kLocal), 1U);
  EXPECT_EQ(server.stats().proxy_headers_by(ProxyResult::kUnknown), 2U);
}

TEST(ProxyEntry, EveryCutOfAHeaderAndARequestIsTheSame) {
  ProxiedServer server(proxied());
  const std::string all = kAnnounced + kAsk;
  for (std::size_t cut = 1; cut < all.size(); ++cut) {
    Client client(server.port());
    ASSERT_TRUE(client.send(all.substr(0, cut)));
    ASSERT_EQ(client.ask(all.substr(cut)).body, "192.0.2.7:4242") << cut;
  }
  Client slow(server.port());
  const int at_once = 1;
  ::setsockopt(slow.fd(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  for (const char byte : all) ASSERT_TRUE(slow.send({&byte, 1}));
  EXPECT_EQ(slow.read().body, "192.0.2.7:4242");
}

TEST(ProxyEntry, ManyBytesAfterTheHeaderAreNotLost) {
  ServerConfig config = proxied();
  ProxiedServer server(config);
  Client client(server.port());
  std::string all = kAnnounced;
  for (int i = 0; i < 400; ++i) all += kAsk;  // pipelined, more than a stage holds
  ASSERT_GT(all.size(), 2 * ServerShared::kStageBytes);
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < 400; ++i) ASSERT_EQ(client.read().body, "192.0.2.7:4242") << i;
  // The largest header, and a request head larger than the rest of the stage.
  Client large(server.port());
  const std::string ends("\xc0\0\x02\x08\x0a\0\0\x01\x10\x92\0\x50", 12);
  const std::string filler = "\x04\x03\xf1"s + std::string(1009, 'f');
  const std::string head =
      "GET / HTTP/1.1\r\nhost: t\r\nx-long: " + std::string(3000, 'x') + "\r\n\r\n";
  EXPECT_EQ(large.ask(v2('\x21', '\x11', ends + filler) + head).body, "192.0.2.8:4242");
}

TEST(ProxyEntry, ASecondHeaderIsAnInvalidRequest) {
  ServerConfig config = proxied();
  config.http2_enabled = false;  // otherwise a first line without "HTTP/" ends without an answer
  ProxiedServer server(config);
  for (const std::string& second : {kAnnounced, v2('\x20', '\0', "")}) {
    Client client(server.port());
    const Answer answer = client.ask(kAnnounced + second + kAsk);
    EXPECT_EQ(answer.status, 400);
  }
  EXPECT_EQ(server.stats().requests, 0U);
}

TEST(ProxyEntry, AMissingOrMalformedHeaderEndsTheConnectionWithoutAnAnswer) {
  ProxiedServer server(proxied());
  struct Case {
    std::string bytes;
    ProxyResult result;
    std::string told;
  };
  const std::vector<Case> cases = {
      {kAsk, ProxyResult::kMissing, "missing: no PROXY header"},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ProxyResult::kMissing, "missing: no PROXY header"},
      {"\x16\x03\x01", ProxyResult::kMissing, "missing: no PROXY header"},
      {"PROXY TCP4 192.0.2.7 10.0.0.1 4242 80\n" + kAsk, ProxyResult::kMalformed,
       "malformed: bad line"},
      {"PROXY TCP4 192.0.2.7 10.0.0.1 4242 80" + std::string(80, ' '), ProxyResult::kTooLong,
       "too_long: too long"},
      {"PROXY TCP4 192.0.2.777 10.0.0.1 4242 80\r\n" + kAsk, ProxyResult::kMalformed,
       "malformed: bad address"},
      {v2('\x31', '\x11', std::string(12, 'a')), ProxyResult::kMalformed, "malformed: bad version"},
      {v2('\x21', '\x11', std::string(1025, '\x04')), ProxyResult::kTooLong, "too_long: too long"},
  };
  std::vector<std::string> told;
  for (const Case& one : cases) {
    const std::uint64_t before = server.stats().proxy_headers_by(one.result);
    Client client(server.port());
    client.send(one.bytes);  // it may fail: the server closes as soon as it knows
    EXPECT_TRUE(client.at_end()) << one.told;
    EXPECT_TRUE(server.counted(one.result, before + 1)) << one.told;
    told.push_back(one.told);
  }
  EXPECT_TRUE(server.eventually([&](const ServerStats& s) {
    return s.closed_by(CloseReason::kProxyHeader) == cases.size();
  }));
  EXPECT_EQ(server.told(), told);
  EXPECT_EQ(server.stats().requests, 0U);
  EXPECT_EQ(server.stats().responses_4xx, 0U);
}

TEST(ProxyEntry, AnUntrustedSenderIsClosedBeforeItHasAPlace) {
  ProxiedServer server(proxied(), [](const io::Address& sender) {
    return sender.to_string().starts_with("127.0.0.2:");
  });
  for (int i = 0; i < 3; ++i) {
    Client stranger(server.port());
    stranger.send(kAnnounced + kAsk);
    EXPECT_TRUE(stranger.at_end());
  }
  EXPECT_TRUE(server.counted(ProxyResult::kUntrusted, 3));
  const ServerStats stats = server.stats();
  EXPECT_EQ(stats.accepted, 0U);
  EXPECT_EQ(stats.connections.peak, 0U);
  EXPECT_EQ(stats.refused_by(RefuseReason::kUntrusted), 3U);
  EXPECT_EQ(server.told(), std::vector<std::string>(3, "untrusted: "));
  const From proxy(0x7f000002);
  EXPECT_EQ(Client(server.port()).ask(kAnnounced + kAsk).body, "192.0.2.7:4242");
}

TEST(ProxyEntry, NobodyIsTrustedUnlessTheOwnerSaysSo) {
  Server server(proxied(), testkit::says_hello());
  ASSERT_TRUE(server.start().has_value());
  Client client(server.port());
  client.send(kAnnounced + kAsk);
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(server.stats().proxy_headers_by(ProxyResult::kUntrusted), 1U);
}

TEST(ProxyEntry, OtherListenersDoNotReadAHeader) {
  ServerConfig config = small_config();
  config.listen = {"127.0.0.1:0", "[::1]:0"};
  config.proxy_protocol = {"[::1]:0"};
  ProxiedServer server(config);
  EXPECT_EQ(Client(server.port()).get("/").status, 200);
  Client guess(server.port());
  ASSERT_TRUE(guess.send(kAnnounced + kAsk));
  EXPECT_TRUE(guess.at_end());
  EXPECT_EQ(server.stats().refused_by(RefuseReason::kBadRequest), 1U) << "an invalid request";
  EXPECT_EQ(server.stats().requests, 1U);
  EXPECT_EQ(server.stats().proxy_headers_by(ProxyResult::kVersion1), 0U);
}

TEST(ProxyEntry, UnixSocketsAreTrustedByThePermissionsOfTheirFile) {
  ServerConfig config = small_config();
  const std::string path = testing::TempDir() + "weir_proxy_" + std::to_string(::getpid());
  config.listen = {"unix:" + path};
  ProxiedServer server(proxied(config), [](const io::Address&) { return false; });
  io::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un there{};
  there.sun_family = AF_UNIX;
  path.copy(there.sun_path, sizeof there.sun_path - 1);
  ASSERT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
  const std::string all = kAnnounced + kAsk;
  ASSERT_EQ(::send(fd.get(), all.data(), all.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(all.size()));
  std::string answer;
  while (answer.find("192.0.2.7:4242") == std::string::npos) {
    char block[512];
    const ssize_t got = ::recv(fd.get(), block, sizeof block, 0);
    ASSERT_GT(got, 0) << answer;
    answer.append(block, static_cast<std::size_t>(got));
  }
}

TEST(ProxyEntry, HalfAHeaderHoldsAStageAndNoReadRegion) {
  ProxiedServer server(proxied());
  std::vector<Client> halves;
  for (int i = 0; i < 16; ++i) {
    halves.emplace_back(server.port());
    ASSERT_TRUE(halves.back().send(kAnnounced.substr(0, 20)));
  }
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.accepted == 16; }));
  // After a whole round trip, the bytes of all of them have been read.
  Client other(server.port());
  ASSERT_EQ(other.ask(kAnnounced + kAsk).status, 200);
  EXPECT_EQ(server.stats().connections.used, 17U);
  EXPECT_LE(server.stats().read_regions.peak, 1U);
  for (Client& half : halves) {
    EXPECT_EQ(half.ask(kAnnounced.substr(20) + kAsk).body, "192.0.2.7:4242");
  }
}

TEST(ProxyEntry, TheDeadlineIsCountedFromTheAcceptHoweverManyBytesCome) {
  ServerConfig config = proxied();
  config.header_timeout = std::chrono::milliseconds(200);
  ProxiedServer server(config);
  Client slow(server.port());
  io::ThreadParker pause;
  const std::string endless = "PROXY UNKNOWN " + std::string(90, 'x');
  std::size_t sent = 0;
  const TimePoint begun = io::monotonic_now();
  while (sent < endless.size() && slow.send({&endless[sent], 1})) {
    ++sent;
    pause.park_until(io::monotonic_now() + std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(slow.at_end());
  EXPECT_GE(io::monotonic_now() - begun, config.header_timeout);
  EXPECT_TRUE(server.counted(ProxyResult::kTimeout));
  EXPECT_LT(sent, endless.size()) << "closed before its end";
  EXPECT_EQ(server.stats().closed_by(CloseReason::kProxyHeader), 1U);
}

TEST(ProxyEntry, AHealthCheckThatConnectsAndLeavesIsNoError) {
  ProxiedServer server(proxied());
  Client(server.port()).close();
  EXPECT_TRUE(server.counted(ProxyResult::kAborted));
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.closed_by(CloseReason::kClient) == 1; }));
  EXPECT_TRUE(server.told().empty());
  Client half(server.port());
  half.send("PROXY ");
  half.end_output();
  EXPECT_TRUE(half.at_end());
  EXPECT_TRUE(server.counted(ProxyResult::kAborted, 2));
  EXPECT_EQ(server.stats().closed_by(CloseReason::kProxyHeader), 1U);
}

TEST(ProxyEntry, ARequestThatEndsWithTheConnectionIsServed) {
  ServerConfig config = proxied();
  config.allow_half_close = true;
  ProxiedServer server(config);
  Client client(server.port());
  ASSERT_TRUE(client.send(kAnnounced + kAsk));
  client.end_output();
  EXPECT_EQ(client.read().body, "192.0.2.7:4242");
}

TEST(ProxyEntry, Http2ComesAfterTheHeader) {
  ProxiedServer server(proxied());
  H2Client client(server.port(), {.settings = {}, .greet = false});
  ASSERT_TRUE(client.send(kAnnounced + http::h2::wire::preface() + http::h2::wire::settings({})));
  EXPECT_EQ(client.finish(client.get("/")).body, "192.0.2.7:4242");
  H2Client cut(server.port(), {.settings = {}, .greet = false});
  for (const char byte : kAnnounced + http::h2::wire::preface()) {
    ASSERT_TRUE(cut.send({&byte, 1}));
  }
  ASSERT_TRUE(cut.send(http::h2::wire::settings({})));
  EXPECT_EQ(cut.finish(cut.get("/")).body, "192.0.2.7:4242");
  EXPECT_EQ(server.stats().h2_connections, 2U);
}

TEST(ProxyEntry, TlsComesAfterTheHeader) {
  ProxiedServer server(proxied_tls());
  for (const std::string& protocol : {"http/1.1"s, "h2"s}) {
    TlsClient client(server.tls_port(), {.protocols = {protocol}});
    ASSERT_TRUE(client.tcp().send(from_v4(9)));
    ASSERT_TRUE(client.shake()) << client.why();
    EXPECT_EQ(client.protocol(), protocol);
    if (protocol == "h2") continue;
    EXPECT_EQ(client.get("/").body, "192.0.2.9:4242");
  }
  // The client is done before the server has read the end of its handshake.
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.tls.handshakes_by(HandshakeResult::kFull) == 2; }));
}

TEST(ProxyEntry, AClientHelloInTheSegmentOfTheHeaderIsRead) {
  ProxiedServer server(proxied_tls());
  const std::string filler = "\x04\x03\xf1"s + std::string(1009, 'f');
  const std::string ends("\xc0\0\x02\x08\x0a\0\0\x01\x10\x92\0\x50", 12);
  for (const std::string& header : {kAnnounced, v2('\x21', '\x11', ends + filler)}) {
    // A hello that, with the largest header, is more than a stage holds.
    const std::vector<std::string> protocols(7, std::string(200, 'p'));
    TlsClient client(server.tls_port(), {.protocols = protocols});
    BIO* out = BIO_new(BIO_s_mem());
    SSL_set_bio(client.ssl(), BIO_new(BIO_s_mem()), out);
    SSL_set_options(client.ssl(), SSL_OP_NO_TICKET);
    ASSERT_LT(SSL_connect(client.ssl()), 1);
    std::string hello(8192, '\0');
    hello.resize(
        static_cast<std::size_t>(BIO_read(out, hello.data(), static_cast<int>(hello.size()))));
    ASSERT_GT(hello.size(), 1400U);
    ASSERT_TRUE(client.tcp().send(header + hello));
    const std::string answer = client.tcp().take(2);
    ASSERT_EQ(answer.size(), 2U);
    EXPECT_EQ(answer[0], '\x15') << "an alert: none of the protocols is known, but all was read";
  }
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.tls.handshakes_by(HandshakeResult::kFailed) == 2; }));
}

TEST(ProxyEntry, AHeaderInsideTlsAndATlsClientWithoutOneAreRefused) {
  ProxiedServer server(proxied_tls());
  TlsClient without(server.tls_port());
  EXPECT_FALSE(without.shake());
  EXPECT_TRUE(server.counted(ProxyResult::kMissing));
  TlsClient twice(server.tls_port());
  ASSERT_TRUE(twice.tcp().send(kAnnounced + kAnnounced));
  EXPECT_FALSE(twice.shake());
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.tls.handshakes_by(HandshakeResult::kNotTls) == 1; }));
  TlsClient inside(server.tls_port());
  ASSERT_TRUE(inside.tcp().send(kAnnounced));
  ASSERT_TRUE(inside.shake()) << inside.why();
  ASSERT_TRUE(inside.send(kAnnounced + kAsk));
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.refused_by(RefuseReason::kBadRequest) == 1; }));
  EXPECT_EQ(server.stats().requests, 0U);
}

TEST(ProxyEntry, NoTlsObjectIsMadeBeforeTheHeaderIsComplete) {
  ServerConfig config = proxied_tls();
  config.tls.handshake_timeout = std::chrono::milliseconds(200);
  ProxiedServer server(config);
  Client half(server.tls_port());
  ASSERT_TRUE(half.send("PROXY TCP4 "));
  EXPECT_TRUE(half.at_end());
  EXPECT_TRUE(server.counted(ProxyResult::kTimeout));
  EXPECT_EQ(server.stats().tls.handshake_slots.peak, 0U);
  EXPECT_EQ(server.stats().read_regions.peak, 0U);
}

TEST(ProxyEntry, SourcesAreCountedByTheAnnouncedAddress) {
  ServerConfig config = proxied();
  config.connections_per_source_max = 2;
  ProxiedServer server(config);
  std::vector<Client> open;
  for (const int last : {1, 1, 2, 2, 3, 3, 4, 4}) {
    open.emplace_back(server.port());
    ASSERT_EQ(open.back().ask(from_v4(last) + kAsk).status, 200) << "the proxy is not the source";
  }
  for (const std::string& header : {v2('\x20', '\0', ""), "PROXY UNKNOWN\r\n"s}) {
    for (int i = 0; i < 4; ++i) {
      open.emplace_back(server.port());
      ASSERT_EQ(open.back().ask(header + kAsk).status, 200) << "nor with LOCAL and UNKNOWN";
    }
  }
  Client third(server.port());
  EXPECT_EQ(third.ask(from_v4(1) + kAsk).status, 503);
  EXPECT_TRUE(third.at_end());
  EXPECT_EQ(server.stats().refused_by(RefuseReason::kSource), 1U);
  EXPECT_EQ(server.stats().requests, 16U);
  EXPECT_TRUE(server.eventually(
      [](const ServerStats& s) { return s.closed_by(CloseReason::kSource) == 1; }));
  open[0].close();  // of 192.0.2.1
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.connections.used == 15; }));
  Client again(server.port());
  EXPECT_EQ(again.ask(from_v4(1) + kAsk).status, 200);
  open.clear();
  again.close();
  third.close();
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.connections.used == 0; }));
  for (int i = 0; i < 2; ++i) {
    open.emplace_back(server.port());
    ASSERT_EQ(open.back().ask(from_v4(1) + kAsk).status, 200) << "places came back";
  }
}

TEST(ProxyEntry, ASourceThatIsFullIsToldInItsProtocol) {
  ServerConfig config = proxied();
  config.connections_per_source_max = 1;
  ProxiedServer server(config);
  Client first(server.port());
  ASSERT_EQ(first.ask(kAnnounced + kAsk).status, 200);
  H2Client second(server.port(), {.settings = {}, .greet = false});
  ASSERT_TRUE(second.send(kAnnounced + http::h2::wire::preface() + http::h2::wire::settings({})));
  EXPECT_TRUE(second.goaway_and_end().has_value());
  ServerConfig secure = proxied_tls();
  secure.connections_per_source_max = 1;
  ProxiedServer tls(secure);
  TlsClient one(tls.tls_port());
  ASSERT_TRUE(one.tcp().send(kAnnounced));
  ASSERT_TRUE(one.shake()) << one.why();
  TlsClient two(tls.tls_port());
  ASSERT_TRUE(two.tcp().send(kAnnounced));
  EXPECT_FALSE(two.shake());
  EXPECT_TRUE(
      tls.eventually([](const ServerStats& s) { return s.closed_by(CloseReason::kSource) == 1; }));
  EXPECT_EQ(tls.stats().tls.handshake_slots.peak, 1U);
}

TEST(ProxyEntry, TheProxysAddressMakesNoClientCritical) {
  ServerConfig config = proxied();
  config.connections_per_source_max = 1;
  Server server(config, testkit::says_hello());
  server.set_critical_peers([](const io::Address&) { return true; });
  server.set_proxy_senders({.trusted = [](const io::Address&) { return true; }, .on_refused = {}});
  ASSERT_TRUE(server.start().has_value());
  Client first(server.port());
  ASSERT_EQ(first.ask(kAnnounced + kAsk).status, 200);
  EXPECT_EQ(Client(server.port()).ask(kAnnounced + kAsk).status, 503)
      << "critical connections would not be counted";
}

TEST(ProxyEntry, ConnectionsWithoutTheirHeaderAreClosedByADrain) {
  ProxiedServer server(proxied());
  Client silent(server.port());
  Client half(server.port());
  ASSERT_TRUE(half.send("PROXY "));
  Client busy(server.port());
  ASSERT_EQ(busy.ask(kAnnounced + kAsk).status, 200);
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.connections.used == 3; }));
  EXPECT_TRUE(server->drain(std::chrono::seconds(10)));
  EXPECT_TRUE(silent.at_end());
  EXPECT_TRUE(half.at_end());
  EXPECT_EQ(server.stats().proxy_headers_by(ProxyResult::kSacrificed), 2U);
}

TEST(ProxyEntry, AServerThatTakesAListenerOverRequiresTheHeaderToo) {
  ProxiedServer before(proxied());
  std::vector<io::Fd> sockets = before->duplicate_listeners();
  ASSERT_EQ(sockets.size(), 1U);
  GivenSockets given;
  given.listen.push_back({.fd = std::move(sockets[0]), .shared = false});
  const std::uint16_t port = before.port();
  Server after(proxied(), testkit::says_hello());
  after.set_proxy_senders({.trusted = [](const io::Address&) { return true; }, .on_refused = {}});
  ASSERT_TRUE(after.start(std::move(given)).has_value());
  before->share_listener(0, true);
  ASSERT_TRUE(before->drain(std::chrono::seconds(10)));
  EXPECT_EQ(Client(port).ask(kAnnounced + kAsk).status, 200);
  Client without(port);
  without.send(kAsk);
  EXPECT_TRUE(without.at_end());
  EXPECT_EQ(after.stats().proxy_headers_by(ProxyResult::kMissing), 1U);
}

TEST(ProxyEntry, OnlyAddressesThatAreListenedOnCanRequireIt) {
  ServerConfig config = small_config();
  config.listen = {":8080", "unix:/run/w.sock"};
  config.proxy_protocol = {"*:8080", "unix:/run/w.sock"};
  EXPECT_EQ(config.validate(), ConfigErrors{});
  EXPECT_TRUE(config.requires_proxy_header(":8080")) << "two spellings of one address";
  config.proxy_protocol = {"127.0.0.1:8080"};
  const ConfigErrors errors = config.validate();
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].key, "listen.proxy_protocol");
  EXPECT_EQ(errors[0].value, "\"127.0.0.1:8080\"");
  EXPECT_EQ(errors[0].allowed, "an address of listen.addresses or tls.listen");
}

}  // namespace
}  // namespace weir::inline v0::inline server
