#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"
#include "weir/base/enum_names.h"
#include "weir/base/time.h"

namespace weir::inline v0::http {

/// Something a peer does that costs work before any useful work is done. Each kind adds its weight
/// to the connection's glitch score. The names are stable: they are metric labels.
enum class H2Glitch : std::uint8_t {
  kEarlyReset,             // a request was reset before its response began
  kRefusedStream,          // a stream beyond the limit
  kClosedStreamFrame,      // a frame for a stream that has ended
  kWindowUpdateZero,       // WINDOW_UPDATE by 0: the stream must be reset
  kWindowOverflow,         // WINDOW_UPDATE beyond 2^31-1: the stream must be reset
  kBadPriority,            // PRIORITY of a wrong length: the stream must be reset
  kSelfDependency,         // a stream that depends on itself: it must be reset
  kFlowControl,            // DATA beyond the stream's window: it must be reset
  kMalformedMessage,       // a request or trailer section that RFC 9113 §8 forbids
  kContentLengthMismatch,  // DATA whose length differs from content-length
  kHeadersTooLarge,        // a header list beyond the limits in bytes or in fields
  kSmallFragment,          // a header block split into very small frames
  kEmptyFrame,             // DATA or CONTINUATION without content and without an end flag
  kPriorityFlood,          // PRIORITY beyond its budget
  kSettingsFlood,          // SETTINGS beyond its budget
  kPingFlood,              // PING beyond its budget
  kWindowUpdateFlood,      // WINDOW_UPDATE beyond its budget
  kUnknownFrame,           // frames of unknown type beyond their budget
  kUngrantedData,          // DATA for a stream whose body is not read
  kCount,
};
inline constexpr std::size_t kH2GlitchCount = static_cast<std::size_t>(H2Glitch::kCount);
WEIR_ENUM_NAMES(H2Glitch, "early_reset", "refused_stream", "closed_stream_frame",
                "window_update_zero", "window_overflow", "bad_priority", "self_dependency",
                "flow_control", "malformed_message", "content_length_mismatch", "headers_too_large",
                "small_fragment", "empty_frame", "priority_flood", "settings_flood", "ping_flood",
                "window_update_flood", "unknown_frame", "ungranted_data")
static_assert(kH2GlitchNames.size() == kH2GlitchCount);

/// How many frames of one kind are free: `burst` at once, then more with time or with work done.
struct H2FrameBudget {
  std::uint32_t burst = 0;
  std::uint32_t per_second = 0;      // added per second
  std::uint32_t per_stream = 0;      // added by each request
  std::uint32_t per_frame_sent = 0;  // added by each DATA frame that is sent

  bool operator==(const H2FrameBudget&) const = default;
};

/// All bounds of one HTTP/2 connection. The same bounds apply to connections to upstreams.
///
/// Thread-safety: a value. validate() returns all errors, with the keys of the configuration file.
struct H2Limits {
  // Streams and windows.
  std::uint32_t concurrent_streams_max = 100;
  std::uint32_t stream_window_bytes = 16 * 1024;  // a stream's window before its owner grants more
  std::uint32_t connection_window_bytes = 65535;  // returned as the bytes leave the session

  // Header blocks: wire bytes and frames; then, while decoding, fields and bytes (name + value +
  // 32). Too long on the wire ends the connection, too large when decoded is answered with 431.
  std::uint32_t header_block_bytes_max = 32 * 1024;
  std::uint32_t header_fragments_max = 16;
  std::uint32_t small_fragment_bytes = 1024;  // smaller frames without an end flag …
  std::uint32_t small_fragments_free = 4;     // … are glitches, except this many per block
  std::uint32_t header_list_bytes_max = 16 * 1024;
  std::uint32_t header_count_max = 100;
  std::uint32_t uri_bytes_max = 8 * 1024;
  std::uint32_t trailer_list_bytes_max = 4 * 1024;
  std::uint32_t trailer_count_max = 32;
  std::uint32_t settings_entries_max = 32;

  // CONNECT with :protocol is announced and accepted (RFC 8441); set by those who can serve it.
  bool extended_connect = false;

  // Memory: all that the codec allocates for one connection, and frames that are not sent yet.
  std::uint32_t session_bytes_max = 112 * 1024;
  std::uint32_t outbound_frames_max = 64;    // reading stops at half of it
  std::uint32_t late_frames_per_reset = 16;  // frames still arriving after a reset: free

  // The glitch score: decreases per second; GOAWAY at a share of the limit, closed at the limit.
  std::uint32_t glitch_limit = 1000;
  std::uint32_t glitch_decay_per_second = 33;
  std::uint32_t glitch_goaway_percent = 75;
  std::array<std::uint8_t, kH2GlitchCount> glitch_weights = {1, 1, 1, 2, 2, 2, 2, 2, 2, 2,
                                                             2, 5, 5, 1, 2, 1, 1, 1, 1};

