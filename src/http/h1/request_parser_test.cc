#include "weir/experimental/http/h1/request_parser.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "http/h1/transcript_testing.h"

namespace weir::inline v0::http::h1 {
namespace {

/// The error of one request, kNone if it is complete; fails if more bytes are needed.
ParseError error_of(std::string_view bytes, const HttpLimits& limits = {}) {
  std::vector<HeaderView> storage(limits.header_count_max);
  RequestParser parser(limits);
  RequestHead head;
  const HeadResult result = parser.parse_head(bytes, storage, head);
  EXPECT_NE(result.status, ParseStatus::kNeedMore) << bytes;
  return result.error;
}

std::string with_fields(std::string_view fields) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}

TEST(RequestParser, ReadsAHead) {
  const std::string bytes =
      "GET /a/b?c=d HTTP/1.1\r\nHost: Example.org\r\nAccept: */*\r\nX-Empty:\r\n\r\nGET";
  std::array<HeaderView, 100> storage;
  const HttpLimits limits;
  RequestParser parser(limits, "https");
  RequestHead head;
  EXPECT_FALSE(parser.started());
  const HeadResult result = parser.parse_head(bytes, storage, head);
  ASSERT_EQ(result.status, ParseStatus::kComplete);
  EXPECT_EQ(result.consumed, bytes.size() - 3);
  EXPECT_EQ(head.method, Method::kGet);
  EXPECT_EQ(head.version, Version::k11);
  EXPECT_EQ(head.form, TargetForm::kOrigin);
  EXPECT_EQ(head.meta.scheme, "https");
  EXPECT_EQ(head.meta.authority, "Example.org");
  EXPECT_EQ(head.meta.path, "/a/b?c=d");
  EXPECT_EQ(head.body, BodyFraming{});
  EXPECT_TRUE(head.keep_alive);
  EXPECT_EQ(head.headers.size(), 3U);
  EXPECT_EQ(head.headers[2].value, "");
  EXPECT_FALSE(parser.started()) << "ready for the next one";
}

TEST(RequestParser, RequestLineTable) {
  struct Row {
    std::string line;
    ParseError error;
  };
  const std::vector<Row> rows = {
      {"GET / HTTP/1.1", ParseError::kNone},
      {"GET / HTTP/1.0", ParseError::kNone},
      {"M-SEARCH / HTTP/1.1", ParseError::kNone},
      {"get / HTTP/1.1", ParseError::kNone},
      {"GET /?a|b^{}[]\\'`@! HTTP/1.1", ParseError::kNone},
      {"GET // HTTP/1.1", ParseError::kNone},
      {" GET / HTTP/1.1", ParseError::kBadMethod},
      {"\tGET / HTTP/1.1", ParseError::kBadMethod},
      {"GET\t/ HTTP/1.1", ParseError::kBadMethod},
      {"G(T / HTTP/1.1", ParseError::kBadMethod},
      {"G\x80T / HTTP/1.1", ParseError::kBadMethod},
      {std::string("G\0T / HTTP/1.1", 14), ParseError::kBadMethod},
      {"\x16\x03\x01\x02 / HTTP/1.1", ParseError::kBadMethod},
      {"GET", ParseError::kBadMethod},
      {"", ParseError::kBadMethod},
      {std::string(33, 'M') + " / HTTP/1.1", ParseError::kMethodTooLong},
      {std::string(32, 'M') + " / HTTP/1.1", ParseError::kNone},
      {"GET  / HTTP/1.1", ParseError::kBadTarget},
      {"GET /", ParseError::kBadTarget},
      {"GET /a b HTTP/1.1", ParseError::kBadVersion},
      {"GET /a#b HTTP/1.1", ParseError::kBadTarget},
      {"GET /a\"b HTTP/1.1", ParseError::kBadTarget},
      {"GET /<a> HTTP/1.1", ParseError::kBadTarget},
      {"GET /\x7f HTTP/1.1", ParseError::kBadTarget},
      {"GET /\xc3\xa4 HTTP/1.1", ParseError::kBadTarget},
      {std::string("GET /\0 HTTP/1.1", 15), ParseError::kBadTarget},
      {"GET /a\t HTTP/1.1", ParseError::kBadTarget},
      {"GET a HTTP/1.1", ParseError::kBadTarget},
      {"GET ?a HTTP/1.1", ParseError::kBadTarget},
      {"GET * HTTP/1.1", ParseError::kBadTarget},
      {"OPTIONS * HTTP/1.1", ParseError::kNone},
      {"OPTIONS ** HTTP/1.1", ParseError::kBadTarget},
      {"GET a:80 HTTP/1.1", ParseError::kBadTarget},
      {"CONNECT a:443 HTTP/1.1", ParseError::kNone},
      {"CONNECT a HTTP/1.1", ParseError::kBadTarget},
      {"CONNECT / HTTP/1.1", ParseError::kBadTarget},
      {"CONNECT http://a/ HTTP/1.1", ParseError::kBadTarget},
      {"CONNECT b:443 HTTP/1.1", ParseError::kHostMismatch},
      {"GET http://a/ HTTP/1.1", ParseError::kNone},
      {"GET HTTPS://A HTTP/1.1", ParseError::kNone},
      {"GET http://b/ HTTP/1.1", ParseError::kHostMismatch},
      {"GET http://a:80/ HTTP/1.1", ParseError::kHostMismatch},
      {"GET http:///x HTTP/1.1", ParseError::kBadTarget},
      {"GET http://u@a/ HTTP/1.1", ParseError::kBadTarget},
      {"GET http://a?x HTTP/1.1", ParseError::kBadTarget},
      {"GET ftp://a/ HTTP/1.1", ParseError::kBadTarget},
      {"GET http:/a HTTP/1.1", ParseError::kBadTarget},
      {"GET / HTTP/1.2", ParseError::kUnsupportedVersion},
      {"GET / HTTP/2.0", ParseError::kUnsupportedVersion},
      {"GET / HTTP/0.9", ParseError::kUnsupportedVersion},
      {"GET / HTTP/1.1 ", ParseError::kBadVersion},
      {"GET / HTTP/1.10", ParseError::kBadVersion},
      {"GET / HTTP/1,1", ParseError::kBadVersion},
      {"GET / http/1.1", ParseError::kBadVersion},
      {"GET / HTTP/01.1", ParseError::kBadVersion},
      {"GET / HTTP /1.1", ParseError::kBadVersion},
      {"GET / XTTP/1.1", ParseError::kBadVersion},
      {"GET /  HTTP/1.1", ParseError::kBadVersion},
  };
  for (const Row& row : rows) {
    const ParseError error = error_of(row.line + "\r\nHost: a\r\n\r\n");
    EXPECT_EQ(error, row.error) << row.line << ": " << to_string(error);
  }
}

TEST(RequestParser, FieldTable) {
  struct Row {
    std::string fields;
    ParseError error;
  };
  const std::vector<Row> rows = {
      {"A: b\r\n", ParseError::kNone},
      {"A:b\r\n", ParseError::kNone},
      {"A:\t b \t\r\n", ParseError::kNone},
      {"A: \r\n", ParseError::kNone},
      {"A: b\tc\r\n", ParseError::kNone},
      {"A: \xe2\x82\xac\r\n", ParseError::kNone},
      {"X_Y: b\r\n", ParseError::kNone},
      {"A : b\r\n", ParseError::kBadFieldName},
      {"A\t: b\r\n", ParseError::kBadFieldName},
      {": b\r\n", ParseError::kBadFieldName},
      {"A\r\n", ParseError::kBadFieldName},
      {"A b: c\r\n", ParseError::kBadFieldName},
      {"A\xc3\xa4: c\r\n", ParseError::kBadFieldName},
      {std::string("A\0: c\r\n", 7), ParseError::kBadFieldName},
      {"A(: c\r\n", ParseError::kBadFieldName},
      {"Content_Length: 5\r\n", ParseError::kBadFieldName},
      {"Transfer_Encoding: chunked\r\n", ParseError::kBadFieldName},
      {" A: b\r\n", ParseError::kObsoleteFold},
      {"A: b\r\n c\r\n", ParseError::kObsoleteFold},
      {"A: b\r\n\tc\r\n", ParseError::kObsoleteFold},
      {"A: b\n", ParseError::kBadLineEnding},
      {"A: b\rC: d\r\n", ParseError::kBadLineEnding},
      {"A: b\r\r\n", ParseError::kBadLineEnding},
      {"\n", ParseError::kBadLineEnding},
      {"\rX", ParseError::kBadLineEnding},
      {std::string("A: b\0c\r\n", 8), ParseError::kBadFieldValue},
      {"A: b\x01\r\n", ParseError::kBadFieldValue},
      {"A: b\x7f\r\n", ParseError::kBadFieldValue},
      {"A: \x0b"
       "b\r\n",
       ParseError::kBadFieldValue},
      {"Connection: x y\r\n", ParseError::kBadConnection},
      {"Connection: host\r\n", ParseError::kBadConnection},
      {"Connection: close, Content-Length\r\n", ParseError::kBadConnection},
      {"Connection: X-Forwarded-For\r\n", ParseError::kBadConnection},
      {"Connection: , close ,\r\n", ParseError::kNone},
      {"Expect: 100-continue\r\n", ParseError::kNone},
      {"Expect: 200-maybe\r\n", ParseError::kBadExpect},
      {"Expect: 100-continue, x\r\n", ParseError::kBadExpect},
      {"Expect: 100-continue\r\nExpect: 100-continue\r\n", ParseError::kBadExpect},
  };
  for (const Row& row : rows) {
    const ParseError error = error_of(with_fields(row.fields));
    EXPECT_EQ(error, row.error) << row.fields << ": " << to_string(error);
  }
}

TEST(RequestParser, HostTable) {
  struct Row {
    const char* host_lines;
    ParseError error;
  };
  for (const Row& row : {Row{"", ParseError::kMissingHost},
                         Row{"Host: a\r\nHost: a\r\n", ParseError::kRepeatedHost},
                         Row{"Host:\r\n", ParseError::kBadHost},
                         Row{"Host: a b\r\n", ParseError::kBadHost},
                         Row{"Host: a,b\r\n", ParseError::kBadHost},
                         Row{"Host: a/b\r\n", ParseError::kBadHost},
                         Row{"Host: u@a\r\n", ParseError::kBadHost},
                         Row{"Host: a:\r\n", ParseError::kBadHost},
                         Row{"Host: a:x\r\n", ParseError::kBadHost},
                         Row{"Host: a:65536\r\n", ParseError::kBadHost},
                         Row{"Host: a:80:80\r\n", ParseError::kBadHost},
                         Row{"Host: :80\r\n", ParseError::kBadHost},
                         Row{"Host: [::1\r\n", ParseError::kBadHost},
                         Row{"Host: [::1]x\r\n", ParseError::kBadHost},
                         Row{"Host: []\r\n", ParseError::kBadHost},
                         Row{"Host: [::1%25lo]\r\n", ParseError::kBadHost},
                         Row{"Host: a%2eb\r\n", ParseError::kBadHost},
                         Row{"Host: http://a\r\n", ParseError::kBadHost},
                         Row{"Host: a:65535\r\n", ParseError::kNone},
                         Row{"Host: [2001:db8::1]:80\r\n", ParseError::kNone},
                         Row{"Host: my_host.local\r\n", ParseError::kNone},
                         Row{"Host: 127.0.0.1:8080\r\n", ParseError::kNone}}) {
    const std::string bytes = "GET / HTTP/1.1\r\n" + std::string(row.host_lines) + "\r\n";
    EXPECT_EQ(error_of(bytes), row.error) << row.host_lines;
  }
  EXPECT_EQ(error_of("GET / HTTP/1.0\r\n\r\n"), ParseError::kNone) << "1.0 has no Host to miss";
  EXPECT_EQ(error_of("GET / HTTP/1.0\r\nHost: a,b\r\n\r\n"), ParseError::kBadHost);
  EXPECT_EQ(error_of("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"), ParseError::kNone);
  EXPECT_EQ(error_of("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"), ParseError::kNone);
  EXPECT_EQ(error_of("CONNECT a:1 HTTP/1.1\r\nHost: a:2\r\n\r\n"), ParseError::kHostMismatch);
}

TEST(RequestParser, FramingTable) {
  struct Row {
    const char* fields;
    const char* expected;  // framing, or the error's name
  };
  for (const Row& row : {
           Row{"", "none"},
           Row{"Content-Length: 0\r\n", "length=0"},
           Row{"Content-Length: 5\r\n", "length=5"},
           Row{"Content-Length: 9223372036854775807\r\n", "length=9223372036854775807"},
           Row{"Content-Length: 9223372036854775808\r\n", "bad_content_length"},
           Row{"Content-Length: 18446744073709551621\r\n", "bad_content_length"},
           Row{"Content-Length: +5\r\n", "bad_content_length"},
           Row{"Content-Length: -0\r\n", "bad_content_length"},
           Row{"Content-Length: 05\r\n", "bad_content_length"},
           Row{"Content-Length: 0x5\r\n", "bad_content_length"},
           Row{"Content-Length: 5 5\r\n", "bad_content_length"},
           Row{"Content-Length: 5,5\r\n", "bad_content_length"},
           Row{"Content-Length: 5.0\r\n", "bad_content_length"},
           Row{"Content-Length: \r\n", "bad_content_length"},
           Row{"Content-Length: 5\r\nContent-Length: 5\r\n", "repeated_content_length"},
           Row{"Content-Length: 5\r\ncontent-length: 6\r\n", "repeated_content_length"},
           Row{"Transfer-Encoding: chunked\r\n", "chunked"},
           Row{"transfer-encoding:ChUnKeD\r\n", "chunked"},
           Row{"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
               "length_and_transfer_encoding"},
           Row{"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
               "length_and_transfer_encoding"},
           Row{"Content-Length: 5\r\nTransfer-Encoding: x\r\n", "length_and_transfer_encoding"},
           Row{"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
               "bad_transfer_encoding"},
           Row{"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
               "bad_transfer_encoding"},
           Row{"Transfer-Encoding: chunked, chunked\r\n", "bad_transfer_encoding"},
           Row{"Transfer-Encoding: chunked, identity\r\n", "bad_transfer_encoding"},
           Row{"Transfer-Encoding: chunked,\r\n", "bad_transfer_encoding"},
           Row{"Transfer-Encoding: ,chunked\r\n", "bad_transfer_encoding"},
           Row{"Transfer-Encoding: identity\r\n", "bad_transfer_encoding"},
           Row{"Transfer-Encoding: xchunked\r\n", "bad_transfer_encoding"},
           Row{"Transfer-Encoding: \"chunked\"\r\n", "bad_transfer_encoding"},
           Row{"Transfer-Encoding: chunked;q=1\r\n", "bad_transfer_encoding"},
           Row{"Transfer-Encoding: chunked chunked\r\n", "bad_transfer_encoding"},
           Row{"Transfer-Encoding:\r\n", "bad_transfer_encoding"},
           Row{"Transfer-Encoding: gzip, chunked\r\n", "unknown_transfer_coding"},
       }) {
    const std::string bytes = with_fields(row.fields);
    std::array<HeaderView, 100> storage;
    const HttpLimits limits;
    RequestParser parser(limits);
    RequestHead head;
    const HeadResult result = parser.parse_head(bytes, storage, head);
    const std::string got = result.status == ParseStatus::kComplete
                                ? framing_text(head.body)
                                : std::string(to_string(result.error));
    EXPECT_EQ(got, row.expected) << row.fields;
  }
  EXPECT_EQ(error_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
            ParseError::kTransferEncodingInHttp10);
  EXPECT_EQ(error_of("CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
            ParseError::kUnexpectedBody);
  EXPECT_EQ(error_of("TRACE / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"),
            ParseError::kUnexpectedBody);
}

TEST(RequestParser, ConnectionSemantics) {
  struct Row {
    const char* request;
    bool keep_alive;
    bool upgrade;
    bool expect;
    bool te;
  };
  for (const Row& row : {
           Row{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true, false, false, false},
           Row{"GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n", false, false, false,
               false},
           Row{"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n", false, false,
               false, false},
           Row{"GET / HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: close\r\n\r\n", false,
               false, false, false},
           Row{"GET / HTTP/1.0\r\n\r\n", false, false, false, false},
           Row{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true, false, false, false},
           Row{"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n"
               "Upgrade: websocket\r\n\r\n",
               true, true, false, false},
           Row{"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", true, false, false,
               false},
           Row{"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\r\n", true, false, false,
               false},
           Row{"GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", false, false,
               false, false},
           Row{"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
               "Upgrade: h2c\r\nHTTP2-Settings: AA\r\nContent-Length: 1\r\n\r\n",
               true, false, false, false},
           Row{"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n",
               true, false, true, false},
           Row{"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", true, false, false,
               false},
           Row{"POST / HTTP/1.0\r\nExpect: nonsense\r\nContent-Length: 1\r\n\r\n", false, false,
               false, false},
           Row{"GET / HTTP/1.1\r\nHost: a\r\nTE: deflate, Trailers\r\n\r\n", true, false, false,
               true},
           Row{"GET / HTTP/1.1\r\nHost: a\r\nTE: gzip\r\nTE: trailers\r\n\r\n", true, false, false,
               true},
       }) {
    std::array<HeaderView, 100> storage;
    const HttpLimits limits;
    RequestParser parser(limits);
    RequestHead head;
    ASSERT_EQ(parser.parse_head(std::string_view(row.request), storage, head).status,
              ParseStatus::kComplete)
        << row.request;
    EXPECT_EQ(head.keep_alive, row.keep_alive) << row.request;
    EXPECT_EQ(head.upgrade, row.upgrade) << row.request;
    EXPECT_EQ(head.expect_continue, row.expect) << row.request;
    EXPECT_EQ(head.te_trailers, row.te) << row.request;
  }
}

TEST(RequestParser, FieldsNamedByConnectionAreHopByHop) {
  const std::string bytes = with_fields(
      "Connection: close, x-secret\r\nX-Secret: 1\r\nX-Other: 2\r\nTE: trailers\r\nx-SECRET: "
      "3\r\n");
  EXPECT_EQ(in_one(RequestTranscript(), bytes),
            "request POST http a / 1.1 none close te\n  host: a\n"
            "  connection: close, x-secret  (hop)\n  x-secret: 1  (hop)\n  x-other: 2\n"
            "  te: trailers  (hop)\n  x-secret: 3  (hop)\nend\n");
}

TEST(RequestParser, OneEmptyLineBeforeARequestIsSkipped) {
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(in_one(RequestTranscript(), "\r\n" + request), in_one(RequestTranscript(), request));
  EXPECT_EQ(error_of("\r\n\r\n" + request), ParseError::kBadMethod);
  EXPECT_EQ(error_of("\n" + request), ParseError::kBadMethod);
  EXPECT_EQ(error_of("\rGET"), ParseError::kBadLineEnding);
}

TEST(RequestParser, PipelinedRequestsAreReadOneByOne) {
  const std::string bytes =
      "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
      "POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n"
      "GET /3 HTTP/1.1\r\nHost: a\r\n\r\n";
  RequestTranscript transcript;
  transcript.feed(bytes);
  EXPECT_EQ(transcript.complete(), 3);
  EXPECT_EQ(transcript.left_over(), "");
  EXPECT_NE(transcript.text().find("body abc\n"), std::string::npos);
  EXPECT_NE(transcript.text().find("body de\n"), std::string::npos);
}

HttpLimits small_limits() {
  HttpLimits limits;
  limits.head_bytes_max = 256;
  limits.header_count_max = 4;
  limits.uri_bytes_max = 32;
  limits.method_bytes_max = 8;
  return limits;
}

TEST(RequestParser, CapsHaveTheirOwnAnswers) {
  const HttpLimits limits = small_limits();
  const auto get = [](const std::string& target, const std::string& fields) {
    return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
  };
  EXPECT_EQ(error_of(get("/" + std::string(31, 'a'), ""), limits), ParseError::kNone);
  EXPECT_EQ(error_of(get("/" + std::string(32, 'a'), ""), limits), ParseError::kTargetTooLong);
  EXPECT_EQ(error_of("GET /" + std::string(32, 'a'), limits), ParseError::kTargetTooLong);
  EXPECT_EQ(error_of("MMMMMMMMM", limits), ParseError::kMethodTooLong);
  EXPECT_EQ(error_of(get("/", "a:b\r\na:b\r\na:b\r\n"), limits), ParseError::kNone);
  EXPECT_EQ(error_of(get("/", "a:b\r\na:b\r\na:b\r\na:b\r\n"), limits), ParseError::kTooManyFields);
  const std::size_t fixed = get("/", "X: \r\n").size();
  EXPECT_EQ(error_of(get("/", "X: " + std::string(256 - fixed, 'v') + "\r\n"), limits),
            ParseError::kNone);
  EXPECT_EQ(error_of(get("/", "X: " + std::string(257 - fixed, 'v') + "\r\n"), limits),
            ParseError::kHeadTooLarge);
  EXPECT_EQ(error_of(get("/", "X: " + std::string(300, 'v')), limits), ParseError::kHeadTooLarge);
}

// If the region is as large as the cap, the caller cannot read more: the result is an error.
TEST(RequestParser, AFullRegionIsNeverWaitedFor) {
  const HttpLimits limits = small_limits();
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(256, 'v');
  EXPECT_EQ(error_of(head.substr(0, 256), limits), ParseError::kHeadTooLarge);
  std::vector<HeaderView> storage(limits.header_count_max);
  RequestParser parser(limits);
  RequestHead out;
  EXPECT_EQ(parser.parse_head(std::string_view(head).substr(0, 255), storage, out).status,
            ParseStatus::kNeedMore);
}

TEST(RequestParser, LimitsAreChecked) {
  EXPECT_TRUE(HttpLimits{}.validate(32 * 1024).empty());
  EXPECT_TRUE(small_limits().validate(32 * 1024).empty());
  HttpLimits limits;
  limits.head_bytes_max = 40 * 1024;
  limits.header_count_max = 251;
  limits.uri_bytes_max = 0;
  limits.informational_max = 0;
  const ConfigErrors errors = limits.validate(32 * 1024);
  ASSERT_EQ(errors.size(), 4U);
  EXPECT_EQ(errors[0].key, "head_bytes_max");
  EXPECT_EQ(errors[0].value, "40960");
  EXPECT_EQ(errors[0].allowed, "256 to 32768");
}

/// Messages that together reach every state: valid, refused early, refused late, over a cap.
std::vector<std::string> sample_messages() {
  const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  const std::string post_chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  return {
      get,
      "\r\nGET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /y HTTP/1.0\r\n\r\n",
      post + "Content-Length: 5\r\nX-Long-Enough-To-Be-Wide: and so is this\t \r\n\r\nhello" + get,
      post_chunked + "5;a=b\r\nhello\r\n00A\r\n0123456789\r\n0\r\nX-Sum: 1\r\nX-Other:2\r\n\r\n" +
          get,
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n",
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHost: b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n\x81\x05hello",
      "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n\x16\x03",
      "GET /" + std::string(40, 'u') + " HTTP/1.1\r\n",
      "GET / HTTP/1.1\r\n" + std::string(300, 'h') + ": x\r\n",
      "GET / HTTP/1.1\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nBad : x\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n fold\r\n\r\n",
      "GET / HTTP/1.1\nHost: a\n\n",
      "GET / HTTP/1.1\r\nHost: a\r\n\rX",
      "GET / HTTP/1.1\r\nX: y\r\n\r\n",
      "GET / HTTP/3.0\r\n\r\n",
      "\x16\x03\x01",
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
  };
}

// The result for a prefix does not depend on how it was split: checked for every prefix and cut.
TEST(RequestParser, EveryCutGivesTheSameEvents) {
  for (const HttpLimits& limits : {HttpLimits{}, small_limits()}) {
    for (const std::string& message : sample_messages()) {
      const std::string whole = in_one(RequestTranscript(limits), message);
      EXPECT_EQ(byte_by_byte(RequestTranscript(limits), message), whole) << message;
      for (std::size_t cut = 0; cut <= message.size(); ++cut)
        ASSERT_EQ(cut_at(RequestTranscript(limits), message, cut), whole)
            << message << " cut at " << cut;
      for (std::size_t end = 0; end <= message.size(); ++end) {
        const std::string_view prefix = std::string_view(message).substr(0, end);
        ASSERT_EQ(byte_by_byte(RequestTranscript(limits), prefix),
                  in_one(RequestTranscript(limits), prefix))
            << prefix;
      }
    }
  }
}

TEST(RequestParser, RandomPiecesOfRandomDamageGiveTheSameEvents) {
  Rng rng(7);
  const std::vector<std::string> messages = sample_messages();
  for (int round = 0; round < 3000; ++round) {
    std::string message = messages[rng.below(messages.size())];
    for (std::uint64_t damage = rng.below(3); damage > 0; --damage) {
      const std::size_t at = rng.below(message.size());
      constexpr std::string_view kNasty("\r\n\0 \t:,;0aA\x7f\x80", 13);
      message[at] = kNasty[rng.below(kNasty.size())];
    }
    RequestTranscript pieces;
    for (std::size_t at = 0; at < message.size();) {
      const std::size_t size = 1 + rng.below(20);
      pieces.feed(std::string_view(message).substr(at, size));
      at += size;
    }
    ASSERT_EQ(pieces.text(), in_one(RequestTranscript(), message)) << message;
  }
}

// The cursor never goes back: a head that arrives byte by byte costs at most two passes.
TEST(RequestParser, WaitingCostsNoRescan) {
  const HttpLimits limits;
  std::vector<HeaderView> storage(limits.header_count_max);
  RequestParser parser(limits);
  RequestHead head;
  std::string bytes = "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(8000, 'v');
  ASSERT_EQ(parser.parse_head(bytes, storage, head).status, ParseStatus::kNeedMore);
  EXPECT_TRUE(parser.started());
  // Checked bytes are not read again until the head is complete: damage there is not noticed.
  std::string damaged = bytes;
  std::fill(damaged.begin(), damaged.begin() + 8000, '\0');
  damaged += "more";
  EXPECT_EQ(parser.parse_head(damaged, storage, head).status, ParseStatus::kNeedMore);
  bytes += "more\r\n\r\n";
  ASSERT_EQ(parser.parse_head(bytes, storage, head).status, ParseStatus::kComplete);
  EXPECT_EQ(head.headers[1].value.size(), 8004U);
}

TEST(RequestParser, ResetForgetsAHalfReadHead) {
  const HttpLimits limits;
  std::vector<HeaderView> storage(limits.header_count_max);
  RequestParser parser(limits);
  RequestHead head;
  ASSERT_EQ(parser.parse_head(std::string_view("GET /old HT"), storage, head).status,
            ParseStatus::kNeedMore);
  parser.reset();
  const std::string_view fresh = "GET /new HTTP/1.1\r\nHost: a\r\n\r\n";
  ASSERT_EQ(parser.parse_head(fresh, storage, head).status, ParseStatus::kComplete);
  EXPECT_EQ(head.meta.path, "/new");
}

}  // namespace
}  // namespace weir::inline v0::http::h1
