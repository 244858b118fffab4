#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "http/h2/session_testing.h"

/// Every rule that the conformance tool h2spec checks for a server (http2 §3.5 to §8.2, generic,
/// hpack: 147 cases, strict), named by its number and text, each sent whole and byte by byte.

namespace weir::inline v0::http::h2 {
namespace {

using namespace wire;
using Code = ErrorCode;

enum class Expect : std::uint8_t {
  kConnectionError,  // GOAWAY with one of the codes
  kStreamError,      // RST_STREAM of the stream, or GOAWAY, with one of the codes
  kAnswer,           // a response to the stream
  kPong,             // PING is answered: the connection is still open
  kPongOrClose,      // the same, or the connection is closed because no stream is left
  kSettingsAck,
  kSpecial,  // see `check`
};

struct Case {
  std::string rule;
  std::string bytes;
  Expect expect = Expect::kAnswer;
  std::vector<Code> codes{};
  StreamId stream = 1;
  std::function<void(TestPeer&)> check{};
  PeerOptions options{};
  bool bare = false;  // no handshake before the bytes
};

const std::string kPing = ping();
const Fields kGet = get();
const Fields kPost = post();

std::string half_closed(StreamId id) {
  return headers(id, kGet);
}
std::string open_stream(StreamId id) {
  return headers(id, kPost, 0);
}

PeerOptions silent() {
  PeerOptions options;
  options.answer = false;
  return options;
}

std::string priority_headers(StreamId id, std::uint32_t parent, unsigned weight, bool end = true) {
  return headers_raw(id, u32(parent) + u8(weight) + block(kGet),
                     kEndHeaders | kPriority | (end ? kEnd : 0));
}
std::string padded_headers(StreamId id, const Fields& fields, unsigned pad) {
  return headers_raw(id, u8(pad) + block(fields) + std::string(pad, '\0'),
                     kEndHeaders | kPadded | kEnd);
}

std::vector<Case> starting_and_framing() {
  const std::string large(16385, 'x');
  return {
      {"3.5.1 client connection preface",
       preface() + settings() + kPing,
       Expect::kPong,
       {},
       0,
       {},
       {},
       true},
      {"3.5.2 invalid connection preface",
       "INVALID CONNECTION PREFACE\r\n\r\n",
       Expect::kConnectionError,
       {Code::kProtocolError},
       0,
       {},
       {},
       true},
      {"4.1.1 frame of unknown type", frame(0xff, 0, 0, "01234567") + kPing, Expect::kPong},
      {"4.1.2 undefined flags", frame(6, 0x16, 0, "weirping"), Expect::kPong},
      {"4.1.3 reserved bit", frame(6, 0, 0x80000000, "weirping"), Expect::kPong},
      {"4.2.1 DATA of 2^14 octets", open_stream(1) + data(1, std::string(16384, 'x'), kEnd),
       Expect::kAnswer},
      {"4.2.2 DATA larger than MAX_FRAME_SIZE",
       open_stream(1) + data(1, large, kEnd),
       Expect::kStreamError,
       {Code::kFrameSizeError}},
      {"4.2.3 HEADERS larger than MAX_FRAME_SIZE",
       headers_raw(1, large, kEnd | kEndHeaders),
       Expect::kConnectionError,
       {Code::kFrameSizeError}},
      {"4.3.1 invalid header block fragment",
       headers_raw(1, "\x82\x87\x84\x41\x8a\x08\x9d\x5c\x0b\x81\x70\xdc\xff\xff\xff\xff",
                   kEnd | kEndHeaders),
       Expect::kConnectionError,
       {Code::kCompressionError}},
      {"4.3.2 PRIORITY inside a header block",
       headers_raw(1, block(kGet), kEnd) + priority(1, 0),
       Expect::kConnectionError,
       {Code::kProtocolError}},
      {"4.3.3 HEADERS of another stream inside a header block",
       headers_raw(1, block(kGet), kEnd) + headers(3, kGet),
       Expect::kConnectionError,
       {Code::kProtocolError}},
  };
}

std::vector<Case> stream_states() {
  const std::vector<Code> proto = {Code::kProtocolError};
  const std::vector<Code> closed = {Code::kStreamClosed};
  const std::vector<Code> either = {Code::kStreamClosed, Code::kProtocolError};
  const std::string fragment = block({{"x-dummy", "1"}});
  return {
      {"5.1.1 idle: DATA", data(1, "test", kEnd), Expect::kConnectionError, proto},
      {"5.1.2 idle: RST_STREAM", rst(1), Expect::kConnectionError, proto},
      {"5.1.3 idle: WINDOW_UPDATE", window_update(1, 100), Expect::kConnectionError, proto},
      {"5.1.4 idle: CONTINUATION", continuation(1, block(kGet)), Expect::kConnectionError, proto},
      {"5.1.5 half-closed (remote): DATA",
       half_closed(1) + data(1, "test", kEnd),
       Expect::kStreamError,
       closed,
       1,
       {},
       silent()},
      {"5.1.6 half-closed (remote): HEADERS",
       half_closed(1) + headers(1, kGet),
       Expect::kStreamError,
       closed,
       1,
       {},
       silent()},
      {"5.1.7 half-closed (remote): CONTINUATION",
       half_closed(1) + continuation(1, fragment),
       Expect::kStreamError,
       either,
       1,
       {},
       silent()},
      {"5.1.8 closed: DATA after RST_STREAM", open_stream(1) + rst(1) + data(1, "test", kEnd),
       Expect::kStreamError, closed},
      {"5.1.9 closed: HEADERS after RST_STREAM", open_stream(1) + rst(1) + headers(1, kGet),
       Expect::kStreamError, closed},
      {"5.1.10 closed: CONTINUATION after RST_STREAM",
       open_stream(1) + rst(1) + continuation(1, fragment), Expect::kStreamError, either},
      {"5.1.11 closed: DATA", half_closed(1) + data(1, "test", kEnd), Expect::kConnectionError,
       closed},
      {"5.1.12 closed: HEADERS", half_closed(1) + headers(1, kGet), Expect::kConnectionError,
       closed},
      {"5.1.13 closed: CONTINUATION", half_closed(1) + continuation(1, fragment),
       Expect::kConnectionError, either},
      {"5.1.1.1 even-numbered stream", headers(2, kGet), Expect::kConnectionError, proto},
      {"5.1.1.2 smaller than previous", headers(5, kGet) + headers(3, kGet),
       Expect::kConnectionError, proto},
      {"5.3.1.1 HEADERS depending on itself", priority_headers(1, 1, 255), Expect::kStreamError,
       proto},
      {"5.3.1.2 PRIORITY depending on itself", open_stream(1) + priority(1, 1),
       Expect::kStreamError, proto},
      {"5.4.1.1 connection error closes the connection",
       frame(6, 0, 3, "weirping"),
       Expect::kSpecial,
       {},
       0,
       [](TestPeer& p) { EXPECT_TRUE(p.session().finished()); }},
      {"5.4.1.2 GOAWAY before closing", frame(6, 0, 3, "weirping"), Expect::kConnectionError,
       proto},
      {"5.5.1 unknown extension frame", frame(0x16, 0, 0, "weird") + kPing, Expect::kPong},
      {"5.5.2 unknown extension frame inside a header block",
       headers_raw(1, block(kGet), kEnd) + frame(0x16, 0, 1, "weird"), Expect::kConnectionError,
       proto},
  };
}

std::vector<Case> frame_definitions() {
  const std::vector<Code> proto = {Code::kProtocolError};
  const std::vector<Code> size = {Code::kFrameSizeError};
  return {
      {"6.1.1 DATA on stream 0", data(0, "test", kEnd), Expect::kConnectionError, proto},
      {"6.1.2 DATA on a stream that is not open",
       headers(1, kPost) + data(1, "test", kEnd),
       Expect::kStreamError,
       {Code::kStreamClosed}},
      {"6.1.3 DATA with invalid pad length", open_stream(1) + data(1, "\x06Test", kEnd | kPadded),
       Expect::kConnectionError, proto},
      {"6.2.1 PRIORITY between HEADERS and CONTINUATION",
       headers_raw(1, block(kGet), kEnd) + priority(1, 0), Expect::kConnectionError, proto},
      {"6.2.2 HEADERS of another stream between HEADERS and CONTINUATION",
       headers_raw(1, block(kGet), kEnd) + headers(3, kGet), Expect::kConnectionError, proto},
      {"6.2.3 HEADERS on stream 0", headers(0, kGet), Expect::kConnectionError, proto},
      {"6.2.4 HEADERS with invalid pad length",
       headers_raw(1, u8(200) + block(kGet), kEnd | kEndHeaders | kPadded),
       Expect::kConnectionError, proto},
      {"6.3.1 PRIORITY on stream 0", priority(0, 0), Expect::kConnectionError, proto},
      {"6.3.2 PRIORITY of a length other than 5",
       open_stream(1) + frame(2, 0, 1, "\x80\x00\x00\x01"), Expect::kStreamError, size},
      {"6.4.1 RST_STREAM on stream 0", rst(0), Expect::kConnectionError, proto},
      {"6.4.2 RST_STREAM on an idle stream", rst(1), Expect::kConnectionError, proto},
      {"6.4.3 RST_STREAM of a length other than 4", open_stream(1) + frame(3, 0, 1, "abc"),
       Expect::kConnectionError, size},
      {"6.5.1 SETTINGS ACK with payload", frame(4, kAck, 0, "\x01"), Expect::kConnectionError,
       size},
      {"6.5.2 SETTINGS on a stream", frame(4, 0, 1, u16(3) + u32(100)), Expect::kConnectionError,
       proto},
      {"6.5.3 SETTINGS of a length that is no multiple of 6", frame(4, 0, 0, "abc"),
       Expect::kConnectionError, size},
      {"6.5.2.1 ENABLE_PUSH other than 0 or 1", settings({{2, 2}}), Expect::kConnectionError,
       proto},
      {"6.5.2.2 INITIAL_WINDOW_SIZE above the maximum",
       settings({{4, 0x80000000}}),
       Expect::kConnectionError,
       {Code::kFlowControlError}},
      {"6.5.2.3 MAX_FRAME_SIZE below its initial value", settings({{5, 16383}}),
       Expect::kConnectionError, proto},
      {"6.5.2.4 MAX_FRAME_SIZE above its maximum", settings({{5, 16777216}}),
       Expect::kConnectionError, proto},
      {"6.5.2.5 unknown setting", settings({{0xff, 1}}) + kPing, Expect::kPong},
      {"6.5.3.1 the last of two values counts",
       settings({{4, 100}, {4, 1}}) + headers(1, kGet),
       Expect::kSpecial,
       {},
       1,
       [](TestPeer& p) { EXPECT_EQ(p.responses[1].body.size(), 1U); }},
      {"6.5.3.2 SETTINGS are acknowledged", settings(), Expect::kSettingsAck},
      {"6.7.1 PING is answered with the same payload", kPing, Expect::kPong},
      {"6.7.2 PING ACK is not answered",
       ping(kAck) + frame(6, 0, 0, "whatever"),
       Expect::kSpecial,
       {},
       0,
       [](TestPeer& p) {
         ASSERT_EQ(p.count(FrameType::kPing), 1U);
         EXPECT_EQ(p.frames[0].payload, "whatever");
       }},
      {"6.7.3 PING on a stream", frame(6, 0, 1, "weirping"), Expect::kConnectionError, proto},
      {"6.7.4 PING of a length other than 8", frame(6, 0, 0, "weir"), Expect::kConnectionError,
       size},
      {"6.8.1 GOAWAY on a stream", frame(7, 0, 1, u32(0) + u32(0)), Expect::kConnectionError,
       proto},
      {"7.1 GOAWAY with an unknown error code", goaway(0, 0xff) + kPing, Expect::kPongOrClose},
      {"7.2 RST_STREAM with an unknown error code", open_stream(1) + rst(1, 0xff) + kPing,
       Expect::kPong},
  };
}

std::vector<Case> windows_and_continuation() {
  const std::vector<Code> proto = {Code::kProtocolError};
  const std::vector<Code> flow = {Code::kFlowControlError};
  const std::string whole = block(kGet);
  const std::string more = block({{"x-a", "1"}});
  const auto body_is = [](std::size_t bytes) {
    return [bytes](TestPeer& p) { EXPECT_EQ(p.responses[1].body.size(), bytes); };
  };
  PeerOptions longer;
  longer.body = "12345";
  return {
      {"6.9.1 WINDOW_UPDATE by 0 on the connection", window_update(0, 0), Expect::kConnectionError,
       proto},
      {"6.9.2 WINDOW_UPDATE by 0 on a stream", open_stream(1) + window_update(1, 0),
       Expect::kStreamError, proto},
      {"6.9.3 WINDOW_UPDATE of a length other than 4",
       frame(8, 0, 0, "abc"),
       Expect::kConnectionError,
       {Code::kFrameSizeError}},
      {"6.9.1.1 DATA not larger than the window",
       settings({{4, 1}}) + headers(1, kGet),
       Expect::kSpecial,
       {},
       1,
       body_is(1),
       longer},
      {"6.9.1.2 connection window above 2^31-1",
       window_update(0, 0x7fffffff) + window_update(0, 0x7fffffff), Expect::kConnectionError, flow},
      {"6.9.1.3 stream window above 2^31-1",
       open_stream(1) + window_update(1, 0x7fffffff) + window_update(1, 0x7fffffff),
       Expect::kStreamError, flow},
      {"6.9.2.1 INITIAL_WINDOW_SIZE changes open streams",
       settings({{4, 0}}) + headers(1, kGet) + settings({{4, 1}}),
       Expect::kSpecial,
       {},
       1,
       body_is(1),
       longer},
      {"6.9.2.2 windows may become negative",
       settings({{4, 3}}) + headers(1, kGet) + settings({{4, 2}}) + window_update(1, 2),
       Expect::kSpecial,
       {},
       1,
       body_is(4),
       longer},
      {"6.9.2.3 INITIAL_WINDOW_SIZE above the maximum", settings({{4, 0x80000000}}),
       Expect::kConnectionError, flow},
      {"6.10.1 several CONTINUATION frames",
       headers_raw(1, whole, kEnd) + continuation(1, more, 0) + continuation(1, more),
       Expect::kAnswer},
      {"6.10.2 CONTINUATION followed by another frame",
       headers_raw(1, whole, kEnd) + continuation(1, more, 0) + data(1, "test", kEnd),
       Expect::kConnectionError, proto},
      {"6.10.3 CONTINUATION on stream 0", headers_raw(1, whole, kEnd) + continuation(0, more),
       Expect::kConnectionError, proto},
      {"6.10.4 CONTINUATION after END_HEADERS of HEADERS", headers(1, kGet) + continuation(1, more),
       Expect::kConnectionError, proto},
      {"6.10.5 CONTINUATION after END_HEADERS of CONTINUATION",
       headers_raw(1, whole, kEnd) + continuation(1, more) + continuation(1, more),
       Expect::kConnectionError, proto},
      {"6.10.6 CONTINUATION after DATA", open_stream(1) + data(1, "test") + continuation(1, more),
       Expect::kConnectionError, proto},
  };
}

std::vector<Case> messages() {
  const std::vector<Code> proto = {Code::kProtocolError};
  const auto bad = [&](std::string rule, const Fields& fields) {
    return Case{std::move(rule), headers(1, fields), Expect::kStreamError, proto};
  };
  const auto without = [](std::string_view name) {
    Fields fields = get();
    std::erase_if(fields, [&](const auto& field) { return field.first == name; });
    return fields;
  };
  return {
      {"8.1.1 second HEADERS without END_STREAM",
       open_stream(1) + data(1, "test") + headers(1, {{"x-a", "1"}}, 0), Expect::kStreamError,
       proto},
      bad("8.1.2.1 uppercase field name", with(kGet, {{"X-TEST", "ok"}})),
      bad("8.1.2.1.1 unknown pseudo-header", with(kGet, {{":test", "ok"}})),
      bad("8.1.2.1.2 pseudo-header of responses", with(kGet, {{":status", "200"}})),
      {"8.1.2.1.3 pseudo-header as trailer",
       open_stream(1) + headers(1, {{":method", "200"}, {"x-test", "ok"}}), Expect::kStreamError,
       proto},
      bad("8.1.2.1.4 pseudo-header after a field",
          with(without(":path"), {{"x-test", "ok"}, {":path", "/"}})),
      bad("8.1.2.2.1 connection-specific field", with(kGet, {{"connection", "keep-alive"}})),
      bad("8.1.2.2.2 te other than trailers", with(kGet, {{"te", "trailers, deflate"}})),
      bad("8.1.2.3.1 empty :path", with(without(":path"), {{":path", ""}})),
      bad("8.1.2.3.2 without :method", without(":method")),
      bad("8.1.2.3.3 without :scheme", without(":scheme")),
      bad("8.1.2.3.4 without :path", without(":path")),
      bad("8.1.2.3.5 two :method", with(kGet, {{":method", "GET"}})),
      bad("8.1.2.3.6 two :scheme", with(kGet, {{":scheme", "http"}})),
      bad("8.1.2.3.7 two :path", with(kGet, {{":path", "/"}})),
      {"8.1.2.6.1 content-length other than the DATA",
       headers(1, with(kPost, {{"content-length", "1"}}), 0) + data(1, "test", kEnd),
       Expect::kStreamError, proto},
      {"8.1.2.6.2 content-length other than the sum of the DATA",
       headers(1, with(kPost, {{"content-length", "1"}}), 0) + data(1, "test") +
           data(1, "test", kEnd),
       Expect::kStreamError, proto},
      {"8.2.1 PUSH_PROMISE", headers(1, kGet) + frame(5, kEndHeaders, 1, u32(2) + block(kGet)),
       Expect::kConnectionError, proto},
  };
}

std::vector<Case> generic_frames() {
  const Case pong_after{"", "", Expect::kPong};
  return {
      {"generic 1.1 client connection preface",
       preface() + settings(),
       Expect::kSettingsAck,
       {},
       0,
       {},
       {},
       true},
      {"generic 2.1 PRIORITY on an idle stream", priority(1, 0) + headers(1, kGet),
       Expect::kAnswer},
      {"generic 2.2 WINDOW_UPDATE on a half-closed stream", half_closed(1) + window_update(1, 1),
       Expect::kAnswer},
      {"generic 2.3 PRIORITY on a half-closed stream", half_closed(1) + priority(1, 0),
       Expect::kAnswer},
      {"generic 2.4 RST_STREAM on a half-closed stream", half_closed(1) + rst(1) + kPing,
       Expect::kPong},
      {"generic 2.5 PRIORITY on a closed stream", half_closed(1) + priority(1, 0) + kPing,
       Expect::kPong},
      {"generic 3.1.1 DATA", open_stream(1) + data(1, "test", kEnd), Expect::kAnswer},
      {"generic 3.1.2 several DATA frames",
       open_stream(1) + data(1, "test") + data(1, "test", kEnd), Expect::kAnswer},
      {"generic 3.1.3 DATA with padding",
       open_stream(1) + data(1, "\x04test" + std::string(4, '\0'), kEnd | kPadded),
       Expect::kAnswer},
      {"generic 3.2.1 HEADERS", headers(1, kGet), Expect::kAnswer},
      {"generic 3.2.2 HEADERS with padding", padded_headers(1, kGet, 8), Expect::kAnswer},
      {"generic 3.2.3 HEADERS with priority", priority_headers(1, 0, 255), Expect::kAnswer},
      {"generic 3.3.1 PRIORITY with weight 1", frame(2, 0, 1, u32(0) + u8(0)) + headers(1, kGet),
       Expect::kAnswer},
      {"generic 3.3.2 PRIORITY with weight 256",
       frame(2, 0, 1, u32(0) + u8(255)) + headers(1, kGet), Expect::kAnswer},
      {"generic 3.3.3 PRIORITY on a stream of its own", priority(3, 1) + headers(1, kGet),
       Expect::kAnswer},
      {"generic 3.3.4 exclusive PRIORITY",
       frame(2, 0, 3, u32(0x80000001) + u8(15)) + headers(1, kGet), Expect::kAnswer},
      {"generic 3.3.5 PRIORITY on an idle stream, then HEADERS of a lower one",
       priority(5, 3) + headers(1, kGet), Expect::kAnswer},
      {"generic 3.4.1 RST_STREAM", open_stream(1) + rst(1) + kPing, Expect::kPong},
      {"generic 3.5.1 SETTINGS", settings({{3, 10}}) + kPing, Expect::kSettingsAck},
      {"generic 3.7.1 PING", kPing, Expect::kPong},
      {"generic 3.8.1 GOAWAY", goaway(0, 0) + kPing, Expect::kPongOrClose},
      {"generic 3.9.1 WINDOW_UPDATE on the connection", window_update(0, 1) + kPing, Expect::kPong},
      {"generic 3.9.2 WINDOW_UPDATE on a stream", headers(1, kGet) + window_update(1, 1),
       Expect::kAnswer},
      {"generic 3.10.1 CONTINUATION",
       headers_raw(1, block(kGet), kEnd) + continuation(1, block({{"x-a", "1"}})), Expect::kAnswer},
      {"generic 3.10.2 several CONTINUATION frames",
       headers_raw(1, block(kGet), kEnd) + continuation(1, block({{"x-a", "1"}}), 0) +
           continuation(1, block({{"x-b", "1"}})),
       Expect::kAnswer},
      {"generic 4.1 GET", headers(1, kGet), Expect::kAnswer},
      {"generic 4.2 HEAD",
       headers(1, {{":method", "HEAD"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/"}}),
       Expect::kAnswer},
      {"generic 4.3 POST", open_stream(1) + data(1, "test", kEnd), Expect::kAnswer},
      {"generic 4.4 POST with trailers",
       open_stream(1) + data(1, "test") + headers(1, {{"x-test", "ok"}}), Expect::kAnswer},
  };
}

/// Header blocks in every representation of RFC 7541: each must be decoded.
std::vector<Case> generic_hpack() {
  // :method GET, :scheme http, :path / from the static table; :authority a as a literal.
  const std::string base = index(2) + index(6) + index(4);
  const std::string host =
      "\x01\x01"
      "a";
  const std::string huffman_ua = "\x0f\x2b\x82\x1c\x64";  // user-agent, Huffman code of "aaa"
  const auto ok = [&](std::string rule, const std::string& fields) {
    return Case{std::move(rule), headers_raw(1, base + host + fields, kEnd | kEndHeaders),
                Expect::kAnswer};
  };
  const std::string n16 = hpack_int(0x00, 4, 58);  // user-agent, without indexing
  return {
      ok("generic 5.1 indexed field", ""),
      ok("generic 5.2 literal with indexing, indexed name",
         hpack_int(0x40, 6, 58) + hpack_string("x")),
      ok("generic 5.3 literal with indexing, indexed name, Huffman",
         hpack_int(0x40, 6, 58) + "\x83\x18\xc6\x3f"),
      ok("generic 5.4 literal with indexing, new name", indexed_literal("x-test", "x")),
      ok("generic 5.5 literal with indexing, new name, Huffman",
         "\x40\x83\x18\xc6\x3f\x83\x18\xc6\x3f"),
      ok("generic 5.6 literal without indexing, indexed name", n16 + hpack_string("x")),
      ok("generic 5.7 literal without indexing, indexed name, Huffman", n16 + "\x83\x18\xc6\x3f"),
      ok("generic 5.8 literal without indexing, new name", literal("x-test", "x")),
      ok("generic 5.9 literal without indexing, new name, Huffman",
         u8(0) + "\x83\x18\xc6\x3f\x83\x18\xc6\x3f"),
      ok("generic 5.10 literal never indexed, indexed name",
         hpack_int(0x10, 4, 58) + hpack_string("x")),
      ok("generic 5.11 literal never indexed, indexed name, Huffman",
         hpack_int(0x10, 4, 58) + "\x83\x18\xc6\x3f"),
      ok("generic 5.12 literal never indexed, new name",
         u8(0x10) + hpack_string("x-test") + hpack_string("x")),
      ok("generic 5.13 literal never indexed, new name, Huffman",
         u8(0x10) + "\x83\x18\xc6\x3f\x83\x18\xc6\x3f"),
      {"generic 5.14 dynamic table size update",
       headers_raw(1, hpack_int(0x20, 5, 128) + base + host, kEnd | kEndHeaders), Expect::kAnswer},
      {"generic 5.15 several dynamic table size updates",
       headers_raw(1, hpack_int(0x20, 5, 128) + hpack_int(0x20, 5, 4096) + base + host,
                   kEnd | kEndHeaders),
       Expect::kAnswer},
  };
}

std::vector<Case> hpack_errors() {
  const std::string base = block(kGet);
  const auto bad = [&](std::string rule, const std::string& fragment) {
    return Case{std::move(rule),
                headers_raw(1, fragment, kEnd | kEndHeaders),
                Expect::kConnectionError,
                {Code::kCompressionError}};
  };
  return {
      bad("hpack 2.3.3.1 indexed field with an index that is not there", base + index(70)),
      bad("hpack 2.3.3.2 literal with a name index that is not there",
          base + hpack_int(0x40, 6, 70) + hpack_string("x")),
      bad("hpack 4.2.1 table size update at the end of a block", base + hpack_int(0x20, 5, 1)),
      bad("hpack 5.2.1 Huffman padding longer than 7 bits",
          base + u8(0) + hpack_string("x-a") + "\x84\x18\xc6\x3f\xff"),
      bad("hpack 5.2.2 Huffman padding with zeros",
          base + u8(0) + hpack_string("x-a") + "\x83\x18\xc6\x30"),
      bad("hpack 5.2.3 Huffman code with EOS",
          base + u8(0) + hpack_string("x-a") + "\x87\xff\xff\xff\xff\xff\xff\xfc"),
      bad("hpack 6.1.1 index 0", base + u8(0x80)),
      bad("hpack 6.3.1 table size above the limit", hpack_int(0x20, 5, 4097) + base),
  };
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (auto group :
       {starting_and_framing, stream_states, frame_definitions, windows_and_continuation, messages,
        generic_frames, generic_hpack, hpack_errors}) {
    for (Case& c : group()) cases.push_back(std::move(c));
  }
  return cases;
}

bool one_of(const std::vector<Code>& codes, std::optional<Code> code) {
  return code && std::find(codes.begin(), codes.end(), *code) != codes.end();
}

void expect(const Case& c, TestPeer& peer) {
  switch (c.expect) {
    case Expect::kConnectionError:
      EXPECT_TRUE(one_of(c.codes, peer.goaway_code()));
      EXPECT_FALSE(peer.alive());
      EXPECT_TRUE(peer.session().finished()) << "the connection is to be closed";
      break;
    case Expect::kStreamError:
      EXPECT_TRUE(one_of(c.codes, peer.reset_code(c.stream)) ||
                  one_of(c.codes, peer.goaway_code()));
      break;
    case Expect::kAnswer:
      EXPECT_TRUE(peer.alive());
      EXPECT_EQ(peer.status_of(c.stream), "200");
      break;
    case Expect::kPong:
      EXPECT_TRUE(peer.alive());
      ASSERT_EQ(peer.count(FrameType::kPing, flag::kAck), 1U);
      break;
    case Expect::kPongOrClose:
      EXPECT_TRUE(peer.no_error());
      EXPECT_TRUE(peer.session().finished() || peer.count(FrameType::kPing, flag::kAck) == 1);
      EXPECT_FALSE(peer.goaway_code());
      break;
    case Expect::kSettingsAck:
      EXPECT_TRUE(peer.alive());
      EXPECT_EQ(peer.count(FrameType::kSettings, flag::kAck), 1U);
      break;
    case Expect::kSpecial:
      c.check(peer);
      break;
  }
}

class H2Conformance : public testing::TestWithParam<std::size_t> {
 public:
  static const std::vector<Case>& cases() {
    static const std::vector<Case> all = all_cases();
    return all;
  }
};

TEST_P(H2Conformance, Rule) {
  const Case& c = cases()[GetParam()];
  for (const bool whole : {true, false}) {
    SCOPED_TRACE(c.rule + (whole ? ", whole" : ", byte by byte"));
    TestPeer peer({}, c.options);
    if (!c.bare) peer.handshake();
    if (whole) {
      peer.send(c.bytes);
    } else {
      peer.send_by_byte(c.bytes);
    }
    expect(c, peer);
  }
}

std::string test_name(const testing::TestParamInfo<std::size_t>& info) {
  std::string name = H2Conformance::cases()[info.param].rule;
  for (char& ch : name)
    if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(H2spec, H2Conformance,
                         testing::Range(std::size_t{0}, H2Conformance::cases().size()), test_name);

TEST(H2ConformanceTable, HoldsEveryRuleOnce) {
  std::set<std::string> rules;
  for (const Case& c : H2Conformance::cases()) EXPECT_TRUE(rules.insert(c.rule).second) << c.rule;
  EXPECT_EQ(rules.size(), 146U) << "147 with the one below, which needs a loop";
}

TEST(H2ConformanceTable, Rule_5_1_2_1_more_streams_than_allowed) {
  PeerOptions options;
  options.answer = false;
  TestPeer peer({}, options);
  peer.handshake();
  for (StreamId i = 0; i <= 100; ++i) peer.send(headers(2 * i + 1, kGet));
  EXPECT_EQ(peer.reset_code(201), Code::kRefusedStream);
  EXPECT_TRUE(peer.alive()) << "a stream error, not a connection error";
  EXPECT_EQ(peer.streams.size(), 100U);
}

}  // namespace
}  // namespace weir::inline v0::http::h2
