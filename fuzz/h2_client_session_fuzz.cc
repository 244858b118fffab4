// Any bytes as an HTTP/2 server's stream to our client: bounds hold, accepted messages are valid in
// HTTP/1.1 too, and the result does not depend on how the bytes are cut. An input that starts with
// 0xff selects frames instead, mostly valid ones, so that code behind the first error is reached.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/assert.h"

#include "fuzz/pieces.h"
#include "http/h2/client_session_testing.h"

namespace {

using namespace weir::http::h2::wire;
using weir::http::h2::SeenResponse;
using weir::http::h2::StreamId;
using weir::http::h2::TestClient;

constexpr int kSent = 12;   // streams whose heads are sent before the input
constexpr int kQueued = 3;  // streams whose heads are not

class Script {
 public:
  Script(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  std::string bytes() {
    std::string out = settings() + settings_ack();
    while (at_ != end_ && out.size() < 200'000) out += next();
    return out;
  }

 private:
  std::uint32_t take() { return at_ == end_ ? 0 : *at_++; }
  std::uint32_t stream() { return 2 * (take() % (kSent + 1)) + 1; }
  std::string text(std::uint32_t most) {
    const std::uint32_t wanted = take() % most;
    std::string out;
    while (out.size() < wanted && at_ != end_) out += static_cast<char>(*at_++);
    return out;
  }
  std::string fields() {
    static constexpr std::array<const char*, 6> kCodes = {"200", "103", "204", "304", "101", "100"};
    Fields all = status(kCodes[take() % kCodes.size()]);
    for (std::uint32_t n = take() % 4; n > 0; --n) all.emplace_back(text(12), text(40));
    if (take() % 8 == 0) all.emplace_back("content-length", std::to_string(take()));
    if (take() % 16 == 0) all.erase(all.begin());
    std::string out = block(all);
    if (take() % 8 == 0) out += indexed_literal("x-i", text(30)) + index(62 + take() % 3);
    if (take() % 16 == 0) out += text(20);
    return out;
  }
  std::string next() {
    const std::uint32_t flags = take();
    const std::uint32_t end = flags & 1U;
    switch (take() % 16) {
      case 0:
      case 1:
      case 2:
      case 3:
        return headers_raw(stream(), fields(), kEndHeaders | end);
      case 4: {
        const std::uint32_t id = stream();
        return headers_raw(id, fields(), end) + continuation(id, text(50), 0) +
               continuation(id, literal("x", "y"));
      }
      case 5:
      case 6:
        return data(stream(), text(200), end);
      case 7:
        return data(stream(), u8(take()) + text(200), end | kPadded);
      case 8:
        return headers_raw(stream(), literal("t", text(9)), kEndHeaders | kEnd);
      case 9:
        return rst(stream(), take());
      case 10:
        return window_update(flags % 3 == 0 ? 0 : stream(), take() << (take() % 32));
      case 11:
        return settings({{take() % 10, take() << (take() % 32)}});
      case 12:
        return flags % 2 == 0 ? ping() : frame(6, kAck, 0, u32(take()) + u32(0));
      case 13:
        return goaway(stream(), take());
      case 14:
        return frame(take(), flags, stream(), text(30));
      default:
        return settings_ack();
    }
  }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

struct Outcome {
  std::map<StreamId, SeenResponse> streams;
  std::vector<std::uint64_t> counts;
  weir::http::h2::SessionEnd end = weir::http::h2::SessionEnd::kNone;
  std::string frames;

  bool operator==(const Outcome&) const = default;
};

void hold_bounds(TestClient& client, const weir::http::H2Limits& limits) {
  const weir::http::h2::SessionStats stats = client.session().stats(client.now);
  WEIR_ASSERT(stats.outbound_frames <= limits.outbound_frames_max);
  WEIR_ASSERT(stats.streams <= limits.concurrent_streams_max);
  WEIR_ASSERT(stats.memory_used <= limits.session_bytes_max);
  WEIR_ASSERT(client.session().capacity() <= limits.concurrent_streams_max);
}

void hold_message(const SeenResponse& stream) {
  using weir::http::h2::Processed;
  using weir::http::h2::StreamEnd;
  WEIR_ASSERT(stream.status == 0 || (stream.status >= 200 && stream.status <= 599));
  WEIR_ASSERT(stream.informed.size() <= 8);
  for (const auto& [name, value] : stream.fields) {
    WEIR_ASSERT(weir::http::is_valid_field_name(name) && weir::http::is_valid_field_value(value));
    WEIR_ASSERT(
        std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; }));
    WEIR_ASSERT(name != "connection" && name != "transfer-encoding");
  }
  if (stream.complete && stream.body_length) WEIR_ASSERT(stream.body.size() == *stream.body_length);
  if (!stream.ended) return;
  WEIR_ASSERT(stream.complete == (stream.end == StreamEnd::kDone));
  const bool answered = stream.status != 0 || !stream.informed.empty();
  WEIR_ASSERT(!answered || stream.processed == Processed::kYes);
}

void open_streams(TestClient& client) {
  static constexpr std::array<const char*, 3> kMethods = {"GET", "HEAD", "POST"};
  client.drain();
  for (int i = 0; i < kSent + kQueued; ++i) {
    if (i == kSent) client.drain();
    const char* method = kMethods[static_cast<std::size_t>(i % 3)];
    static_cast<void>(client.open({method, "http", "a", "/", {}, i % 3 != 2}));
    if (i < kSent && i % 3 == 2) client.write(weir::http::h2::id_of(i), "part", i % 2 == 0);
  }
  static_cast<void>(client.session().ping(client.now));
}

/// `next_cut` returns the number of bytes of each read. Output is read only when the session asks
/// for it and at the end, so that it depends only on the input.
template <class Cut>
Outcome play(std::string_view bytes, Cut next_cut) {
  const weir::http::H2Limits limits;
  weir::http::h2::OwnerOptions options;
  options.drain = false;
  weir::http::h2::ClientOptions client_options;
  client_options.streams_before_settings_max = kSent + kQueued;
  TestClient client(limits, options, client_options);
  open_streams(client);
  while (!bytes.empty() && client.alive()) {
    const std::string_view piece = bytes.substr(0, next_cut());
    bytes.remove_prefix(piece.size());
    const std::vector<char> copy(piece.begin(), piece.end());  // detects views kept too long
    client.send({copy.data(), copy.size()});
    hold_bounds(client, limits);
    while (client.blocked) {
      client.drain();
      client.send({copy.data() + (copy.size() - client.left_over), client.left_over});
      hold_bounds(client, limits);
    }
  }
  client.drain();
  WEIR_ASSERT(!client.session().has_output());
  WEIR_ASSERT(client.alive() || client.session().finished());
  WEIR_ASSERT(client.stayed_inside());
  client.library_session().heap().check();
  Outcome outcome{client.streams, {}, client.ended(), {}};
  for (const auto& [id, stream] : client.streams) hold_message(stream);
  for (std::size_t i = 0; i < weir::http::kH2GlitchCount; ++i)
    outcome.counts.push_back(client.glitches(static_cast<weir::http::H2Glitch>(i)));
  outcome.counts.push_back(client.capacity_changes);
  outcome.counts.push_back(client.session().capacity());
  outcome.counts.push_back(client.pongs.size());
  for (const weir::http::h2::OutFrame& f : client.frames) {
    WEIR_ASSERT(f.header.length <= 16384 && f.header.type <= 9);
    if (f.header.is(weir::http::h2::FrameType::kWindowUpdate)) continue;
    outcome.frames += std::to_string(f.header.type) + "/" + std::to_string(f.header.stream) + " ";
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (size > 0 && data[0] == 0xff) {
    bytes = Script(data + 1, size - 1).bytes();
  } else if (size < 4 || data[3] != 4) {  // otherwise it starts with SETTINGS itself
    bytes.insert(0, settings() + settings_ack());
  }
  const Outcome whole = play(bytes, [] { return std::string_view::npos; });
  weir::Rng rng(fuzz::seed_of(bytes));
  WEIR_ASSERT(play(bytes, [&] { return 1 + rng.below(rng.below(4) == 0 ? 4000 : 20); }) == whole);
  return 0;
}
