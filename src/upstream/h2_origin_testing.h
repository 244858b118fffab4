#pragma once

// An origin that speaks HTTP/2 with our own server codec, over a real socket.

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "http/h2/session_kit.h"
#include "upstream/dispatcher_testing.h"

namespace weir::inline v0::upstream {

/// An HTTP/2 server on one accepted connection, stepped by the test.
class H2Origin final : public http::h2::SessionEvents {
 public:
  explicit H2Origin(FakeOrigin& socket) : socket_(socket) {}

  struct Request {
    std::string method;
    std::string path;
    std::string scheme;
    std::string authority;
    std::map<std::string, std::string> fields;
    std::string body;
    std::size_t trailers = 0;
    bool ended = false;
    bool reset = false;
    http::h2::ErrorCode code = http::h2::ErrorCode::kNoError;
  };

  void begin(TimePoint now) {
    memory_.resize(limits.session_bytes_max);
    kit_ = std::make_unique<http::h2::SessionKit>(limits);
    session_ = kit_->make(memory_, *this, now);
    ASSERT_NE(session_, nullptr);
  }
  /// Reads what has arrived and writes what is queued.
  void step(io::Loop& loop) {
    loop.run_once();
    const std::string got = socket_.read_some();
    std::string_view rest = got;
    while (!rest.empty() && session_->ended() == http::h2::SessionEnd::kNone) {
      const auto result = session_->receive(std::as_bytes(std::span(rest)), loop.now());
      rest.remove_prefix(result.consumed);
      flush(loop);
    }
    flush(loop);
  }
  void flush(io::Loop& loop) {
    std::array<std::byte, 16384> out;
    while (session_->has_output()) {
      const std::size_t n = session_->produce(out, loop.now());
      if (n == 0) break;
      socket_.write({reinterpret_cast<const char*>(out.data()), n});
    }
  }
  void answer(http::h2::StreamId id, std::uint16_t status, bool end,
              std::vector<http::h2::Field> fields = {}) {
    ASSERT_EQ(session_->submit_head(id, {.status = status, .fields = fields, .end = end}),
              http::h2::SubmitStatus::kOk);
  }
  /// As much of the bytes as the windows allow; returns the number.
  std::size_t data(io::Loop& loop, http::h2::StreamId id, std::string_view bytes, bool end) {
    flush(loop);
    std::size_t done = 0;
    while (done < bytes.size() || end) {
      const std::size_t n = std::min<std::size_t>(session_->sendable(id), bytes.size() - done);
      if (n == 0 && done < bytes.size()) break;
      std::string frame(http::h2::kFrameHeaderBytes, '\0');
      const bool last = end && done + n == bytes.size();
      const http::h2::DataFrame header{
          .header = std::span<std::byte, http::h2::kFrameHeaderBytes>(
              reinterpret_cast<std::byte*>(frame.data()), http::h2::kFrameHeaderBytes),
          .payload_bytes = static_cast<std::uint32_t>(n),
          .end = last};
      if (!session_->write_data(id, header, loop.now())) break;
      socket_.write(frame + std::string(bytes.substr(done, n)));
      done += n;
      if (last) break;
    }
    return done;
  }
  [[nodiscard]] http::h2::Session& session() { return *session_; }

  http::H2Limits limits;
  std::map<http::h2::StreamId, Request> requests;

 private:
  void* on_request(http::h2::StreamId id, const http::h2::RequestHead& head) override {
    Request& request = requests[id];
    request.method = head.meta.method;
    request.path = head.meta.path;
    request.scheme = head.meta.scheme;
    request.authority = head.meta.authority;
    for (const auto& field : head.headers) {
      request.fields[std::string(field.name)] = field.value;
    }
    request.ended = head.end_stream;
    if (grants) session_->grant(id, 65536);  // without it, DATA would be refused
    return &request;
  }
  void on_body(http::h2::StreamId id, void* user, const http::BodyChunk& chunk) override {
    Request& request = *static_cast<Request*>(user);
    request.body += chunk.text();
    request.ended = request.ended || chunk.last();
    if (grants) session_->grant(id, chunk.len);
  }
  void on_trailers(http::h2::StreamId, void* user, const http::HeaderList& trailers) override {
    static_cast<Request*>(user)->trailers = trailers.size();
  }
  void on_stream_end(http::h2::StreamId id, void* user, http::h2::StreamEnd end,
                     http::h2::ErrorCode code) override {
    Request& request = *static_cast<Request*>(user);
    request.reset = end == http::h2::StreamEnd::kPeerReset;
    request.code = code;
    session_->release(id);
  }
  void on_windows_opened() override {}

  FakeOrigin& socket_;
  std::vector<std::byte> memory_;
  std::unique_ptr<http::h2::SessionKit> kit_;
  http::h2::SessionPtr session_;

 public:
  bool grants = true;
};

}  // namespace weir::inline v0::upstream
