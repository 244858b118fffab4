#pragma once

// An HTTP/2 client for the tests of this layer: it builds frames itself and uses a blocking socket.
// Only the HPACK of responses is decoded by a library.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include "http/h2/frame_writer_testing.h"
#include "http/h2/header_reader_testing.h"
#include "server/server_testing.h"

namespace weir::inline v0::inline server::testkit {

namespace wire = http::h2::wire;

/// One received frame.
struct Frame {
  http::h2::FrameHeader header;
  std::string payload;

  [[nodiscard]] bool is(http::h2::FrameType type) const { return header.is(type); }
  [[nodiscard]] bool ends() const { return header.has(http::h2::flag::kEndStream); }
  [[nodiscard]] std::uint32_t word(std::size_t at = 0) const {
    return http::h2::read_u32(reinterpret_cast<const std::uint8_t*>(payload.data()) + at);
  }
};

/// What was received for one stream.
struct Reply {
  int status = 0;
  std::vector<int> informed;  // 1xx
  wire::Fields fields;
  wire::Fields trailers;
  std::string body;
  std::optional<std::uint32_t> reset;  // the code of RST_STREAM
  bool ended = false;
  std::size_t data_frames = 0;

  [[nodiscard]] std::string field(std::string_view name) const {
    for (const auto& [have, value] : fields) {
      if (have == name) return value;
    }
    return {};
  }
};

class H2Client {
 public:
  using Settings = std::vector<std::pair<unsigned, std::uint32_t>>;
  struct Options {
    Settings settings;
    bool greet = true;         // preface, SETTINGS
    bool open_windows = true;  // WINDOW_UPDATE for received bytes
    bool acknowledge = true;   // SETTINGS
    int receive_buffer = 0;
  };

  explicit H2Client(std::uint16_t port) : H2Client(port, Options()) {}
  H2Client(std::uint16_t port, Options options)
      : client_(port, options.receive_buffer), options_(std::move(options)) {
    const int at_once = 1;  // send small frames immediately
    ::setsockopt(client_.fd(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    if (options_.greet) send(wire::preface() + wire::settings(options_.settings));
  }
  H2Client(const H2Client&) = delete;
  H2Client& operator=(const H2Client&) = delete;
  ~H2Client() = default;

  bool send(std::string_view bytes) { return client_.send(bytes); }
  Client& socket() { return client_; }

  std::uint32_t ask(const wire::Fields& fields, unsigned flags = wire::kEnd) {
    const std::uint32_t id = next_id_;
    next_id_ += 2;
    send(wire::headers(id, fields, flags));
    return id;
  }
  std::uint32_t get(std::string_view path) { return ask(wire::get(path)); }
  std::uint32_t post(std::string_view path, const wire::Fields& more = {}) {
    wire::Fields fields = wire::with(wire::post(), more);
    fields[3].second = path;
    return ask(fields, 0);
  }

  /// Reads and records the next frame; nullopt at the end of the connection.
  std::optional<Frame> next() {
    const std::string head = client_.take(http::h2::kFrameHeaderBytes);
    if (head.size() < http::h2::kFrameHeaderBytes) return std::nullopt;
    Frame frame;
    frame.header = http::h2::read_frame_header(reinterpret_cast<const std::uint8_t*>(head.data()));
    frame.payload = client_.take(frame.header.length);
    if (frame.payload.size() < frame.header.length) return std::nullopt;
    note(frame);
    return frame;
  }
  /// Reads until the stream or the connection has ended.
  Reply& finish(std::uint32_t id) {
    while (!replies_[id].ended && !replies_[id].reset && next()) {
    }
    return replies_[id];
  }
  Reply& reply(std::uint32_t id) { return replies_[id]; }
  /// Reads until a frame of this type and stream; nullopt if the connection ends before.
  std::optional<Frame> until(http::h2::FrameType type, std::uint32_t stream = 0) {
    while (std::optional<Frame> frame = next()) {
      if (frame->is(type) && frame->header.stream == stream) return frame;
    }
    return std::nullopt;
  }
  /// Sends PING and reads its answer: the server has processed all earlier bytes. False at the end.
  bool in_step() {
    send(wire::ping());
    while (const std::optional<Frame> frame = next()) {
      if (frame->is(http::h2::FrameType::kPing) && frame->header.has(http::h2::flag::kAck))
        return true;
    }
    return false;
  }
  /// Reads to the end of the connection; the code of GOAWAY, if there was one.
  std::optional<std::uint32_t> goaway_and_end() {
    while (next()) {
    }
    return goaway_code;
  }

  std::optional<std::uint32_t> goaway_code;
  std::vector<std::uint32_t> goaway_last;  // of each GOAWAY
  std::size_t settings_seen = 0;

 private:
  void note(const Frame& frame) {
    Reply& reply = replies_[frame.header.stream];
    switch (static_cast<http::h2::FrameType>(frame.header.type)) {
      case http::h2::FrameType::kHeaders:
        note_head(frame, reply);
        reply.ended = reply.ended || frame.ends();
        break;
      case http::h2::FrameType::kData:
        reply.body += frame.payload;
        ++reply.data_frames;
        reply.ended = reply.ended || frame.ends();
        if (options_.open_windows && !frame.payload.empty()) {
          send(wire::window_update(0, frame.header.length));
          if (!frame.ends()) send(wire::window_update(frame.header.stream, frame.header.length));
        }
        break;
      case http::h2::FrameType::kRstStream:
        reply.reset = frame.word();
        break;
      case http::h2::FrameType::kGoaway:
        goaway_last.push_back(frame.word());
        goaway_code = frame.word(4);
        break;
      case http::h2::FrameType::kSettings:
        if (frame.header.has(http::h2::flag::kAck)) break;
        ++settings_seen;
        if (options_.acknowledge) send(wire::settings_ack());
        break;
      default:
        break;
    }
  }
  void note_head(const Frame& frame, Reply& reply) {
    wire::Fields fields = headers_.read(frame.payload);
    const bool head = !fields.empty() && fields[0].first == ":status";
    const int status = head ? std::stoi(fields[0].second) : 0;
    if (head && status < 200) {
      reply.informed.push_back(status);
    } else if (head) {
      reply.status = status;
      reply.fields = fields;
    } else {
      reply.trailers = fields;
    }
  }

  Client client_;
  Options options_;
  wire::HeaderReader headers_;
  std::map<std::uint32_t, Reply> replies_;
  std::uint32_t next_id_ = 1;
};

}  // namespace weir::inline v0::inline server::testkit
