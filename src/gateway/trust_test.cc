#include "trust.h"

#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "head_testing.h"

namespace weir::gateway {
namespace {

io::Address socket_at(std::string_view text) {
  const auto ip = parse_ip(text);
  EXPECT_TRUE(ip.has_value());
  return {
      .ip = ip->bytes, .scope = 0, .port = 1, .family = ip->v6 ? io::Family::kV6 : io::Family::kV4};
}

TrustTable table(std::initializer_list<const char*> peers,
                 std::initializer_list<const char*> proxies) {
  TrustConfig config;
  for (const char* text : peers) config.peers.push_back(*parse_ip_range(text));
  for (const char* text : proxies) config.proxies.push_back(*parse_ip_range(text));
  return TrustTable(config);
}

std::string client_of(const Caller& caller) {
  return caller.client ? to_string(*caller.client) : "none";
}

TEST(TrustTable, NobodyIsTrustedUnlessListed) {
  const TestHead head{{"x-weir-peer", "gate-1"}, {"x-forwarded-for", "10.0.0.1"}};
  const Caller caller = TrustTable().judge(socket_at("127.0.0.1"), head.list());
  EXPECT_FALSE(caller.peer);
  EXPECT_FALSE(caller.proxy);
  EXPECT_EQ(client_of(caller), "127.0.0.1");
}

TEST(TrustTable, PeersAreKnownByTheirSocket) {
  const TrustTable trust = table({"10.0.0.0/8", "2001:db8::/32"}, {});
  const TestHead head;
  EXPECT_TRUE(trust.judge(socket_at("10.1.2.3"), head.list()).peer);
  EXPECT_TRUE(trust.judge(socket_at("::ffff:10.1.2.3"), head.list()).peer);
  EXPECT_TRUE(trust.judge(socket_at("2001:db8::5"), head.list()).peer);
  EXPECT_FALSE(trust.judge(socket_at("11.1.2.3"), head.list()).peer);
}

TEST(TrustTable, AUnixSocketHasNoAddressAndNoTrust) {
  const TestHead head;
  io::Address local;
  local.family = io::Family::kUnix;
  const Caller caller = table({"0.0.0.0/0", "::/0"}, {"0.0.0.0/0"}).judge(local, head.list());
  EXPECT_FALSE(caller.peer);
  EXPECT_FALSE(caller.proxy);
  EXPECT_EQ(client_of(caller), "none");
}

TEST(TrustTable, ASenderWhomItsProxyDoesNotNameHasNoTrustByAddress) {
  const TrustTable trust = table({"10.0.0.0/8"}, {"10.0.0.0/8"});
  EXPECT_TRUE(trust.is_proxy(socket_at("10.0.0.8")));
  EXPECT_FALSE(trust.is_proxy(socket_at("11.0.0.8")));
  EXPECT_FALSE(trust.is_proxy({.family = io::Family::kUnix}));
  const Caller caller = trust.judge_unknown(socket_at("10.0.0.8"), {});
  EXPECT_FALSE(caller.peer);
  EXPECT_FALSE(caller.proxy) << "its X-Forwarded-For is the client's own";
  EXPECT_EQ(client_of(caller), "10.0.0.8");
  TrustConfig config;
  config.peer_certificates = {"CN=a"};
  EXPECT_TRUE(TrustTable(config).judge_unknown(socket_at("10.0.0.8"), "CN=a").peer);
}

TEST(TrustTable, AProxyNamesTheClientAndIsNoPeer) {
  const TrustTable trust = table({}, {"10.0.0.0/8"});
  const TestHead head{{"X-Forwarded-For", "203.0.113.9, 198.51.100.1 ,10.0.0.7"}};
  const Caller caller = trust.judge(socket_at("10.0.0.8"), head.list());
  EXPECT_FALSE(caller.peer);
  EXPECT_TRUE(caller.proxy);
  EXPECT_EQ(client_of(caller),
            "198.51.100.1");  // the entries before it may be forged
}

struct SchemeCase {
  std::vector<std::string> told;  // lines of X-Forwarded-Proto
  Scheme of_proxy_in_cleartext;
  Scheme of_proxy_with_tls;
};

TEST(SchemeOf, IsThatOfTheConnectionUnlessATrustedProxySaysAnother) {
  const std::vector<SchemeCase> table = {
      {{}, Scheme::kHttp, Scheme::kHttps},
      {{"https"}, Scheme::kHttps, Scheme::kHttps},
      {{"http"}, Scheme::kHttp, Scheme::kHttp},
      {{"HTTPS "}, Scheme::kHttps, Scheme::kHttps},
      {{"https, http"}, Scheme::kHttp, Scheme::kHttp},  // the first may be the client's
      {{"http,https"}, Scheme::kHttps, Scheme::kHttps},
      {{"https,https,http"}, Scheme::kHttp, Scheme::kHttp},
      {{"https", "http"}, Scheme::kHttp, Scheme::kHttp},
      {{"http", "https"}, Scheme::kHttps, Scheme::kHttps},
      {{"wss"}, Scheme::kHttp, Scheme::kHttps},  // unknown: not used
      {{""}, Scheme::kHttp, Scheme::kHttps},
      {{"https,"}, Scheme::kHttp, Scheme::kHttps},
  };
  for (const SchemeCase& row : table) {
    std::vector<TestHead::Pair> lines;
    for (const std::string& line : row.told) lines.emplace_back("X-Forwarded-Proto", line);
    const TestHead head{std::span<const TestHead::Pair>(lines)};
    Caller proxy;
    proxy.proxy = true;
    Caller peer;
    peer.peer = true;
    EXPECT_EQ(scheme_of(proxy, false, head.list()), row.of_proxy_in_cleartext) << &row - &table[0];
    EXPECT_EQ(scheme_of(proxy, true, head.list()), row.of_proxy_with_tls) << &row - &table[0];
    for (const Caller& other : {Caller{}, peer}) {
      EXPECT_EQ(scheme_of(other, false, head.list()), Scheme::kHttp);
      EXPECT_EQ(scheme_of(other, true, head.list()), Scheme::kHttps);
    }
  }
}

TEST(TrustTable, APeerThatIsNoProxyDoesNotNameTheClient) {
  const TestHead head{{"X-Forwarded-For", "203.0.113.9"}};
  const Caller caller = table({"10.0.0.0/8"}, {}).judge(socket_at("10.0.0.8"), head.list());
  EXPECT_TRUE(caller.peer);
  EXPECT_FALSE(caller.proxy);
  EXPECT_EQ(client_of(caller), "10.0.0.8");
}

TEST(TrustTable, TheAddressListMayStandInSeveralLines) {
  const TrustTable trust = table({}, {"10.0.0.0/8"});
  const TestHead head{{"X-Forwarded-For", "203.0.113.9"}, {"X-Forwarded-For", "10.0.0.7"}};
  EXPECT_EQ(client_of(trust.judge(socket_at("10.0.0.8"), head.list())), "203.0.113.9");
}

TEST(TrustTable, PortsAndBracketsAreUnderstoodGarbageEndsTheChain) {
  const TrustTable trust = table({}, {"10.0.0.0/8"});
  const auto client = [&](std::string_view value) {
    const TestHead head{{"x-forwarded-for", value}};
    return client_of(trust.judge(socket_at("10.0.0.8"), head.list()));
  };
  EXPECT_EQ(client("203.0.113.9:4711"), "203.0.113.9");
  EXPECT_EQ(client("[2001:db8::1]:4711"), "2001:db8::1");
  EXPECT_EQ(client("2001:db8::1"), "2001:db8::1");
  EXPECT_EQ(client("unknown"), "10.0.0.8");
  EXPECT_EQ(client("1.2.3.4, unknown"), "10.0.0.8");
  EXPECT_EQ(client("1.2.3.4, unknown, 10.0.0.9"), "10.0.0.9");
  EXPECT_EQ(client(""), "10.0.0.8");
}

TEST(TrustTable, ACertificateProvesAPeerWhereverItCallsFrom) {
  TrustConfig config;
  config.peer_certificates = {"CN=gate,O=Example"};
  const TrustTable trust(config);
  const TestHead head{{"x-weir-peer", "gate-1"}};
  EXPECT_TRUE(trust.judge(socket_at("203.0.113.9"), head.list(), "CN=gate,O=Example").peer);
  EXPECT_TRUE(trust.judge(io::Address{}, head.list(), "CN=gate,O=Example").peer);
  for (const char* other : {"", "CN=gate", "CN=gate,O=Example,C=XX", "cn=gate,o=example"}) {
    EXPECT_FALSE(trust.judge(socket_at("203.0.113.9"), head.list(), other).peer) << other;
  }
  config.peer_certificates = {"*"};
  EXPECT_TRUE(TrustTable(config).judge(socket_at("203.0.113.9"), head.list(), "CN=any").peer);
  EXPECT_FALSE(TrustTable(config).judge(socket_at("203.0.113.9"), head.list(), "").peer);
}

}  // namespace
}  // namespace weir::gateway
