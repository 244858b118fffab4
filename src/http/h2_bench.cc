#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "http/h2/client_session_kit.h"
#include "http/h2/frame_writer_testing.h"
#include "http/h2/session_kit.h"

/// One request and its response on an open connection, without sockets.

namespace weir::inline v0::http::h2 {
namespace {

constexpr TimePoint kNow = time_from_ns(1'000'000'000);
constexpr std::uint32_t kBodyBytes = 128;

/// The memory of one session, aligned as a server's slab is.
struct Block {
  explicit Block(std::size_t bytes) : pages(bytes / sizeof(Page) + 1) {}
  [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(pages)); }

  struct alignas(4096) Page {
    std::array<std::byte, 4096> bytes;
  };
  std::vector<Page> pages;
};

/// Answers each request with a small body.
class Answering final : public SessionEvents {
 public:
  explicit Answering(const SessionKit& kit)
      : memory_(kit.limits().session_bytes_max),
        session_(kit.make(memory_.bytes().first(kit.limits().session_bytes_max), *this, kNow)) {}

  void feed(std::string_view bytes) {
    benchmark::DoNotOptimize(
        session_->receive(std::as_bytes(std::span(bytes.data(), bytes.size())), kNow));
    drain();
    if (asked_ == 0) return;
    const StreamId id = std::exchange(asked_, 0);
    const DataFrame frame{std::span<std::byte, kFrameHeaderBytes>(out_.data(), kFrameHeaderBytes),
                          kBodyBytes, true};
    if (session_->write_data(id, frame, kNow)) ++answered;
    drain();
  }

  std::int64_t answered = 0;

 private:
  void drain() {
    while (session_->produce(out_, kNow) > 0) {
    }
  }
  void* on_request(StreamId id, const RequestHead& /*head*/) override {
    static constexpr std::array<Field, 3> kFields = {
        {{"content-type", "text/plain"}, {"content-length", "128"}, {"server", "weir"}}};
    if (session_->submit_head(id, {200, kFields, false}) == SubmitStatus::kOk) asked_ = id;
    return this;
  }
  void on_body(StreamId /*id*/, void* /*user*/, const BodyChunk& /*chunk*/) override {}
  void on_trailers(StreamId /*id*/, void* /*user*/, const HeaderList& /*trailers*/) override {}
  void on_stream_end(StreamId id, void* /*user*/, StreamEnd /*end*/, ErrorCode /*code*/) override {
    session_->release(id);
  }
  void on_windows_opened() override {}

  Block memory_;
  SessionPtr session_;
  StreamId asked_ = 0;
  std::array<std::byte, 4096> out_{};
};

/// A head as browsers send it: twelve fields, all in the static or dynamic table after the first.
void server_exchange(benchmark::State& state) {
  using namespace wire;
  const H2Limits limits;
  const SessionKit kit(limits);
  auto peer = std::make_unique<Answering>(kit);
  peer->feed(preface() + settings() + settings_ack());
  std::string head = index(2) + index(6) + index(4);  // GET, http, /
  head += indexed_literal(":authority", "www.example.org");
  for (int i = 0; i < 8; ++i)
    head += indexed_literal("x-field-" + std::to_string(i), "a value of usual length");
  StreamId id = 1;
  peer->feed(headers_raw(id, head, kEnd | kEndHeaders) + window_update(0, 100'000'000));
  std::string again = index(2) + index(6) + index(4);
  for (unsigned i = 0; i < 9; ++i) again += index(62 + 8 - i);
  std::string request = headers_raw(3, again, kEnd | kEndHeaders);
  for (auto _ : state) {
    id += 2;
    write_u32(reinterpret_cast<std::uint8_t*>(request.data()) + 5, id);
    peer->feed(request);
    if (id % 200'001 == 0) peer->feed(window_update(0, 100'000'000));
  }
  if (peer->answered < state.iterations()) state.SkipWithError("not answered");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(server_exchange)->Name("h2/server_exchange");

/// Asks, and takes what comes.
class Asking final : public ClientEvents {
 public:
  explicit Asking(const ClientSessionKit& kit)
      : memory_(kit.limits().session_bytes_max),
        session_(kit.make(memory_.bytes().first(kit.limits().session_bytes_max), *this, kNow)) {}

  [[nodiscard]] StreamId ask() {
    static constexpr std::array<Field, 4> kFields = {{{"user-agent", "weir"},
                                                      {"accept", "*/*"},
                                                      {"x-request-id", "0123456789abcdef"},
                                                      {"via", "1.1 weir"}}};
    const auto id = session_->open({"GET", "http", "www.example.org", "/", kFields, true}, this);
    drain();
    return id ? *id : 0;
  }
  void feed(std::string_view bytes) {
    benchmark::DoNotOptimize(
        session_->receive(std::as_bytes(std::span(bytes.data(), bytes.size())), kNow));
    drain();
  }

  std::int64_t done = 0;

 private:
  void drain() {
    while (session_->produce(out_, kNow) > 0) {
    }
  }
  void on_response(StreamId /*id*/, void* /*user*/, const ResponseHead& /*head*/) override {}
  void on_body(StreamId id, void* /*user*/, const BodyChunk& chunk) override {
    if (!chunk.last()) session_->grant(id, chunk.len);
  }
  void on_trailers(StreamId /*id*/, void* /*user*/, const HeaderList& /*trailers*/) override {}
  void on_stream_end(StreamId id, void* /*user*/, StreamEnd end, ErrorCode /*code*/,
                     Processed /*processed*/) override {
    done += end == StreamEnd::kDone ? 1 : 0;
    session_->release(id);
  }
  void on_windows_opened() override {}
  void on_capacity_changed() override {}
  void on_pong(TimePoint /*sent*/) override {}

  Block memory_;
  ClientSessionPtr session_;
  std::array<std::byte, 4096> out_{};
};

void client_exchange(benchmark::State& state) {
  using namespace wire;
  const H2Limits limits;
  const ClientSessionKit kit(limits);
  auto client = std::make_unique<Asking>(kit);
  client->feed(settings() + settings_ack());
  const std::string first = index(8) + indexed_literal("content-type", "text/plain") +
                            indexed_literal("content-length", "128") +
                            indexed_literal("server", "weir");
  client->feed(headers_raw(client->ask(), first, kEnd | kEndHeaders));  // refused: no body
  const std::string head =
      headers_raw(1, index(8) + index(62) + index(63) + index(64), kEndHeaders);
  std::string response = head + data(1, std::string(kBodyBytes, 'x'), kEnd);
  auto* bytes = reinterpret_cast<std::uint8_t*>(response.data());
  for (auto _ : state) {
    const StreamId id = client->ask();
    write_u32(bytes + 5, id);
    write_u32(bytes + head.size() + 5, id);
    client->feed(response);
  }
  if (client->done < state.iterations()) state.SkipWithError("not answered");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(client_exchange)->Name("h2/client_exchange");

}  // namespace
}  // namespace weir::inline v0::http::h2
