#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "http/h2/frame_writer_testing.h"
#include "http/h2/nghttp2_session.h"
#include "http/h2/session_kit.h"

/// A session between a scripted owner and a scripted peer.

namespace weir::inline v0::http::h2 {

/// A frame that the session sent.
struct OutFrame {
  FrameHeader header;
  std::string payload;

  [[nodiscard]] std::uint32_t word(std::size_t at) const {
    return read_u32(reinterpret_cast<const std::uint8_t*>(payload.data()) + at);
  }
};

/// The events of one stream, as its owner received them.
struct SeenStream {
  std::string method, scheme, authority, path;
  wire::Fields fields;
  std::optional<std::uint64_t> body_length;
  bool end_stream = false;
  std::string body;
  bool complete = false;
  wire::Fields trailers;
  bool ended = false;
  StreamEnd end = StreamEnd::kDone;
  ErrorCode code = ErrorCode::kNoError;

  bool operator==(const SeenStream&) const = default;
};

struct PeerOptions {
  bool answer = true;  // 200 with `body` once the request is complete
  std::string body = "ok";
  bool grant = true;        // grant every body: 16 KB ahead
  bool release = true;      // as soon as a stream has ended
  bool refuse = false;      // on_request refuses the stream
  bool acknowledge = true;  // the peer has acknowledged our SETTINGS
  bool drain = true;        // the session's output is read after each input
};

/// Requests are not answered.
inline PeerOptions quiet() {
  PeerOptions options;
  options.answer = false;
  return options;
}

/// The client's stream `i`, counted from 0.
inline StreamId id_of(int i) {
  return static_cast<StreamId>(2 * i + 1);
}

class TestPeer final : public SessionEvents {
  struct alignas(4096) Page {
    std::array<unsigned char, 4096> bytes;
  };
  static constexpr unsigned char kUntouched = 0xa5;
  static constexpr std::size_t kBeforeSession = 384;  // the owner's own state, as in the server

 public:
  explicit TestPeer(const H2Limits& limits = {}, PeerOptions options = {})
      : options_(std::move(options)),
        kit_(limits),
        memory_(limits.session_bytes_max / sizeof(Page) + 1) {
    std::memset(memory_.data(), kUntouched, memory_.size() * sizeof(Page));
    session_ = kit_.make(std::as_writable_bytes(std::span(memory_))
                             .subspan(kBeforeSession, limits.session_bytes_max),
                         *this, now);
  }
  ~TestPeer() {
    session_.reset();
    if (inflater_ != nullptr) nghttp2_hd_inflate_del(inflater_);
  }
  TestPeer(const TestPeer&) = delete;
  TestPeer& operator=(const TestPeer&) = delete;

  /// Preface and SETTINGS in both directions: an established connection. Drops the frames.
  TestPeer& handshake(const std::vector<std::pair<unsigned, std::uint32_t>>& settings = {}) {
    send(wire::preface() + wire::settings(settings));
    if (options_.acknowledge) send(wire::settings_ack());
    frames.clear();
    return *this;
  }

