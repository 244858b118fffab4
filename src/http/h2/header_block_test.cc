#include "http/h2/header_block.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "http/h2/session_testing.h"

namespace weir::inline v0::http::h2 {
namespace {

using namespace wire;

/// The result of a request with these fields: its status, or "reset" and the code.
std::string fate_of(const Fields& fields, unsigned flags = kEnd, const H2Limits& limits = {}) {
  TestPeer peer(limits);
  peer.handshake().send(headers(1, fields, flags));
  if ((flags & kEnd) == 0 && peer.streams.count(1) != 0) peer.send(data(1, "", kEnd));
  EXPECT_TRUE(peer.alive()) << "whatever it is, the connection lives";
  if (const auto code = peer.reset_code(1)) return "reset " + std::string(name_of(*code));
  EXPECT_EQ(peer.streams.count(1), peer.status_of(1) == "200" ? 1U : 0U);
  return peer.status_of(1);
}

constexpr auto kReset = "reset protocol_error";

Fields request(std::string_view method, std::string_view authority, std::string_view path) {
  return {{":method", std::string(method)},
          {":scheme", "https"},
          {":authority", std::string(authority)},
          {":path", std::string(path)}};
}

TEST(H2HeaderBlock, RequestTable) {
  struct Row {
    const char* why;
    Fields fields;
    std::string fate;
  };
  const std::string nul(1, '\0');
  const std::vector<Row> rows = {
      {"plain", get(), "200"},
      {"any method token", request("PURGE", "a", "/"), "200"},
      {"method with blank", request("GE T", "a", "/"), kReset},
      {"method with line end", request("GET / HTTP/1.1\r\nx: y", "a", "/"), kReset},
      {"empty method", request("", "a", "/"), kReset},
      {"path with blank", request("GET", "a", "/a b"), kReset},
      {"path with line end", request("GET", "a", "/ HTTP/1.1\r\nhost: b"), kReset},
      {"path with NUL", request("GET", "a", "/" + nul), kReset},
      {"path with fragment", request("GET", "a", "/#f"), kReset},
      {"path without slash", request("GET", "a", "x"), kReset},
      {"asterisk", request("OPTIONS", "a", "*"), "200"},
      {"asterisk for GET", request("GET", "a", "*"), kReset},
      {"port", request("GET", "a:8080", "/"), "200"},
      {"address", request("GET", "[::1]:80", "/"), "200"},
      {"authority with user", request("GET", "u@a", "/"), kReset},
      {"authority with line end", request("GET", "a\r\nx: y", "/"), kReset},
      {"authority with slash", request("GET", "a/b", "/"), kReset},
      {"empty authority", request("GET", "", "/"), kReset},
      {"no authority, no host", {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}}, kReset},
      {"host instead of authority",
       {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {"host", "a"}},
       "200"},
      {"host that agrees", with(get(), {{"host", "A"}}), "200"},
      {"host that differs", with(get(), {{"host", "b"}}), kReset},
      {"two hosts", with(get(), {{"host", "a"}, {"host", "a"}}), kReset},
      {"scheme of another protocol",
       {{":method", "GET"}, {":scheme", "ftp"}, {":authority", "a"}, {":path", "/"}},
       kReset},
      {"CONNECT", {{":method", "CONNECT"}, {":authority", "a:443"}}, "200"},
      {"CONNECT without port", {{":method", "CONNECT"}, {":authority", "a"}}, kReset},
      {"CONNECT with path",
       {{":method", "CONNECT"}, {":authority", "a:443"}, {":path", "/"}},
       kReset},
      {"extended CONNECT, not offered",
       with({{":method", "CONNECT"}, {":protocol", "websocket"}}, get()), kReset},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.why);
    EXPECT_EQ(fate_of(row.fields), row.fate);
  }
}

