#include "weir/experimental/http/h1/response_parser.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "http/h1/transcript_testing.h"

namespace weir::inline v0::http::h1 {
namespace {

constexpr ResponseContext kToGet{Method::kGet, false};
constexpr ResponseContext kToHead{Method::kHead, false};
constexpr ResponseContext kToConnect{Method::kConnect, false};
constexpr ResponseContext kToUpgrade{Method::kGet, true};

/// The first line of the transcript: the head's meaning or the error.
std::string meaning(std::string_view bytes, ResponseContext context = kToGet) {
  const std::string text = in_one(ResponseTranscript(context), bytes);
  return text.substr(0, text.find('\n'));
}

TEST(ResponseParser, StatusLineTable) {
  struct Row {
    std::string line;
    const char* expected;
  };
  const std::vector<Row> rows = {
      {"HTTP/1.1 200 OK", "response 200 OK 1.1 until-close close"},
      {"HTTP/1.0 200 OK", "response 200 OK 1.0 until-close close"},
      {"HTTP/1.1 404 ", "response 404  1.1 until-close close"},
      {"HTTP/1.1 404", "response 404  1.1 until-close close"},
      {"HTTP/1.1 599 R\xc3\xa4son \t!", "response 599 R\xc3\xa4son \t! 1.1 until-close close"},
      {"HTTP/1.1 600 X", "error 502 bad_status_code"},
      {"HTTP/1.1 099 X", "error 502 bad_status_code"},
      {"HTTP/1.1 20 X", "error 502 bad_status_code"},
      {"HTTP/1.1 2000 X", "error 502 bad_status_line"},
      {"HTTP/1.1 +20 X", "error 502 bad_status_code"},
      {"HTTP/1.1  200 X", "error 502 bad_status_code"},
      {"HTTP/1.1\t200 X", "error 502 bad_status_line"},
      {"HTTP/2.0 200 OK", "error 505 unsupported_version"},
      {"HTTP/1.2 200 OK", "error 505 unsupported_version"},
      {"http/1.1 200 OK", "error 502 bad_status_line"},
      {"ICY 200 OK    ", "error 502 bad_status_line"},
      {"\r\nHTTP/1.1 200 OK", "error 502 bad_status_line"},
      {"HTTP/1.1 200 O\x01K", "error 502 bad_status_line"},
      {"HTTP/1.1 200 OK\rX: y", "error 400 bad_line_ending"},
  };
  for (const Row& row : rows) EXPECT_EQ(meaning(row.line + "\r\n\r\n"), row.expected) << row.line;
  EXPECT_EQ(meaning("HTTP/1.1 200 OK\n\n"), "error 400 bad_line_ending");
}

TEST(ResponseParser, FramingTable) {
  struct Row {
    ResponseContext context;
    const char* head;
    const char* expected;
  };
  const std::vector<Row> rows = {
      {kToGet, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "response 200 OK 1.1 length=5 keep"},
      {kToGet, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", "response 200 OK 1.1 length=0 keep"},
      {kToGet, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n",
       "response 200 OK 1.1 chunked keep"},
      {kToGet, "HTTP/1.1 200 OK\r\n", "response 200 OK 1.1 until-close close"},
      {kToGet, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n",
       "response 200 OK 1.1 length=5 close"},
      {kToGet, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n", "response 200 OK 1.0 length=5 close"},
      {kToGet, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n",
       "response 200 OK 1.0 length=5 keep"},
      {kToGet, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n",
       "response 200 OK 1.0 until-close close"},
      {kToHead, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "response 200 OK 1.1 none keep"},
      {kToHead, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n",
       "response 200 OK 1.1 none keep"},
      {kToHead, "HTTP/1.1 200 OK\r\n", "response 200 OK 1.1 none keep"},
      {kToGet, "HTTP/1.1 204 X\r\n", "response 204 X 1.1 none keep"},
      {kToGet, "HTTP/1.1 204 X\r\nContent-Length: 0\r\n", "response 204 X 1.1 none keep"},
      {kToGet, "HTTP/1.1 204 X\r\nContent-Length: 1\r\n", "error 400 unexpected_body"},
      {kToGet, "HTTP/1.1 204 X\r\nTransfer-Encoding: chunked\r\n", "error 400 unexpected_body"},
      {kToGet, "HTTP/1.1 304 X\r\nContent-Length: 9\r\n", "response 304 X 1.1 none keep"},
      {kToGet, "HTTP/1.1 304 X\r\n", "response 304 X 1.1 none keep"},
      {kToConnect, "HTTP/1.1 200 X\r\n", "response 200 X 1.1 none close tunnel"},
      {kToConnect, "HTTP/1.1 200 X\r\nContent-Length: 5\r\n", "error 400 unexpected_body"},
      {kToConnect, "HTTP/1.1 407 X\r\nContent-Length: 5\r\n", "response 407 X 1.1 length=5 keep"},
      {kToGet, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n",
       "error 400 repeated_content_length"},
      {kToGet, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
       "error 400 length_and_transfer_encoding"},
      {kToGet, "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n",
       "error 400 transfer_encoding_in_http10"},
      {kToGet, "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n",
       "error 501 unknown_transfer_coding"},
      {kToHead, "HTTP/1.1 200 OK\r\nContent-Length: x\r\n", "error 400 bad_content_length"},
      {kToGet, "HTTP/1.1 100 C\r\nContent-Length: 0\r\n", "error 400 unexpected_body"},
      {kToUpgrade, "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n",
       "response 101 S 1.1 none close tunnel"},
      {kToGet, "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n",
       "error 502 unexpected_switch"},
      {kToUpgrade, "HTTP/1.1 101 S\r\nUpgrade: x\r\n", "error 502 unexpected_switch"},
      {kToUpgrade, "HTTP/1.1 101 S\r\nConnection: upgrade\r\n", "error 502 unexpected_switch"},
      {kToUpgrade, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", "response 200 OK 1.1 length=2 keep"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(meaning(std::string(row.head) + "\r\n", row.context), row.expected) << row.head;
}

TEST(ResponseParser, InterimResponsesComeBeforeTheFinalOne) {
  const std::string bytes =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
  EXPECT_EQ(in_one(ResponseTranscript(), bytes),
            "response 100 Continue 1.1 none keep interim\n"
            "response 103 Early Hints 1.1 none keep interim\n  link: </a>\n"
            "response 200 OK 1.1 length=2 keep\n  content-length: 2\nbody hi\nend\n");
}

TEST(ResponseParser, AFloodOfInterimResponsesIsRefused) {
  HttpLimits limits;
  limits.informational_max = 3;
  ResponseTranscript transcript(kToGet, limits);
  for (int i = 0; i < 3; ++i) transcript.feed("HTTP/1.1 102 P\r\n\r\n");
  EXPECT_FALSE(transcript.stopped());
  transcript.feed("HTTP/1.1 102 P\r\n\r\n");
  EXPECT_TRUE(transcript.text().ends_with("error 502 too_many_informational\n"));
}

TEST(ResponseParser, TheCountOfInterimResponsesIsPerRequest) {
  HttpLimits limits;
  limits.informational_max = 1;
  ResponseTranscript transcript(kToGet, limits);
  for (int i = 0; i < 3; ++i)
    transcript.feed("HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_FALSE(transcript.stopped());
  EXPECT_EQ(transcript.complete(), 3);
}

TEST(ResponseParser, UntilCloseEndsWithTheConnection) {
  ResponseTranscript transcript;
  transcript.feed("HTTP/1.1 200 OK\r\n\r\nsome");
  transcript.feed(" text");
  EXPECT_EQ(transcript.complete(), 0);
  transcript.close();
  EXPECT_TRUE(transcript.text().ends_with("body some text\nend\n"));
}

TEST(ResponseParser, ACutBodyIsAnError) {
  for (const char* head : {"Content-Length: 5", "Transfer-Encoding: chunked"}) {
    ResponseTranscript transcript;
    transcript.feed("HTTP/1.1 200 OK\r\n" + std::string(head) + "\r\n\r\n5\r\n");
    transcript.close();
    EXPECT_TRUE(transcript.text().ends_with("error 400 truncated\n")) << transcript.text();
  }
}

TEST(ResponseParser, HugeHeadsOfUpstreamsAreRefused) {
  EXPECT_EQ(meaning("HTTP/1.1 200 OK\r\nX: " + std::string(20000, 'x')),
            "error 431 head_too_large");
  EXPECT_EQ(meaning("HTTP/1.1 200 " + std::string(20000, 'x')), "error 431 head_too_large");
  const std::string full = "HTTP/1.1 200 OK\r\nX: " + std::string(16384 - 20, 'x');
  EXPECT_EQ(meaning(full), "error 431 head_too_large") << "a full region is not waited for";
  EXPECT_EQ(meaning(full.substr(1)), "error 502 bad_status_line");
  EXPECT_EQ(meaning(full.substr(0, 16383)), "");
  std::string many = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 101; ++i) many += "a: b\r\n";
  EXPECT_EQ(meaning(many), "error 431 too_many_fields");
}

TEST(ResponseParser, EveryCutGivesTheSameEvents) {
  const std::string body = "helloHTTP/1.1 204 \r\n\r\n";
  const std::string interim = "HTTP/1.1 100 Continue\r\n\r\n";
  const std::vector<std::string> messages = {
      interim + "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Long-Name-Here: and a value\r\n\r\n" +
          body,
      "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n",
      "HTTP/1.0 200 OK\r\n\r\nuntil the end",
      "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
      "HTTP/1.1 2x0 OK\r\n",
      "HTTP/1.1 200 OK\rX",
      "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nraw",
  };
  for (const std::string& message : messages) {
    const std::string whole = in_one(ResponseTranscript(kToUpgrade), message);
    EXPECT_EQ(byte_by_byte(ResponseTranscript(kToUpgrade), message), whole);
    for (std::size_t end = 0; end <= message.size(); ++end) {
      ASSERT_EQ(cut_at(ResponseTranscript(kToUpgrade), message, end), whole) << message << end;
      const std::string_view prefix = std::string_view(message).substr(0, end);
      ASSERT_EQ(byte_by_byte(ResponseTranscript(kToUpgrade), prefix),
                in_one(ResponseTranscript(kToUpgrade), prefix));
    }
  }
}

}  // namespace
}  // namespace weir::inline v0::http::h1
