#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/h2/client_session_kit.h"
#include "http/h2/nghttp2_client_session.h"
#include "http/h2/session_testing.h"

/// A client session between a scripted owner and a scripted server.

namespace weir::inline v0::http::h2 {

/// The events of one stream, as the client's owner received them.
struct SeenResponse {
  std::vector<unsigned> informed;  // 1xx
  unsigned status = 0;
  wire::Fields fields;  // of all heads
  std::optional<std::uint64_t> body_length;
  std::string body;
  bool complete = false;
  wire::Fields trailers;
  bool ended = false;
  StreamEnd end = StreamEnd::kDone;
  ErrorCode code = ErrorCode::kNoError;
  Processed processed = Processed::kMaybe;

  bool operator==(const SeenResponse&) const = default;
};

struct OwnerOptions {
  bool grant = true;    // each piece of a body as soon as it is received
  bool release = true;  // as soon as a stream has ended
  bool drain = true;    // the session's output is read after each input
};

class TestClient final : public ClientEvents {
  static constexpr std::size_t kGuardBytes = 256;
  static constexpr unsigned char kUntouched = 0xa5;

 public:
  explicit TestClient(const H2Limits& limits = {}, OwnerOptions options = {},
                      const ClientOptions& client = {})
      : options_(options),
        kit_(limits, client),
        memory_((limits.session_bytes_max + 2 * kGuardBytes) / sizeof(Line) + 1) {
    std::memset(memory_.data(), kUntouched, memory_.size() * sizeof(Line));
    session_ = kit_.make(block(), *this, now);
  }
  ~TestClient() = default;
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  /// Preface and SETTINGS in both directions. Drops the frames.
  TestClient& handshake(const std::vector<std::pair<unsigned, std::uint32_t>>& settings = {}) {
    drain();
    send(wire::settings(settings) + wire::settings_ack());
    drain();
    frames.clear();
    return *this;
  }

  /// Opens a stream and, with `drain`, sends its head.
  StreamId open(const RequestStart& start) {
    SeenResponse fresh;
    opening_ = std::make_unique<StreamId>(0);
    const auto opened = session_->open(start, opening_.get());
    last_open = opened ? SubmitStatus::kOk : opened.error();
    if (!opened) return 0;
    *opening_ = *opened;
    ids_[*opened] = std::move(opening_);
    streams[*opened] = fresh;
    if (options_.drain) drain();
    return *opened;
  }
  StreamId get(std::string_view path = "/", std::string_view method = "GET") {
    return open({method, "http", "a", path, {}, true});
  }
  StreamId post() { return open({"POST", "http", "a", "/", {}, false}); }

  /// Passes bytes to the session as a connection does: when it is blocked, again after output.
  TestClient& send(std::string_view bytes) {
    blocked = false;
    while (!bytes.empty() && session_->ended() == SessionEnd::kNone) {
      const ReceiveResult result =
          session_->receive(std::as_bytes(std::span(bytes.data(), bytes.size())), now);
      bytes.remove_prefix(result.consumed);
      if (options_.drain) drain();
      if (result.status == ReceiveStatus::kBlocked && !options_.drain) {
        blocked = true;
        break;
      }
    }
    left_over = bytes.size();
    if (options_.drain) drain();
    return *this;
  }

  /// Reads all output in pieces of odd sizes.
  void drain() {
    std::byte piece[61];
    while (session_->has_output()) {
      const std::size_t n = session_->produce(piece, now);
      raw_.append(reinterpret_cast<const char*>(piece), n);
      sent_.append(reinterpret_cast<const char*>(piece), n);
    }
    parse();
  }
  /// Sends as much of a body as windows allow; returns what was sent.
  std::size_t write(StreamId id, std::string_view body, bool end) {
    std::size_t done = 0;
    for (;;) {
      drain();
      const std::uint32_t room = session_->sendable(id);
      const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(room, body.size() - done));
      if (room == 0 || (n == 0 && !end)) return done;
      std::vector<std::byte> buffer(kFrameHeaderBytes + n);
      std::memcpy(buffer.data() + kFrameHeaderBytes, body.data() + done, n);
      const bool last = end && done + n == body.size();
      const DataFrame frame{
          std::span<std::byte, kFrameHeaderBytes>(buffer.data(), kFrameHeaderBytes), n, last};
      if (!session_->write_data(id, frame, now)) return done;
      raw_.append(reinterpret_cast<const char*>(buffer.data()), buffer.size());
      sent_.append(reinterpret_cast<const char*>(buffer.data()), buffer.size());
      done += n;
      if (last || done == body.size()) break;
    }
    parse();
    return done;
  }