TEST(H2HeaderBlock, ExtendedConnectTable) {
  struct Row {
    const char* why;
    Fields fields;
    std::string fate;
  };
  const Fields connect = {{":method", "CONNECT"}, {":protocol", "websocket"}};
  const Fields target = {{":scheme", "https"}, {":authority", "a"}, {":path", "/chat"}};
  const std::vector<Row> rows = {
      {"all of it", with(connect, target), "200"},
      {"another protocol", with({{":method", "CONNECT"}, {":protocol", "connect-udp"}}, target),
       "200"},
      {"no protocol", with({{":method", "CONNECT"}}, target), kReset},
      {"empty protocol", with({{":method", "CONNECT"}, {":protocol", ""}}, target), kReset},
      {"protocol with line end", with({{":method", "CONNECT"}, {":protocol", "a\r\nb"}}, target),
       kReset},
      {"protocol twice", with(with(connect, {{":protocol", "websocket"}}), target), kReset},
      {"GET", with({{":method", "GET"}, {":protocol", "websocket"}}, target), kReset},
      {"no path", with(connect, {{":scheme", "https"}, {":authority", "a"}}), kReset},
      {"no scheme", with(connect, {{":authority", "a"}, {":path", "/"}}), kReset},
      {"no authority", with(connect, {{":scheme", "https"}, {":path", "/"}}), kReset},
      {"asterisk", with(connect, {{":scheme", "https"}, {":authority", "a"}, {":path", "*"}}),
       kReset},
      {"a length", with(with(connect, target), {{"content-length", "0"}}), kReset},
      {"upgrade", with(with(connect, target), {{"upgrade", "websocket"}}), kReset},
      {"plain CONNECT", {{":method", "CONNECT"}, {":authority", "a:443"}}, "200"},
  };
  H2Limits limits;
  limits.extended_connect = true;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.why);
    EXPECT_EQ(fate_of(row.fields, 0, limits), row.fate);
  }
}

TEST(H2HeaderBlock, FieldTable) {
  struct Row {
    const char* why;
    Fields fields;
    std::string fate;
  };
  const std::string nul(1, '\0');
  const std::vector<Row> rows = {
      {"te: trailers", with(get(), {{"te", "trailers"}}), "200"},
      {"te: gzip", with(get(), {{"te", "gzip"}}), kReset},
      {"transfer-encoding", with(get(), {{"transfer-encoding", "chunked"}}), kReset},
      {"keep-alive", with(get(), {{"keep-alive", "1"}}), kReset},
      {"proxy-connection", with(get(), {{"proxy-connection", "close"}}), kReset},
      {"upgrade", with(get(), {{"upgrade", "h2c"}}), kReset},
      {"name with blank", with(get(), {{"a b", "x"}}), kReset},
      {"name with colon", with(get(), {{"a:b", "x"}}), kReset},
      {"name with line end", with(get(), {{"a\r\nb", "x"}}), kReset},
      {"name with NUL", with(get(), {{"a" + nul, "x"}}), kReset},
      {"name with high byte", with(get(), {{"a\x80", "x"}}), kReset},
      {"value with CR", with(get(), {{"a", "x\ry"}}), kReset},
      {"value with LF", with(get(), {{"a", "x\ny"}}), kReset},
      {"value with NUL", with(get(), {{"a", "x" + nul}}), kReset},
      {"value with leading blank", with(get(), {{"a", " x"}}), kReset},
      {"value with trailing tab", with(get(), {{"a", "x\t"}}), kReset},
      {"value with inner blanks and high bytes", with(get(), {{"a", "x \t\xc3\xa4 y"}}), "200"},
      {"empty value", with(get(), {{"a", ""}}), "200"},
      {"framing with underscores", with(get(), {{"content_length", "5"}}), kReset},
      {"content-length of a request without body", with(get(), {{"content-length", "5"}}), kReset},
      {"content-length 0", with(get(), {{"content-length", "0"}}), "200"},
      {"content-length with sign", with(get(), {{"content-length", "+0"}}), kReset},
      {"content-length twice", with(get(), {{"content-length", "0"}, {"content-length", "0"}}),
       kReset},
      {"content-length list", with(get(), {{"content-length", "0, 0"}}), kReset},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.why);
    EXPECT_EQ(fate_of(row.fields), row.fate);
  }
}

TEST(H2HeaderBlock, ContentLengthIsHeldAgainstTheBody) {
  const Fields five = with(post(), {{"content-length", "5"}});
  struct Row {
    std::string body;
    bool ok;
  };
  for (const Row& row :
       {Row{"12345", true}, Row{"1234", false}, Row{"123456", false}, Row{"", false}}) {
    TestPeer peer;
    peer.handshake().send(headers(1, five, 0) + data(1, row.body, kEnd));
    EXPECT_EQ(peer.status_of(1), row.ok ? "200" : "") << row.body;
    EXPECT_EQ(peer.streams[1].complete, row.ok) << row.body;
    EXPECT_EQ(peer.glitches(H2Glitch::kContentLengthMismatch), row.ok ? 0U : 1U);
  }
  TestPeer peer;
  peer.handshake().send(headers(1, five, 0) + data(1, "123") + headers(1, {{"x", "y"}}));
  EXPECT_EQ(peer.reset_code(1), ErrorCode::kProtocolError) << "trailers end a body too";
  EXPECT_TRUE(peer.streams[1].trailers.empty());
}

