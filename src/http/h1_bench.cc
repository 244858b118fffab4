#include <array>
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>
#include <http_parser.h>

#include "weir/experimental/http/h1/body_decoder.h"
#include "weir/experimental/http/h1/request_parser.h"
#include "weir/experimental/http/h1/serializer.h"

/// Compares the codec with http_parser (the C parser that Node.js used): same bytes, same run.
/// http_parser returns spans of names and values and checks less: it does not recognise fields and
/// does not check Host or the Connection list.

namespace weir::inline v0::http::h1 {
namespace {

constexpr std::string_view kSmall =
    "GET /api/v1/items/42 HTTP/1.1\r\n"
    "Host: 127.0.0.1:8080\r\n"
    "User-Agent: wrk/4.1.0\r\n"
    "Accept: */*\r\n"
    "\r\n";

constexpr std::string_view kBrowser =
    "GET /shop/category/shoes?page=3&sort=price&colour=dark%20blue HTTP/1.1\r\n"
    "Host: www.example.org\r\n"
    "Connection: keep-alive\r\n"
    "sec-ch-ua: \"Chromium\";v=\"126\", \"Not.A/Brand\";v=\"24\"\r\n"
    "sec-ch-ua-mobile: ?0\r\n"
    "sec-ch-ua-platform: \"Linux\"\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/126.0.0.0 Safari/537.36\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
    "\r\n"
    "Sec-Fetch-Site: same-origin\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "Sec-Fetch-Dest: document\r\n"
    "Referer: https://www.example.org/shop/category/shoes?page=2\r\n"
    "Accept-Encoding: gzip, deflate, br\r\n"
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n"
    "Cookie: session=4f3c2b1a09876543210fedcba9876543; theme=dark; consent=1\r\n"
    "\r\n";

void report(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  state.SetItemsProcessed(state.iterations());
}

void weir_parse(benchmark::State& state, std::string_view request) {
  const std::string bytes(request);
  const HttpLimits limits;
  std::array<HeaderView, 100> storage;
  RequestParser parser(limits);
  RequestHead head;
  for (auto _ : state) {
    const HeadResult result = parser.parse_head(bytes, storage, head);
    if (result.status != ParseStatus::kComplete) state.SkipWithError("refused");
    benchmark::DoNotOptimize(head);
  }
  report(state, bytes.size());
}

/// The worst case of a slow sender: one byte per read.
void weir_parse_bytewise(benchmark::State& state, std::string_view request) {
  const std::string bytes(request);
  const HttpLimits limits;
  std::array<HeaderView, 100> storage;
  RequestParser parser(limits);
  RequestHead head;
  for (auto _ : state) {
    ParseStatus status = ParseStatus::kNeedMore;
    for (std::size_t size = 1; size <= bytes.size(); ++size)
      status = parser.parse_head(std::span(bytes).first(size), storage, head).status;
    if (status != ParseStatus::kComplete) state.SkipWithError("refused");
  }
  report(state, bytes.size());
}

/// Keeps what Weir's parser returns: a list of name and value views.
struct Spans {
  std::array<std::pair<std::string_view, std::string_view>, 100> fields;
  std::string_view url;
  std::size_t count = 0;
  bool complete = false;
};

http_parser_settings span_settings() {
  http_parser_settings settings;
  http_parser_settings_init(&settings);
  settings.on_url = [](http_parser* p, const char* at, size_t n) {
    static_cast<Spans*>(p->data)->url = {at, n};
    return 0;
  };
  settings.on_header_field = [](http_parser* p, const char* at, size_t n) {
    auto* spans = static_cast<Spans*>(p->data);
    spans->fields[spans->count++].first = {at, n};
    return 0;
  };
  settings.on_header_value = [](http_parser* p, const char* at, size_t n) {
    auto* spans = static_cast<Spans*>(p->data);
    spans->fields[spans->count - 1].second = {at, n};
    return 0;
  };
  settings.on_message_complete = [](http_parser* p) {
    static_cast<Spans*>(p->data)->complete = true;
    return 0;
  };
  return settings;
}

void http_parser_parse(benchmark::State& state, std::string_view request) {
  const std::string bytes(request);
  const http_parser_settings settings = span_settings();
  Spans spans;
  http_parser parser;
  for (auto _ : state) {
    http_parser_init(&parser, HTTP_REQUEST);
    parser.data = &spans;
    spans.count = 0;
    spans.complete = false;
    http_parser_execute(&parser, &settings, bytes.data(), bytes.size());
    if (!spans.complete) state.SkipWithError("refused");
    benchmark::DoNotOptimize(spans);
  }
  report(state, bytes.size());
}

void chunked_body(benchmark::State& state) {
  const auto chunk = static_cast<std::size_t>(state.range(0));
  std::string bytes;
  std::array<char, kChunkHeadRoom> head;
  while (bytes.size() < 64 * 1024) {
    bytes.append(head.data(), write_chunk_head(head, static_cast<std::uint32_t>(chunk)));
    bytes.append(chunk, 'x');
    bytes += "\r\n";
  }
  bytes += kLastChunk;
  const HttpLimits limits;
  std::array<HeaderView, 32> storage;
  for (auto _ : state) {
    BodyDecoder decoder({BodyKind::kChunked, 0}, limits);
    std::span<const char> rest(bytes);
    while (!decoder.done()) {
      const BodyStep step = decoder.next(rest, storage);
      rest = rest.subspan(step.consumed);
      benchmark::DoNotOptimize(step.chunk.data);
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}

void response_head(benchmark::State& state) {
  std::array<char, 512> buffer;
  for (auto _ : state) {
    HeadWriter writer(buffer);
    writer.status(200);
    writer.fields("server: weir\r\n");
    writer.date("Sun, 06 Nov 1994 08:49:37 GMT");
    writer.field("content-type", "text/plain");
    writer.content_length(128);
    benchmark::DoNotOptimize(writer.end());
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(weir_parse, small, kSmall);
BENCHMARK_CAPTURE(http_parser_parse, small, kSmall);
BENCHMARK_CAPTURE(weir_parse, browser, kBrowser);
BENCHMARK_CAPTURE(http_parser_parse, browser, kBrowser);
BENCHMARK_CAPTURE(weir_parse_bytewise, browser, kBrowser);
BENCHMARK(chunked_body)->Arg(16)->Arg(1024)->Arg(16384);
BENCHMARK(response_head);

}  // namespace
}  // namespace weir::inline v0::http::h1
