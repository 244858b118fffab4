#include "weir/experimental/http/h1/body_decoder.h"

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::http::h1 {
namespace {

/// Feeds pieces of the given size from exact-size copies; keeps the bytes that are not consumed.
class Body {
 public:
  explicit Body(BodyFraming framing, const HttpLimits& limits = {})
      : limits_(limits), storage_(limits.trailer_count_max), decoder_(framing, limits_) {}

  void feed(std::string_view bytes, std::size_t piece) {
    for (std::size_t at = 0; at < bytes.size() && error == ParseError::kNone; at += piece) {
      pending_ += bytes.substr(at, piece);
      drain();
    }
  }
  void drain() {
    for (;;) {
      const std::vector<char> exact(pending_.begin(), pending_.end());
      const BodyStep step = decoder_.next(exact, storage_);
      ASSERT_LE(step.consumed, exact.size());
      take(step);
      pending_.erase(0, step.consumed);
      if (step.event == BodyEvent::kNeedMore || step.event == BodyEvent::kError) return;
      if (decoder_.done()) return;
    }
  }
  void take(const BodyStep& step) {
    if (step.event == BodyEvent::kError) error = step.error;
    if (step.event == BodyEvent::kTrailers)
      for (const HeaderView& field : decoder_.trailers())
        trailers += std::string(field.name) + "=" + std::string(field.value) + ";";
    if (step.event != BodyEvent::kData) return;
    ++pieces;
    content += step.chunk.text();
    lasts += step.chunk.last() ? 1 : 0;
  }
  [[nodiscard]] const std::string& left() const { return pending_; }
  [[nodiscard]] BodyDecoder& decoder() { return decoder_; }

  std::string content;
  std::string trailers;
  ParseError error = ParseError::kNone;
  int pieces = 0;
  int lasts = 0;

 private:
  HttpLimits limits_;
  std::vector<HeaderView> storage_;
  std::string pending_;
  BodyDecoder decoder_;
};

constexpr BodyFraming kChunked{BodyKind::kChunked, 0};

ParseError chunked_error(std::string_view bytes, const HttpLimits& limits = {}) {
  Body whole(kChunked, limits);
  whole.feed(bytes, bytes.size());
  Body slow(kChunked, limits);
  slow.feed(bytes, 1);
  EXPECT_EQ(whole.error, slow.error) << bytes;
  EXPECT_EQ(whole.content, slow.content) << bytes;
  EXPECT_EQ(whole.lasts, slow.lasts) << bytes;
  return whole.error;
}

TEST(BodyDecoder, NoBodyEndsAtOnce) {
  for (const BodyFraming framing : {BodyFraming{}, BodyFraming{BodyKind::kLength, 0}}) {
    Body body(framing);
    EXPECT_FALSE(body.decoder().done());
    body.drain();
    EXPECT_EQ(body.lasts, 1);
    EXPECT_EQ(body.content, "");
    EXPECT_TRUE(body.decoder().done());
  }
}

TEST(BodyDecoder, LengthStopsAtItsLastByte) {
  for (const std::size_t piece : {1U, 3U, 100U}) {
    Body body({BodyKind::kLength, 5});
    body.feed("hello", piece);
    EXPECT_EQ(body.content, "hello");
    EXPECT_EQ(body.lasts, 1);
    EXPECT_EQ(body.decoder().content_bytes(), 5U);
    EXPECT_EQ(body.decoder().remaining(), 0U);
    body.feed("GET", 3);
    EXPECT_EQ(body.left(), "GET");
  }
}

TEST(BodyDecoder, ChunkedGivesTheContentAndTheTrailers) {
  const std::string bytes =
      "5\r\nhello\r\n1;name=value;q=\"x y\"\r\n \r\n0005\r\nworld\r\n00;last\r\nX-Sum:  7 \r\n"
      "grpc-status: 0\r\n\r\nGET";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    Body body(kChunked);
    body.feed(bytes, piece);
    EXPECT_EQ(body.content, "hello world") << piece;
    EXPECT_EQ(body.trailers, "X-Sum=7;grpc-status=0;") << piece;
    EXPECT_EQ(body.lasts, 1) << piece;
    EXPECT_TRUE(body.decoder().done()) << piece;
    EXPECT_TRUE(std::string("GET").starts_with(body.left()) || piece > 1) << body.left();
  }
}

TEST(BodyDecoder, NothingIsCopied) {
  const std::string bytes = "5\r\nhello\r\n0\r\nA: b\r\n\r\n";
  const HttpLimits limits;
  std::array<HeaderView, 32> storage;
  BodyDecoder decoder(kChunked, limits);
  std::span<const char> rest(bytes);
  const BodyStep data = decoder.next(rest, storage);
  EXPECT_EQ(reinterpret_cast<const char*>(data.chunk.data), bytes.data() + 3);
  rest = rest.subspan(data.consumed);
  const BodyStep trailers = decoder.next(rest, storage);
  ASSERT_EQ(trailers.event, BodyEvent::kTrailers);
  EXPECT_EQ(decoder.trailers()[0].name.data(), bytes.data() + 13);
  rest = rest.subspan(trailers.consumed);
  EXPECT_TRUE(rest.empty());
  EXPECT_TRUE(decoder.next(rest, storage).chunk.last());
}

TEST(BodyDecoder, ChunkedTable) {
  struct Row {
    std::string bytes;
    ParseError error;
  };
  const std::vector<Row> rows = {
      {"0\r\n\r\n", ParseError::kNone},
      {"a\r\n0123456789\r\n0\r\n\r\n", ParseError::kNone},
      {"A\r\n0123456789\r\n0\r\n\r\n", ParseError::kNone},
      {"0000000000000000\r\n\r\n", ParseError::kNone},
      {"00000000000000000\r\n\r\n", ParseError::kBadChunkSize},
      {"7fffffffffffffff\r\n", ParseError::kNone},
      {"8000000000000000\r\n", ParseError::kBadChunkSize},
      {"ffffffffffffffff\r\n", ParseError::kBadChunkSize},
      {"10000000000000005\r\n", ParseError::kBadChunkSize},
      {"\r\n", ParseError::kBadChunkSize},
      {";x\r\n", ParseError::kBadChunkSize},
      {"g\r\n", ParseError::kBadChunkSize},
      {"+1\r\na\r\n", ParseError::kBadChunkSize},
      {"-1\r\na\r\n", ParseError::kBadChunkSize},
      {"0x1\r\na\r\n", ParseError::kBadChunkSize},
      {" 1\r\na\r\n", ParseError::kBadChunkSize},
      {"1 \r\na\r\n", ParseError::kBadChunkSize},
      {"1\t;x\r\na\r\n", ParseError::kBadChunkSize},
      {"1_0\r\n", ParseError::kBadChunkSize},
      {"1\na\r\n", ParseError::kBadLineEnding},
      {"1\rX", ParseError::kBadLineEnding},
      {"1;x\na\r\n", ParseError::kBadLineEnding},
      {"1;x\rX", ParseError::kBadLineEnding},
      {std::string("1;x\0\r\na\r\n", 9), ParseError::kBadChunkSize},
      {"1\r\nab\r\n", ParseError::kBadChunkEnd},
      {"1\r\na\n", ParseError::kBadChunkEnd},
      {"1\r\na\rX", ParseError::kBadChunkEnd},
      {"1\r\na0\r\n\r\n", ParseError::kBadChunkEnd},
      {"0\r\n\n", ParseError::kBadLineEnding},
      {"0\r\n\rX", ParseError::kBadLineEnding},
      {"0\r\nGET / HTTP/1.1\r\n", ParseError::kBadFieldName},
      {"0\r\nA: b\n\r\n", ParseError::kBadLineEnding},
      {"0\r\nA: b\r\n c\r\n\r\n", ParseError::kObsoleteFold},
      {"0\r\nA : b\r\n\r\n", ParseError::kBadFieldName},
      {"0\r\nContent-Length: 5\r\n\r\n", ParseError::kForbiddenTrailer},
      {"0\r\ntransfer-encoding: chunked\r\n\r\n", ParseError::kForbiddenTrailer},
      {"0\r\nX: y\r\nAuthorization: z\r\n\r\n", ParseError::kForbiddenTrailer},
      {"0\r\nContent_Length: 5\r\n\r\n", ParseError::kBadFieldName},
      {"0\r\nX-Weir-Actor: root\r\n\r\n", ParseError::kForbiddenTrailer},
  };
  for (const Row& row : rows) {
    const ParseError error = chunked_error(row.bytes);
    EXPECT_EQ(error, row.error) << row.bytes << ": " << to_string(error);
  }
}

TEST(BodyDecoder, ExtensionsAreBoundedPerChunkAndPerMessage) {
  HttpLimits limits;
  limits.chunk_extension_bytes_max = 8;
  limits.message_extension_bytes_max = 12;
  const auto chunk = [](std::size_t extension) {
    return "1;" + std::string(extension, 'x') + "\r\na\r\n";
  };
  EXPECT_EQ(chunked_error(chunk(8), limits), ParseError::kNone);
  EXPECT_EQ(chunked_error(chunk(9), limits), ParseError::kChunkExtensionTooLong);
  EXPECT_EQ(chunked_error("1;" + std::string(9, 'x'), limits), ParseError::kChunkExtensionTooLong);
  EXPECT_EQ(chunked_error(chunk(8) + chunk(4), limits), ParseError::kNone);
  EXPECT_EQ(chunked_error(chunk(8) + chunk(5), limits), ParseError::kChunkExtensionTooLong);
  limits.chunk_extension_bytes_max = 0;
  EXPECT_EQ(chunked_error("1;\r\na\r\n", limits), ParseError::kNone);
  EXPECT_EQ(chunked_error("1;x\r\na\r\n", limits), ParseError::kChunkExtensionTooLong);
}

TEST(BodyDecoder, TrailersAreBounded) {
  HttpLimits limits;
  limits.trailer_bytes_max = 32;
  limits.trailer_count_max = 2;
  EXPECT_EQ(chunked_error("0\r\nA: " + std::string(25, 'x') + "\r\n\r\n", limits),
            ParseError::kNone);
  EXPECT_EQ(chunked_error("0\r\nA: " + std::string(26, 'x') + "\r\n\r\n", limits),
            ParseError::kTrailersTooLarge);
  EXPECT_EQ(chunked_error("0\r\nA: " + std::string(40, 'x'), limits),
            ParseError::kTrailersTooLarge);
  EXPECT_EQ(chunked_error("0\r\nA: " + std::string(29, 'x'), limits), ParseError::kTrailersTooLarge)
      << "a full region is not waited for";
  EXPECT_EQ(chunked_error("0\r\nA: " + std::string(28, 'x'), limits), ParseError::kNone);
  EXPECT_EQ(chunked_error("0\r\nA:b\r\nA:b\r\n\r\n", limits), ParseError::kNone);
  EXPECT_EQ(chunked_error("0\r\nA:b\r\nA:b\r\nA:b\r\n\r\n", limits), ParseError::kTooManyFields);
  limits.trailer_count_max = 0;
  EXPECT_EQ(chunked_error("0\r\n\r\n", limits), ParseError::kNone);
  EXPECT_EQ(chunked_error("0\r\nA:b\r\n\r\n", limits), ParseError::kTooManyFields);
}

TEST(BodyDecoder, EndOfInput) {
  Body until_close({BodyKind::kUntilClose, 0});
  until_close.feed("abc", 2);
  EXPECT_EQ(until_close.lasts, 0);
  until_close.take(until_close.decoder().finish());
  EXPECT_EQ(until_close.lasts, 1);
  EXPECT_EQ(until_close.content, "abc");
  EXPECT_TRUE(until_close.decoder().done());
  EXPECT_EQ(until_close.decoder().finish().event, BodyEvent::kNeedMore) << "said once";

  Body length({BodyKind::kLength, 5});
  length.feed("abc", 3);
  EXPECT_EQ(length.decoder().remaining(), 2U);
  EXPECT_EQ(length.decoder().finish().error, ParseError::kTruncated);
  Body chunked(kChunked);
  chunked.feed("0\r\n", 3);
  EXPECT_EQ(chunked.decoder().finish().error, ParseError::kTruncated);
  Body none(BodyFraming{});
  none.take(none.decoder().finish());
  EXPECT_EQ(none.lasts, 1);
}

TEST(BodyDecoder, AnErrorStays) {
  Body body(kChunked);
  body.feed("zz", 2);
  ASSERT_EQ(body.error, ParseError::kBadChunkSize);
  std::array<HeaderView, 32> storage;
  EXPECT_EQ(body.decoder().next(std::string_view("0\r\n\r\n"), storage).error,
            ParseError::kBadChunkSize);
  EXPECT_EQ(body.decoder().finish().error, ParseError::kBadChunkSize);
  EXPECT_FALSE(body.decoder().done());
}

TEST(BodyDecoder, AnyChunkingAndAnyCutGiveTheContent) {
  Rng rng(11);
  for (int round = 0; round < 300; ++round) {
    std::string content;
    std::string bytes;
    for (std::uint64_t chunks = rng.below(6); chunks > 0; --chunks) {
      const std::string chunk(1 + rng.below(40), static_cast<char>('a' + rng.below(26)));
      char size[20];
      snprintf(size, sizeof size, rng.below(2) == 0 ? "%zx" : "%04zX", chunk.size());
      bytes += size + std::string(rng.below(3) == 0 ? ";ext=1" : "") + "\r\n" + chunk + "\r\n";
      content += chunk;
    }
    bytes += "0\r\n\r\n";
    Body body(kChunked);
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t size = 1 + rng.below(16);
      body.feed(std::string_view(bytes).substr(at, size), size);
      at += size;
    }
    ASSERT_EQ(body.content, content);
    ASSERT_EQ(body.lasts, 1);
    ASSERT_EQ(body.decoder().content_bytes(), content.size());
    ASSERT_EQ(body.left(), "");
  }
}

}  // namespace
}  // namespace weir::inline v0::http::h1