TEST(H2HeaderBlock, TrailerTable) {
  struct Row {
    const char* why;
    Fields fields;
    bool ok;
  };
  const std::vector<Row> rows = {
      {"plain", {{"grpc-status", "0"}}, true}, {"none at all", {}, true},
      {"pseudo", {{":path", "/"}}, false},     {"framing", {{"content-length", "0"}}, false},
      {"host", {{"host", "a"}}, false},        {"authorization", {{"authorization", "x"}}, false},
      {"upper case", {{"X", "y"}}, false},     {"line end", {{"x", "y\r\nz: 1"}}, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.why);
    TestPeer peer;
    peer.handshake().send(headers(1, post(), 0) + data(1, "x") + headers(1, row.fields));
    EXPECT_EQ(peer.status_of(1), row.ok ? "200" : "");
    EXPECT_EQ(peer.reset_code(1).has_value(), !row.ok);
    EXPECT_EQ(peer.streams[1].trailers, row.ok ? row.fields : Fields{});
  }
}

TEST(H2HeaderBlock, CookieCrumbsBecomeOneField) {
  TestPeer peer;
  peer.handshake().send(headers(1, with(get(), {{"a", "1"},
                                                {"cookie", "x=1"},
                                                {"b", "2"},
                                                {"cookie", "y=2"},
                                                {"cookie", ""},
                                                {"c", "3"}})));
  EXPECT_EQ(peer.streams[1].fields,
            (Fields{{"a", "1"}, {"cookie", "x=1; y=2; "}, {"b", "2"}, {"c", "3"}}));
}

TEST(H2HeaderBlock, AnyNumberOfFieldsArrivesWholeAndInOrder) {
  TestPeer peer;
  peer.handshake();
  for (StreamId id = 1; id < 2 * 90; id += 2) {
    Fields fields;
    for (StreamId i = 0; i < id / 2; ++i)
      fields.emplace_back("x-" + std::to_string(i), std::string(i, 'v'));
    peer.send(headers(id, with(get(), fields)));
    EXPECT_EQ(peer.status_of(id), "200");
    EXPECT_EQ(peer.streams[id].fields, fields) << id / 2;
  }
}

TEST(H2HeaderBlock, WithoutMemoryForItsFieldsTheSessionEndsInOrder) {
  Fields fields;
  for (int i = 0; i < 60; ++i) fields.emplace_back("x-" + std::to_string(i), "v");
  for (std::uint64_t allowed = 0; allowed < 400; ++allowed) {
    TestPeer peer;
    peer.handshake();
    peer.library_session().heap().refuse_after(allowed);
    peer.send(headers(1, with(get(), fields)));
    peer.library_session().heap().check();
    if (!peer.alive()) continue;
    peer.library_session().heap().refuse_after(~std::uint64_t{0});
    peer.send(headers(3, get()));
    EXPECT_EQ(peer.status_of(3), "200") << allowed << ": what lives is well";
  }
}

TEST(H2HeaderBlock, BoundsAreExact) {
  H2Limits limits;
  limits.header_count_max = 10;
  limits.header_list_bytes_max = 1024;
  limits.uri_bytes_max = 100;
  const auto status = [&](const Fields& fields) {
    TestPeer peer(limits);
    peer.handshake().send(headers(1, fields));
    return peer.status_of(1);
  };
  Fields ten = get();
  for (int i = 0; i < 10; ++i) ten.emplace_back("x", "");
  EXPECT_EQ(status(ten), "200");
  ten.emplace_back("x", "");
  EXPECT_EQ(status(ten), "431");

  std::size_t base = 0;
  for (const auto& [name, value] : get()) base += name.size() + value.size() + 32;
  const std::size_t room = 1024 - base - 32 - 1;
  EXPECT_EQ(status(with(get(), {{"x", std::string(room, 'v')}})), "200");
  EXPECT_EQ(status(with(get(), {{"x", std::string(room + 1, 'v')}})), "431");

  EXPECT_EQ(status(get("/" + std::string(99, 'p'))), "200");
  EXPECT_EQ(status(get("/" + std::string(100, 'p'))), "414");
}

TEST(H2HeaderBlock, KnownFieldsAndMeaning) {
  TestPeer peer;
  peer.handshake().send(headers(1,
                                {{":method", "POST"},
                                 {":scheme", "https"},
                                 {":path", "/svc/M"},
                                 {"host", "h:1"},
                                 {"te", "trailers"},
                                 {"content-type", "application/grpc"},
                                 {"expect", "100-continue"}},
                                0));
  const SeenStream& stream = peer.streams[1];
  EXPECT_EQ(stream.authority, "h:1");
  EXPECT_EQ(stream.scheme, "https");
  EXPECT_FALSE(stream.body_length);
  EXPECT_FALSE(stream.end_stream);
}

}  // namespace
}  // namespace weir::inline v0::http::h2