  /// Passes bytes to the session as a connection does: when it is blocked, again after output.
  TestPeer& send(std::string_view bytes) {
    blocked = false;
    while (!bytes.empty() && session_->ended() == SessionEnd::kNone) {
      const ReceiveResult result = session_->receive(as_bytes(bytes), now);
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
  /// The same, one byte at a time, each from a new allocation.
  TestPeer& send_by_byte(std::string_view bytes) {
    for (const char c : bytes) {
      const auto one = std::make_unique<char>(c);
      send({one.get(), 1});
    }
    return *this;
  }

  /// Reads all output in pieces of odd sizes, and sends response bodies.
  void drain() {
    for (bool progress = true; progress;) {
      progress = false;
      std::byte piece[61];
      while (const std::size_t n = session_->produce(piece, now)) {
        output({reinterpret_cast<const char*>(piece), n});
        progress = true;
      }
      for (auto it = unsent_.begin(); it != unsent_.end();) {
        progress = pump(it->first, it->second) || progress;
        it = it->second.done ? unsent_.erase(it) : std::next(it);
      }
    }
    parse();
  }

  void respond(StreamId id, std::string body, const wire::Fields& fields = {},
               std::uint16_t status = 200) {
    std::vector<Field> out;
    for (const auto& [name, value] : fields) out.push_back({name, value});
    last_submit = session_->submit_head(id, {status, out, body.empty()});
    if (last_submit == SubmitStatus::kBlocked) {
      ++blocked_submits;
      drain();
      last_submit = session_->submit_head(id, {status, out, body.empty()});
    }
    if (!body.empty() && last_submit == SubmitStatus::kOk)
      unsent_[id] = {std::move(body), 0, false};
  }

  /// Pages of the session's memory that were written to, including the owner's data before it.
  [[nodiscard]] std::size_t touched_pages() const {
    std::size_t touched = 0;
    for (const Page& page : memory_) {
      const bool whole = std::all_of(page.bytes.begin(), page.bytes.end(),
                                     [](unsigned char c) { return c == kUntouched; });
      touched += whole ? 0 : 1;
    }
    return touched;
  }

  Session& session() { return *session_; }
  Nghttp2Session& library_session() { return static_cast<Nghttp2Session&>(*session_); }
  [[nodiscard]] bool alive() const { return session_->ended() == SessionEnd::kNone; }
  [[nodiscard]] bool no_error() const { return alive() || ended() == SessionEnd::kFinished; }
  [[nodiscard]] SessionEnd ended() const { return session_->ended(); }
  [[nodiscard]] std::uint64_t glitches(H2Glitch glitch) const { return session_->glitches(glitch); }
  [[nodiscard]] std::uint64_t all_glitches() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kH2GlitchCount; ++i) sum += glitches(static_cast<H2Glitch>(i));
    return sum;
  }

  /// The code of the last GOAWAY that was sent, if any.
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
  [[nodiscard]] std::size_t count(FrameType type, unsigned flags = 0) const {
    return static_cast<std::size_t>(std::count_if(
        frames.begin(), frames.end(),
        [&](const OutFrame& f) { return f.header.is(type) && (f.header.flags & flags) == flags; }));
  }
  [[nodiscard]] std::string status_of(StreamId id) const {
    const auto it = responses.find(id);
    if (it == responses.end()) return "";
    for (const auto& [name, value] : it->second.fields)
      if (name == ":status") return value;
    return "";
  }

  /// A response as the peer decoded it.
  struct Response {
    wire::Fields fields;  // of all its header blocks
    std::string body;
    bool ended = false;
    bool operator==(const Response&) const = default;
  };

  TimePoint now = time_from_ns(1'000'000'000);
  std::vector<OutFrame> frames;
  std::map<StreamId, SeenStream> streams;
  std::map<StreamId, Response> responses;
  SubmitStatus last_submit = SubmitStatus::kOk;
  bool blocked = false;
  std::size_t left_over = 0;
  std::uint64_t windows_opened = 0;
  std::uint64_t blocked_submits = 0;
  std::function<void(std::string_view)> on_output;  // all that the session sends

 private:
  struct Unsent {
    std::string body;
    std::size_t sent = 0;
    bool done = false;
  };

  static std::span<const std::byte> as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  }

  void output(std::string_view bytes) {
    raw_ += bytes;
    if (on_output) on_output(bytes);
  }

  bool pump(StreamId id, Unsent& rest) {
    const std::uint32_t room = session_->sendable(id);
    if (room == 0) return false;
    const auto n =
        static_cast<std::uint32_t>(std::min<std::size_t>(room, rest.body.size() - rest.sent));
    const bool end = rest.sent + n == rest.body.size();
    // Headroom and payload in one buffer, as an owner would have them.
    std::vector<std::byte> buffer(kFrameHeaderBytes + n);
    std::copy_n(reinterpret_cast<const std::byte*>(rest.body.data()) + rest.sent, n,
                buffer.begin() + kFrameHeaderBytes);
    const DataFrame frame{std::span<std::byte, kFrameHeaderBytes>(buffer.data(), kFrameHeaderBytes),
                          n, end};
    if (!session_->write_data(id, frame, now)) return false;
    output({reinterpret_cast<const char*>(buffer.data()), buffer.size()});
    rest.sent += n;
    rest.done = end;
    return true;
  }

