#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/assert.h"

#include "http/h2/session_testing.h"

/// Feeds a client's bytes to an HTTP/2 session and checks its promises.

namespace fuzz {

struct H2Outcome {
  std::map<weir::http::h2::StreamId, weir::http::h2::SeenStream> streams;
  std::map<weir::http::h2::StreamId, weir::http::h2::TestPeer::Response> responses;
  std::vector<std::uint64_t> glitches;
  weir::http::h2::SessionEnd end = weir::http::h2::SessionEnd::kNone;
  std::string frames;

  bool operator==(const H2Outcome&) const = default;
};

inline void hold_bounds(weir::http::h2::TestPeer& peer, const weir::http::H2Limits& limits) {
  const weir::http::h2::SessionStats stats = peer.session().stats(peer.now);
  WEIR_ASSERT(stats.outbound_frames <= limits.outbound_frames_max);
  WEIR_ASSERT(stats.streams <= limits.concurrent_streams_max);
  WEIR_ASSERT(stats.memory_used <= limits.session_bytes_max);
}

/// Accepted messages are valid in HTTP/1.1 too.
inline void hold_messages(const weir::http::h2::SeenStream& stream) {
  WEIR_ASSERT(weir::http::is_valid_field_name(stream.method));
  WEIR_ASSERT(!stream.authority.empty());
  for (const auto& [name, value] : stream.fields) {
    WEIR_ASSERT(weir::http::is_valid_field_name(name) && weir::http::is_valid_field_value(value));
    WEIR_ASSERT(
        std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; }));
    WEIR_ASSERT(name != "connection" && name != "transfer-encoding");
  }
  for (const char c : stream.path) WEIR_ASSERT(c > ' ' && c != 0x7f);
  if (stream.complete && stream.body_length) WEIR_ASSERT(stream.body.size() == *stream.body_length);
}

/// Windows open as bytes are read; when, and in how many steps, depends on the cuts. The total does
/// not: it never exceeds `window` plus the part of `sent` that was read.
inline void hold_windows(const weir::http::h2::TestPeer& peer, std::uint64_t window,
                         std::size_t sent) {
  std::map<weir::http::h2::StreamId, std::uint64_t> granted;
  for (const weir::http::h2::OutFrame& f : peer.frames) {
    if (f.header.is(weir::http::h2::FrameType::kWindowUpdate))
      granted[f.header.stream] += f.word(0);
  }
  for (const auto& [stream, bytes] : granted) WEIR_ASSERT(bytes <= window + sent);
}

/// `next_cut` returns the number of bytes of each read. Output is read only when the session asks
/// for it and at the end, so that it depends only on the input.
template <class Cut>
H2Outcome play_h2(std::string_view bytes, Cut next_cut) {
  const weir::http::H2Limits limits;
  weir::http::h2::PeerOptions options;
  options.drain = false;
  options.acknowledge = false;
  options.body = "a body";
  weir::http::h2::TestPeer peer(limits, options);
  const std::size_t sent = bytes.size();
  while (!bytes.empty() && peer.alive()) {
    const std::string_view piece = bytes.substr(0, next_cut());
    bytes.remove_prefix(piece.size());
    const std::vector<char> copy(piece.begin(), piece.end());  // detects views kept too long
    peer.send({copy.data(), copy.size()});
    hold_bounds(peer, limits);
    while (peer.blocked) {
      peer.drain();
      peer.send({copy.data() + (copy.size() - peer.left_over), peer.left_over});
      hold_bounds(peer, limits);
    }
  }
  peer.drain();
  WEIR_ASSERT(!peer.session().has_output());
  WEIR_ASSERT(peer.alive() || peer.session().finished());
  for (const auto& [id, stream] : peer.streams) hold_messages(stream);
  H2Outcome outcome{peer.streams, peer.responses, {}, peer.ended(), {}};
  for (std::size_t i = 0; i < weir::http::kH2GlitchCount; ++i)
    outcome.glitches.push_back(peer.glitches(static_cast<weir::http::H2Glitch>(i)));
  hold_windows(peer, limits.connection_window_bytes, sent);
  for (const weir::http::h2::OutFrame& f : peer.frames) {
    WEIR_ASSERT(f.header.length <= 16384 && f.header.type <= 9);
    if (f.header.is(weir::http::h2::FrameType::kWindowUpdate)) continue;
    outcome.frames += std::to_string(f.header.type) + "/" + std::to_string(f.header.stream) + " ";
  }
  return outcome;
}

}  // namespace fuzz
