#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "weir/base/ip_range.h"
#include "weir/base/rng.h"
#include "weir/base/time.h"
#include "weir/experimental/gateway/gateway_config.h"
#include "weir/experimental/io/line_writer.h"
#include "weir/experimental/server/handler.h"
#include "weir/policy/priority.h"

#include "identity.h"
#include "log_focus.h"

namespace weir::inline v0::gateway {

/// The first bytes of a text, stored in place; a longer text is cut.
template <std::size_t Bytes>
class ShortText {
 public:
  ShortText& operator=(std::string_view text) noexcept {
    size_ = static_cast<std::uint8_t>(text.size() < Bytes ? text.size() : Bytes);
    for (std::size_t i = 0; i < size_; ++i) bytes_[i] = text[i];
    return *this;
  }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.data(), size_}; }

 private:
  static_assert(Bytes < 256);
  std::array<char, Bytes> bytes_;
  std::uint8_t size_ = 0;
};

/// What the log needs of a request after its head is gone. Contains nothing secret: no query, no
/// credentials; an actor identified by a credential appears only as a number.
struct RequestNote {
  /// The request's own id, else `made`, which was generated for it.
  void take_id(const http::HeaderList& headers, std::string_view made) noexcept;
  /// The rest, after take_id().
  void take(const ServerRequest& request, const Caller& caller);
  /// The id sent to the client; empty if the client's own id was too long to store.
  [[nodiscard]] std::string_view request_id() const noexcept {
    return id_whole ? id.view() : std::string_view{};
  }
  void take_actor(const Actor& found) noexcept;

  bool taken = false;
  bool id_whole = false;
  bool actor_known = false;
  std::optional<std::uint32_t> route{};  // its number
  IdentityKind actor_kind = IdentityKind::kHeader;
  HttpVersion version = HttpVersion::k11;
  std::uint32_t limit = 0;  // of its upstream when it was decided about
  std::uint64_t actor_id = 0;
  std::optional<IpAddress> client;
  ShortText<16> method;
  ShortText<64> host;
  ShortText<120> path;
  ShortText<128> id;
  ShortText<40> actor;
};

/// One request that has ended.
struct LogEntry {
  const RequestNote& note;
  std::uint16_t status = 0;  // 0: no response started
  std::string_view upstream;
  std::string_view endpoint;
  std::string_view reason;    // of a refusal or a failure
  std::string_view aborted;   // the side that aborted
  std::string_view slow{};    // the slow side, if a timeout ended it
  std::string_view tunnel{};  // of a tunnel: what ended it
  Priority priority = Priority::kNormal;
  std::uint32_t attempts = 0;
  std::string_view late_endpoint{};  // of a hedged request: who did not answer in time
  Duration hedged_after{};
  std::string_view hedge_skipped{};  // why a hedge that was due was not sent
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  Duration total{};
  Duration waited{};
  Duration upstream_time{};
};

/// Writes `entry` as one line without its newline; returns the part of `out` that was used. Text
/// from a client is escaped (log_line.h).
[[nodiscard]] std::string_view format_log_entry(const LogEntry& entry, std::string_view time,
                                                AccessLogFormat format,
                                                std::span<char> out) noexcept;

/// The access log as one loop writes it.
///
///   off      nothing
///   errors   responses from status 500 on, aborted ones, and at most kRefusalsPerSecond refusals
///            per upstream and reason (a few pairs may share one counter)
///   sampled  the configured share of requests
///   all      every request
///
/// In every mode, the requests of Rules::focus, while it has lines left.
/// Thread-safety: its loop's thread. Cost: none if off; otherwise about a microsecond per line.
class RequestLog {
 public:
  static constexpr std::uint32_t kRefusalsPerSecond = 100;
  struct Rules {
    AccessLog mode = AccessLog::kErrors;
    double sample = 0.01;
    AccessLogFormat format = AccessLogFormat::kJson;
    std::shared_ptr<LogFocus> focus{};  // whose requests are logged in every mode

    bool operator==(const Rules&) const = default;
  };

  /// The writer counts the lines that it drops.
  RequestLog(io::LineWriter* writer, Rng rng) noexcept : writer_(writer), rng_(rng) {}

  void set_rules(const Rules& rules) { rules_ = rules; }
  /// Whether a RequestNote is needed.
  [[nodiscard]] bool on() const noexcept {
    return writer_ != nullptr && (rules_.mode != AccessLog::kOff || rules_.focus != nullptr);
  }
  void record(const LogEntry& entry) noexcept;

  /// Only the decision; `second` is the current one.
  [[nodiscard]] bool wants(const LogEntry& entry, std::int64_t second) noexcept;

 private:
  /// "2026-01-02T03:04:05.678Z"
  [[nodiscard]] std::string_view time_text(std::int64_t unix_millis) noexcept;

  io::LineWriter* writer_;
  Rng rng_;
  Rules rules_;
  std::int64_t refusals_second_ = 0;
  std::array<std::uint32_t, 64> refusals_{};  // of this second, by upstream and reason
  std::int64_t time_second_ = -1;
  std::array<char, 32> time_{};
};

}  // namespace weir::inline v0::gateway