  void parse() {
    std::size_t at = 0;
    while (raw_.size() - at >= kFrameHeaderBytes) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(raw_.data()) + at;
      const FrameHeader header = read_frame_header(bytes);
      if (raw_.size() - at < kFrameHeaderBytes + header.length) break;
      frames.push_back({header, raw_.substr(at + kFrameHeaderBytes, header.length)});
      at += kFrameHeaderBytes + header.length;
      understand(frames.back());
    }
    raw_.erase(0, at);
  }

  void understand(const OutFrame& frame) {
    const StreamId id = frame.header.stream;
    if (frame.header.is(FrameType::kHeaders)) decode(frame.payload, responses[id].fields);
    if (frame.header.is(FrameType::kData)) responses[id].body += frame.payload;
    const bool carries = frame.header.is(FrameType::kHeaders) || frame.header.is(FrameType::kData);
    if (carries && frame.header.has(flag::kEndStream)) responses[id].ended = true;
  }

  void decode(const std::string& block, wire::Fields& into) {
    if (inflater_ == nullptr) nghttp2_hd_inflate_new(&inflater_);
    const auto* at = reinterpret_cast<const std::uint8_t*>(block.data());
    std::size_t left = block.size();
    for (;;) {
      nghttp2_nv nv;
      int flags = 0;
      const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &nv, &flags, at, left, 1);
      if (used < 0) {
        into.emplace_back("undecodable", "");
        return;
      }
      at += used;
      left -= static_cast<std::size_t>(used);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
        into.emplace_back(std::string(reinterpret_cast<char*>(nv.name), nv.namelen),
                          std::string(reinterpret_cast<char*>(nv.value), nv.valuelen));
      if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
    }
    nghttp2_hd_inflate_end_headers(inflater_);
  }

  void maybe_answer(StreamId id) {
    if (options_.answer) respond(id, options_.body);
  }

  // SessionEvents
  void* on_request(StreamId id, const RequestHead& head) override {
    if (options_.refuse) return nullptr;
    SeenStream& s = streams[id];
    s.method = head.meta.method;
    s.scheme = head.meta.scheme;
    s.authority = head.meta.authority;
    s.path = head.meta.path;
    s.body_length = head.body_length;
    s.end_stream = head.end_stream;
    for (const HeaderView& field : head.headers) s.fields.emplace_back(field.name, field.value);
    if (options_.grant && !head.end_stream) session_->grant(id, 16384);
    if (head.end_stream) {
      s.complete = true;
      maybe_answer(id);
    }
    return &s;
  }
  void on_body(StreamId id, void* user, const BodyChunk& chunk) override {
    auto& s = *static_cast<SeenStream*>(user);
    s.body += chunk.text();
    if (chunk.last()) {
      s.complete = true;
      maybe_answer(id);
    } else if (options_.grant) {
      session_->grant(id, chunk.len);
    }
  }
  void on_trailers(StreamId /*id*/, void* user, const HeaderList& trailers) override {
    auto& s = *static_cast<SeenStream*>(user);
    for (const HeaderView& field : trailers) s.trailers.emplace_back(field.name, field.value);
  }
  void on_stream_end(StreamId id, void* user, StreamEnd end, ErrorCode code) override {
    auto& s = *static_cast<SeenStream*>(user);
    s.ended = true;
    s.end = end;
    s.code = code;
    if (options_.release) session_->release(id);
  }
  void on_windows_opened() override { ++windows_opened; }

  PeerOptions options_;
  SessionKit kit_;
  std::vector<Page> memory_;
  SessionPtr session_;
  std::string raw_;
  std::map<StreamId, Unsent> unsent_;
  nghttp2_hd_inflater* inflater_ = nullptr;
};

}  // namespace weir::inline v0::http::h2
