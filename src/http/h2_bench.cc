#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

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

}  // namespace
}  // namespace weir::inline v0::http::h2
