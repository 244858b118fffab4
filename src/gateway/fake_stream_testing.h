#pragma once

// A stream without a server: stores what a handler sends, or rejects it as the test decides.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/experimental/io/loop.h"
#include "weir/experimental/server/stream.h"

namespace weir::inline v0::gateway::testkit {

class FakeStream final : public ServerStream {
 public:
  explicit FakeStream(io::Loop& loop) noexcept : loop_(loop) {}

  // Set by the test.
  SendResult takes_head = SendResult::kSent;
  SendResult takes_trailers = SendResult::kSent;
  std::size_t room = ~std::size_t{0};
  std::uint64_t received = 0;

  // Recorded from the handler.
  std::uint16_t status = 0;
  std::string fields;  // "name: value\n" each
  std::string body;
  std::string trailers;
  bool ended = false;
  bool paused = false;
  int resets = 0;

  void pause() override { paused = true; }
  void resume() override { paused = false; }
  void expect_silence() noexcept override {}
  bool reserve_tunnel() noexcept override { return true; }
  SendResult send_headers(const ResponseHead& head, bool last) override {
    if (takes_head != SendResult::kSent) return takes_head;
    status = head.status;
    fields = text_of(head.fields);
    ended = last;
    return SendResult::kSent;
  }
  std::size_t send_data(std::string_view bytes, bool last) override {
    const std::size_t taken = std::min(bytes.size(), room);
    body += bytes.substr(0, taken);
    ended = ended || (last && taken == bytes.size());
    return taken;
  }
  SendResult send_trailers(std::span<const ResponseField> list) override {
    if (takes_trailers != SendResult::kSent) return takes_trailers;
    trailers = text_of(list);
    ended = true;
    return SendResult::kSent;
  }
  SendResult send_response(const ResponseHead& head, std::string_view bytes, BodyLife) override {
    status = head.status;
    fields = text_of(head.fields);
    body = bytes;
    ended = true;
    return SendResult::kSent;
  }
  void send_503() override {
    status = 503;
    ended = true;
  }
  void reset() override { ++resets; }
  ArenaAnswer acquire_arena(ArenaWait) override { return {}; }
  Arena* arena() const noexcept override { return nullptr; }
  void set_critical(bool) noexcept override {}
  std::size_t writable_bytes() const noexcept override { return room; }
  bool response_started() const noexcept override { return status != 0; }
  std::uint64_t body_bytes_received() const noexcept override { return received; }
  std::uint64_t body_bytes_sent() const noexcept override { return body.size(); }
  std::size_t unsent_bytes() const noexcept override { return 0; }
  const io::Address& peer() const noexcept override { return peer_; }
  io::Loop& loop() const noexcept override { return loop_; }
  std::uint64_t id() const noexcept override { return 1; }

 private:
  static std::string text_of(std::span<const ResponseField> list) {
    std::string text;
    for (const ResponseField& field : list) {
      text.append(field.name).append(": ").append(field.value).append("\n");
    }
    return text;
  }

  io::Loop& loop_;
  io::Address peer_;
};

}  // namespace weir::inline v0::gateway::testkit