  ClientSession& session() { return *session_; }
  Nghttp2ClientSession& library_session() { return static_cast<Nghttp2ClientSession&>(*session_); }
  [[nodiscard]] bool alive() const { return session_->ended() == SessionEnd::kNone; }
  [[nodiscard]] SessionEnd ended() const { return session_->ended(); }
  [[nodiscard]] std::uint64_t glitches(H2Glitch glitch) const { return session_->glitches(glitch); }
  [[nodiscard]] std::size_t count(FrameType type, unsigned flags = 0) const {
    return static_cast<std::size_t>(std::count_if(
        frames.begin(), frames.end(),
        [&](const OutFrame& f) { return f.header.is(type) && (f.header.flags & flags) == flags; }));
  }
  [[nodiscard]] std::optional<ErrorCode> goaway_code() const {
    for (auto it = frames.rbegin(); it != frames.rend(); ++it)
      if (it->header.is(FrameType::kGoaway)) return static_cast<ErrorCode>(it->word(4));
    return std::nullopt;
  }
  [[nodiscard]] std::optional<ErrorCode> reset_code(StreamId id) const {
    for (const OutFrame& f : frames)
      if (f.header.is(FrameType::kRstStream) && f.header.stream == id)
        return static_cast<ErrorCode>(f.word(0));
    return std::nullopt;
  }
  /// Bytes by which the session opened a window since the frames were dropped.
  [[nodiscard]] std::uint64_t opened_window(StreamId id) const {
    std::uint64_t sum = 0;
    for (const OutFrame& f : frames)
      if (f.header.is(FrameType::kWindowUpdate) && f.header.stream == id) sum += f.word(0);
    return sum;
  }
  /// All bytes sent since the last call, for a peer in the same program.
  [[nodiscard]] std::string take_sent() { return std::exchange(sent_, {}); }
  /// The bytes around the session's block are as they were.
  [[nodiscard]] bool stayed_inside() const {
    const auto* all = reinterpret_cast<const unsigned char*>(memory_.data());
    const std::size_t bytes = memory_.size() * sizeof(Line);
    const auto untouched = [](unsigned char c) { return c == kUntouched; };
    return std::all_of(all, all + kGuardBytes, untouched) &&
           std::all_of(all + kGuardBytes + kit_.limits().session_bytes_max, all + bytes, untouched);
  }

  TimePoint now = time_from_ns(1'000'000'000);
  std::vector<OutFrame> frames;
  std::map<StreamId, SeenResponse> streams;
  SubmitStatus last_open = SubmitStatus::kOk;
  bool blocked = false;
  std::size_t left_over = 0;
  std::uint64_t windows_opened = 0;
  std::uint64_t capacity_changes = 0;
  std::vector<TimePoint> pongs;
  std::map<StreamId, bool> paused;  // nothing more is granted

 private:
  struct alignas(16) Line {
    std::array<unsigned char, 16> bytes;
  };

  [[nodiscard]] std::span<std::byte> block() {
    return std::as_writable_bytes(std::span(memory_))
        .subspan(kGuardBytes, kit_.limits().session_bytes_max);
  }

  void parse() {
    std::size_t at = 0;
    if (!preface_seen_) {
      if (raw_.size() < kClientPreface.size()) return;
      preface_seen_ = raw_.starts_with(kClientPreface);
      at = kClientPreface.size();
    }
    while (raw_.size() - at >= kFrameHeaderBytes) {
      const FrameHeader header =
          read_frame_header(reinterpret_cast<const std::uint8_t*>(raw_.data()) + at);
      if (raw_.size() - at < kFrameHeaderBytes + header.length) break;
      frames.push_back({header, raw_.substr(at + kFrameHeaderBytes, header.length)});
      at += kFrameHeaderBytes + header.length;
    }
    raw_.erase(0, at);
  }

  // ClientEvents
  void on_response(StreamId id, void* user, const ResponseHead& head) override {
    SeenResponse& s = seen(id, user);
    for (const HeaderView& field : head.headers) s.fields.emplace_back(field.name, field.value);
    if (head.informational) {
      s.informed.push_back(head.status);
      return;
    }
    s.status = head.status;
    s.body_length = head.body_length;
    s.complete = head.end;
  }
  void on_body(StreamId id, void* user, const BodyChunk& chunk) override {
    SeenResponse& s = seen(id, user);
    s.body += chunk.text();
    s.complete = chunk.last();
    if (options_.grant && !chunk.last() && !paused[id]) session_->grant(id, chunk.len);
  }
  void on_trailers(StreamId id, void* user, const HeaderList& trailers) override {
    for (const HeaderView& field : trailers)
      seen(id, user).trailers.emplace_back(field.name, field.value);
  }
  void on_stream_end(StreamId id, void* user, StreamEnd end, ErrorCode code,
                     Processed processed) override {
    SeenResponse& s = seen(id, user);
    WEIR_ASSERT(!s.ended);
    s.ended = true;
    s.end = end;
    s.code = code;
    s.processed = processed;
    if (options_.release) session_->release(id);
  }
  void on_windows_opened() override { ++windows_opened; }
  void on_capacity_changed() override { ++capacity_changes; }
  void on_pong(TimePoint sent) override { pongs.push_back(sent); }

  SeenResponse& seen(StreamId id, void* user) {
    WEIR_ASSERT(*static_cast<StreamId*>(user) == id);
    return streams[id];
  }

  OwnerOptions options_;
  ClientSessionKit kit_;
  std::vector<Line> memory_;
  ClientSessionPtr session_;
  std::unique_ptr<StreamId> opening_;
  std::map<StreamId, std::unique_ptr<StreamId>> ids_;
  std::string raw_;
  std::string sent_;
  bool preface_seen_ = false;
};

namespace wire {

/// The head of a response.
inline Fields status(std::string_view code, Fields more = {}) {
  more.insert(more.begin(), {":status", std::string(code)});
  return more;
}

}  // namespace wire

}  // namespace weir::inline v0::http::h2