  // Budgets of frames that are free.
  H2FrameBudget priority_budget = {.burst = 64, .per_second = 1, .per_stream = 4};
  H2FrameBudget settings_budget = {.burst = 16, .per_second = 1};
  H2FrameBudget ping_budget = {.burst = 64, .per_second = 20, .per_frame_sent = 1};
  H2FrameBudget window_update_budget = {
      .burst = 32, .per_second = 1, .per_stream = 2, .per_frame_sent = 20};
  H2FrameBudget unknown_budget = {.burst = 64, .per_second = 1, .per_stream = 2};

  // Deadlines.
  Duration settings_ack_timeout = std::chrono::seconds(10);
  Duration header_block_timeout = std::chrono::seconds(10);  // first byte to END_HEADERS

  bool operator==(const H2Limits&) const = default;

  [[nodiscard]] std::uint32_t weight_of(H2Glitch glitch) const noexcept {
    return glitch_weights[static_cast<std::size_t>(glitch)];
  }
  [[nodiscard]] ConfigErrors validate(std::string_view prefix = "http2.") const;
};

namespace internal {
inline void check_budget(ConfigErrors& errors, const std::string& key,
                         const H2FrameBudget& budget) {
  constexpr std::uint32_t kMost = 1'000'000;
  check_range(errors, key + "_burst", budget.burst, 0U, kMost);
  check_range(errors, key + "_per_second", budget.per_second, 0U, kMost);
  check_range(errors, key + "_per_stream", budget.per_stream, 0U, kMost);
  check_range(errors, key + "_per_frame_sent", budget.per_frame_sent, 0U, kMost);
}
}  // namespace internal

inline ConfigErrors H2Limits::validate(std::string_view prefix) const {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  constexpr std::uint32_t kKilo = 1024;
  constexpr std::uint32_t kMega = 1024 * kKilo;
  constexpr std::uint32_t kWindowMax = 0x7fffffff;
  ConfigErrors errors;
  const std::string p(prefix);
  const auto count = [&](const char* key, std::uint32_t value, std::uint32_t low,
                         std::uint32_t high) { check_range(errors, p + key, value, low, high); };
  count("concurrent_streams_max", concurrent_streams_max, 1, 1000);
  count("stream_window_bytes", stream_window_bytes, 0, kWindowMax);
  count("connection_window_bytes", connection_window_bytes, 65535, kWindowMax);
  count("header_block_bytes_max", header_block_bytes_max, 256, kMega);
  count("header_fragments_max", header_fragments_max, 1, 10'000);
  count("small_fragment_bytes", small_fragment_bytes, 0, 16 * kKilo);
  count("small_fragments_free", small_fragments_free, 0, 10'000);
  count("header_list_bytes_max", header_list_bytes_max, 256, kMega);
  count("header_count_max", header_count_max, 1, 250);
  count("uri_bytes_max", uri_bytes_max, 16, header_list_bytes_max);
  count("trailer_list_bytes_max", trailer_list_bytes_max, 64, kMega);
  count("trailer_count_max", trailer_count_max, 0, 250);
  count("settings_entries_max", settings_entries_max, 6, 1000);
  count("session_bytes_max", session_bytes_max, 48 * kKilo, 8 * kMega);
  // Less, and a client that uses the streams it is allowed runs out of it: its connection ends.
  const std::uint64_t needed = 48 * kKilo + std::uint64_t{640} * concurrent_streams_max;
  if (session_bytes_max < needed) {
    add_error(errors, p + "session_bytes_max", std::to_string(session_bytes_max),
              "at least " + std::to_string(needed) + ": 48 KiB and 640 bytes for each of " +
                  "concurrent_streams_max");
  }
  count("outbound_frames_max", outbound_frames_max, 8, 10'000);
  count("late_frames_per_reset", late_frames_per_reset, 0, 10'000);
  count("glitch_limit", glitch_limit, 1, 1'000'000);
  count("glitch_decay_per_second", glitch_decay_per_second, 1, 1'000'000);
  count("glitch_goaway_percent", glitch_goaway_percent, 1, 100);
  internal::check_budget(errors, p + "priority", priority_budget);
  internal::check_budget(errors, p + "settings", settings_budget);
  internal::check_budget(errors, p + "ping", ping_budget);
  internal::check_budget(errors, p + "window_update", window_update_budget);
  internal::check_budget(errors, p + "unknown", unknown_budget);
  check_range(errors, p + "settings_ack_timeout_ms", settings_ack_timeout,
              Duration(milliseconds(1)), Duration(hours(1)));
  check_range(errors, p + "header_block_timeout_ms", header_block_timeout,
              Duration(milliseconds(1)), Duration(hours(1)));
  return errors;
}

}  // namespace weir::inline v0::http
