#include "weir/experimental/http/h1/serializer.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/allocation_probe.h"
#include "http/h1/transcript_testing.h"

namespace weir::inline v0::http::h1 {
namespace {

template <class F>
std::string written(F&& fill) {
  std::array<char, 512> buffer;
  HeadWriter writer(buffer);
  fill(writer);
  const auto size = writer.end();
  return size ? std::string(buffer.data(), *size)
              : "error " + std::to_string(static_cast<int>(size.error()));
}

template <class F>
WriteError write_error_of(F&& fill) {
  std::array<char, 512> buffer;
  HeadWriter writer(buffer);
  fill(writer);
  const auto size = writer.end();
  EXPECT_FALSE(size.has_value());
  return size ? WriteError::kDoesNotFit : size.error();
}

TEST(HeadWriter, WritesAResponseHead) {
  EXPECT_EQ(written([](HeadWriter& w) {
              w.status(200);
              w.fields("server: weir\r\nx-a: b\r\n");
              w.date("Sun, 06 Nov 1994 08:49:37 GMT");
              w.field("content-type", "text/plain");
              w.field("x-count", 18446744073709551615U);
              w.field("x-empty", "");
              w.content_length(128);
            }),
            "HTTP/1.1 200 OK\r\nserver: weir\r\nx-a: b\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "content-type: text/plain\r\nx-count: 18446744073709551615\r\nx-empty: \r\n"
            "content-length: 128\r\n\r\n");
  EXPECT_EQ(written([](HeadWriter& w) {
              w.status(503, {}, Version::k10);
              w.connection_close();
            }),
            "HTTP/1.0 503 Service Unavailable\r\nconnection: close\r\n\r\n");
  EXPECT_EQ(written([](HeadWriter& w) {
              w.status(299, "Fine by me");
              w.connection_keep_alive();
              w.chunked();
            }),
            "HTTP/1.1 299 Fine by me\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n"
            "\r\n");
  EXPECT_EQ(written([](HeadWriter& w) { w.status(599); }), "HTTP/1.1 599 \r\n\r\n");
}

TEST(HeadWriter, WritesARequestHead) {
  EXPECT_EQ(written([](HeadWriter& w) {
              w.request("POST", "/a?b");
              w.field("host", "example.org");
              w.content_length(0);
            }),
            "POST /a?b HTTP/1.1\r\nhost: example.org\r\ncontent-length: 0\r\n\r\n");
}

TEST(HeadWriter, NothingBreaksOutOfItsPlace) {
  const auto field = [](std::string_view name, std::string_view value) {
    return [name = std::string(name), value = std::string(value)](HeadWriter& w) {
      w.status(200);
      w.field(name, value);
    };
  };
  for (unsigned c = 0; c < 256; ++c) {
    const std::string byte(1, static_cast<char>(c));
    if (!is_valid_field_name(byte)) {
      EXPECT_EQ(write_error_of(field("x" + byte + "y", "v")), WriteError::kBadName) << c;
    }
    if (!is_valid_field_value(byte)) {
      EXPECT_EQ(write_error_of(field("x", "v" + byte + "w")), WriteError::kBadValue) << c;
    }
  }
  EXPECT_EQ(write_error_of(field("", "v")), WriteError::kBadName);
  EXPECT_EQ(write_error_of(field("x", "v\r\nset-cookie: a")), WriteError::kBadValue);
  for (const auto& line : std::vector<std::pair<std::string, std::string>>{
           {"GET", "/a b"}, {"GET", "/\r\n"}, {"GET", ""}, {"G T", "/"}, {"", "/"}, {"GET", "/#"}})
    EXPECT_EQ(write_error_of([&](HeadWriter& w) { w.request(line.first, line.second); }),
              WriteError::kBadStartLine);
  for (const unsigned code : {0U, 99U, 600U, 1000U})
    EXPECT_EQ(write_error_of([&](HeadWriter& w) { w.status(code); }), WriteError::kBadStartLine);
  EXPECT_EQ(write_error_of([](HeadWriter& w) { w.status(200, "O\nK"); }),
            WriteError::kBadStartLine);
}

TEST(HeadWriter, AHeadBeginsWithOneStartLine) {
  EXPECT_EQ(write_error_of([](HeadWriter& w) { w.field("a", "b"); }), WriteError::kBadStartLine);
  EXPECT_EQ(write_error_of([](HeadWriter& w) { w.fields("a: b\r\n"); }), WriteError::kBadStartLine);
  EXPECT_EQ(write_error_of([](HeadWriter&) {}), WriteError::kBadStartLine);
  EXPECT_EQ(write_error_of([](HeadWriter& w) {
              w.status(200);
              w.status(200);
            }),
            WriteError::kBadStartLine);
}

TEST(HeadWriter, FramingIsGivenOnceAndByItsOwnCalls) {
  const auto fails = [](auto&& fill) {
    EXPECT_EQ(write_error_of([&](HeadWriter& w) {
                w.status(200);
                fill(w);
              }),
              WriteError::kBadFraming);
  };
  fails([](HeadWriter& w) { w.field("Content-Length", "5"); });
  fails([](HeadWriter& w) { w.field("transfer-encoding", "chunked"); });
  fails([](HeadWriter& w) {
    w.content_length(5);
    w.chunked();
  });
  fails([](HeadWriter& w) {
    w.content_length(5);
    w.content_length(5);
  });
  for (const unsigned code : {100U, 101U, 204U}) {
    EXPECT_EQ(write_error_of([&](HeadWriter& w) {
                w.status(code);
                w.content_length(0);
              }),
              WriteError::kBadFraming);
  }
  EXPECT_EQ(write_error_of([](HeadWriter& w) {
              w.status(200, {}, Version::k10);
              w.chunked();
            }),
            WriteError::kBadFraming)
      << "HTTP/1.0 does not know chunked";
}

TEST(HeadWriter, SaysWhenItDoesNotFitAndNeverWritesBeyond) {
  const auto fill = [](HeadWriter& w) {
    w.status(404);
    w.field("content-type", "text/plain");
    w.fields("server: weir\r\n");
    w.content_length(12345);
  };
  const std::string whole = written(fill);
  for (std::size_t room = 0; room <= whole.size(); ++room) {
    std::vector<char> buffer(room);  // exact: the address sanitizer finds an overrun
    HeadWriter writer(buffer);
    fill(writer);
    const auto size = writer.end();
    if (room < whole.size()) {
      ASSERT_FALSE(size.has_value()) << room;
      EXPECT_EQ(size.error(), WriteError::kDoesNotFit);
    } else {
      ASSERT_TRUE(size.has_value());
      EXPECT_EQ(std::string(buffer.data(), *size), whole);
    }
  }
}

TEST(HeadWriter, TheFirstErrorStays) {
  EXPECT_EQ(write_error_of([](HeadWriter& w) {
              w.status(200);
              w.field("bad name", "x");
              w.field("x", "\n");
              w.content_length(1);
            }),
            WriteError::kBadName);
}

TEST(HeadWriter, WhatItWritesIsReadBack) {
  const std::string head = written([](HeadWriter& w) {
    w.status(207, "Multi");
    w.field("x-a", "b\tc \xff");
    w.chunked();
  });
  std::array<char, 64> trailer_buffer;
  const std::vector<HeaderView> trailers = {{"grpc-status", "0"}, {"x-sum", "abc"}};
  const auto tail = write_last_chunk(trailer_buffer, trailers);
  ASSERT_TRUE(tail.has_value());
  std::array<char, 64> chunk_buffer;
  std::memcpy(chunk_buffer.data() + kChunkHeadRoom, "hello", 5);
  const auto chunk = frame_chunk(chunk_buffer, 5);
  const std::string bytes =
      head + std::string(chunk.data(), chunk.size()) + std::string(trailer_buffer.data(), *tail);
  EXPECT_EQ(in_one(ResponseTranscript(), bytes),
            "response 207 Multi 1.1 chunked keep\n  x-a: b\tc \xff\n"
            "  transfer-encoding: chunked  (hop)\nbody hello\ntrailers\n  grpc-status: 0\n"
            "  x-sum: abc\nend\n");
}

TEST(ChunkFraming, SizeLineStandsRightBeforeThePayload) {
  for (const std::size_t payload : {1U, 15U, 16U, 255U, 256U, 4096U, 65535U, 65536U, 1U << 20U}) {
    std::vector<char> buffer(kChunkHeadRoom + payload + kChunkTailRoom, 'p');
    const auto framed = frame_chunk(buffer, payload);
    char expected[32];
    snprintf(expected, sizeof expected, "%zx\r\n", payload);
    const std::string text(framed.data(), framed.size());
    EXPECT_EQ(text, expected + std::string(payload, 'p') + "\r\n");
    EXPECT_EQ(framed.data() + framed.size(), buffer.data() + buffer.size());

    std::array<char, kChunkHeadRoom> head;
    const std::size_t size = write_chunk_head(head, static_cast<std::uint32_t>(payload));
    EXPECT_EQ(std::string(head.data(), size), expected);
  }
  std::array<char, kChunkHeadRoom> head;
  EXPECT_EQ(write_chunk_head(head, UINT32_MAX), kChunkHeadRoom);
  EXPECT_EQ(std::string(head.data(), head.size()), "ffffffff\r\n");
}

TEST(ChunkFramingDeathTest, AnEmptyChunkWouldEndTheBody) {
  std::array<char, 32> buffer{};
  EXPECT_DEATH((void)frame_chunk(buffer, 0), "payload");
  EXPECT_DEATH((void)frame_chunk(buffer, 21), "buffer");
}

TEST(LastChunk, Trailers) {
  std::array<char, 32> buffer;
  const auto none = write_last_chunk(buffer, {});
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(std::string_view(buffer.data(), *none), kLastChunk);
  const std::vector<HeaderView> forbidden = {{"Content-Length", "5"}};
  EXPECT_EQ(write_last_chunk(buffer, forbidden).error(), WriteError::kBadFraming);
  const std::vector<HeaderView> broken = {{"x", "a\r\n\r\n"}};
  EXPECT_EQ(write_last_chunk(buffer, broken).error(), WriteError::kBadValue);
  const std::string long_value(40, 'v');
  const std::vector<HeaderView> large = {{"x", long_value}};
  EXPECT_EQ(write_last_chunk(buffer, large).error(), WriteError::kDoesNotFit);
  EXPECT_EQ(write_last_chunk(std::span<char>(buffer).first(2), {}).error(),
            WriteError::kDoesNotFit);
}

TEST(ReasonPhrase, EachKnownStatusHasItsOwn) {
  std::set<std::string_view> phrases;
  for (unsigned status = 0; status < 1000; ++status) {
    const std::string_view phrase = reason_phrase(status);
    if (phrase.empty()) continue;
    EXPECT_TRUE(phrases.insert(phrase).second) << status;
    EXPECT_TRUE(is_valid_field_value(phrase)) << status;
  }
  EXPECT_EQ(phrases.size(), 47U);
  EXPECT_EQ(reason_phrase(299), "");
}

TEST(ReasonPhrase, KnowsWhatWeirAnswers) {
  EXPECT_EQ(reason_phrase(417), "Expectation Failed");
  EXPECT_EQ(reason_phrase(503), "Service Unavailable");
  for (unsigned i = 1; i < static_cast<unsigned>(ParseError::kCount); ++i)
    EXPECT_FALSE(reason_phrase(status_of(static_cast<ParseError>(i))).empty()) << i;
  for (const unsigned status : {408U, 413U, 429U, 502U, 503U, 504U})
    EXPECT_FALSE(reason_phrase(status).empty()) << status;
}

// Reads and answers one request without any allocation from the heap.
TEST(Codec, AllocatesNothing) {
  const std::string bytes =
      "POST / HTTP/1.1\r\nHost: a\r\nConnection: x-b\r\nX-B: c\r\nTransfer-Encoding: chunked\r\n"
      "\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n";
  const HttpLimits limits;
  std::array<HeaderView, 100> storage;
  std::array<char, 256> out;
  RequestHead head;
  std::size_t content = 0;
  const std::size_t before = allocations_so_far();
  RequestParser parser(limits);
  const HeadResult result = parser.parse_head(bytes, storage, head);
  BodyDecoder decoder(head.body, limits);
  std::span<const char> rest = std::span<const char>(bytes).subspan(result.consumed);
  while (!decoder.done()) {
    const BodyStep step = decoder.next(rest, storage);
    rest = rest.subspan(step.consumed);
    content += step.chunk.len;
  }
  HeadWriter writer(out);
  writer.status(200);
  writer.content_length(content);
  const auto size = writer.end();
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_EQ(content, 5U);
  EXPECT_TRUE(size.has_value());
}

}  // namespace
}  // namespace weir::inline v0::http::h1
