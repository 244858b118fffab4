#include "request_log.h"

#include <cstdio>
#include <ctime>

#include "weir/experimental/io/clock.h"

#include "log_line.h"

namespace weir::inline v0::gateway {
namespace {

/// The ALPN name.
std::string_view name_of(HttpVersion version) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"http/1.0", "http/1.1", "h2"};
  return kNames[static_cast<std::size_t>(version)];
}

}  // namespace

void RequestNote::take_id(const http::HeaderList& headers, std::string_view made) noexcept {
  const std::string_view own = headers.value(http::FieldId::kXRequestId);
  id = own.empty() ? made : own;
  id_whole = own.size() <= id.view().size();
}

void RequestNote::take(const ServerRequest& request, const Caller& caller) {
  taken = true;
  version = request.version;
  client = caller.client;
  method = request.meta.method;
  host = request.meta.authority;
  path = request.meta.path.substr(0, request.meta.path.find('?'));
}

void RequestNote::take_actor(const Actor& found) noexcept {
  actor_known = found.identity.present();
  actor_kind = found.kind;
  actor_id = found.identity.key.low;
  actor = found.identity.label;
}

std::string_view format_log_entry(const LogEntry& entry, std::string_view time,
                                  AccessLogFormat format, std::span<char> out) noexcept {
  const RequestNote& note = entry.note;
  LogLine line(format, out);
  line.text("time", time);
  line.text("id", note.id.view());
  if (note.client) line.text("client", text_of(*note.client).view());
  line.text("protocol", name_of(note.version));
  line.text("method", note.method.view());
  line.text("host", note.host.view());
  line.text("path", note.path.view());
  line.number("status", entry.status);
  line.text("class", name_of(entry.priority));
  if (!entry.upstream.empty()) line.text("upstream", entry.upstream);
  if (!entry.endpoint.empty()) line.text("endpoint", entry.endpoint);
  if (note.actor_known) {
    line.text("actor_by", name_of(note.actor_kind));
    if (note.actor.view().empty()) {
      line.number_text("actor", note.actor_id);
    } else {
      line.text("actor", note.actor.view());
    }
  }
  if (!entry.reason.empty()) line.text("reason", entry.reason);
  if (!entry.aborted.empty()) line.text("aborted_by", entry.aborted);
  if (!entry.slow.empty()) line.text("slow", entry.slow);
  if (!entry.tunnel.empty()) line.text("tunnel_ended_by", entry.tunnel);
  line.millis("ms", entry.total);
  if (entry.waited.count() > 0) line.millis("wait_ms", entry.waited);
  if (note.limit > 0) line.number("limit", note.limit);
  if (entry.upstream_time.count() > 0) line.millis("upstream_ms", entry.upstream_time);
  if (entry.attempts > 1) line.number("attempts", entry.attempts);
  if (!entry.late_endpoint.empty()) {
    line.text("hedge", entry.late_endpoint == entry.endpoint ? "lost" : "won");
    line.text("late_endpoint", entry.late_endpoint);
    line.millis("hedged_after_ms", entry.hedged_after);
  }
  if (!entry.hedge_skipped.empty()) line.text("hedge_skipped", entry.hedge_skipped);
  line.number("bytes_in", entry.bytes_in);
  line.number("bytes_out", entry.bytes_out);
  return line.finish();
}

bool RequestLog::wants(const LogEntry& entry, std::int64_t second) noexcept {
  const RequestNote& note = entry.note;
  if (rules_.focus != nullptr &&
      rules_.focus->takes({.actor = note.actor_known ? note.actor_id : 0, .route = note.route})) {
    return true;
  }
  switch (rules_.mode) {
    case AccessLog::kOff:
      return false;
    case AccessLog::kAll:
      return true;
    case AccessLog::kSampled:
      return rng_.chance(rules_.sample);
    case AccessLog::kErrors:
      break;
  }
  const bool refused = !entry.reason.empty() && entry.attempts == 0;
  if (!refused) return entry.status >= 500 || !entry.aborted.empty() || !entry.reason.empty();
  if (second != refusals_second_) {
    refusals_second_ = second;
    refusals_.fill(0);
  }
  const std::hash<std::string_view> hash;
  const std::size_t kind = hash(entry.upstream) * 31 + hash(entry.reason);
  return ++refusals_[kind % refusals_.size()] <= kRefusalsPerSecond;
}

void RequestLog::record(const LogEntry& entry) noexcept {
  if (!on() || !entry.note.taken) return;
  const std::int64_t now = io::unix_millis();
  if (!wants(entry, now / 1000)) return;
  std::array<char, 2048> line;
  static_cast<void>(writer_->write(format_log_entry(entry, time_text(now), rules_.format, line)));
}

std::string_view RequestLog::time_text(std::int64_t unix_millis) noexcept {
  constexpr std::size_t kToSeconds = 19;  // "2026-01-02T03:04:05"
  const std::int64_t second = unix_millis / 1000;
  if (second != time_second_) {
    const auto whole = static_cast<std::time_t>(second);
    std::tm utc{};
    ::gmtime_r(&whole, &utc);
    static_cast<void>(std::strftime(time_.data(), time_.size(), "%Y-%m-%dT%H:%M:%S", &utc));
    time_second_ = second;
  }
  const auto millis = static_cast<int>(unix_millis % 1000);
  std::snprintf(time_.data() + kToSeconds, time_.size() - kToSeconds, ".%03dZ", millis);
  return {time_.data(), kToSeconds + 5};
}

}  // namespace weir::inline v0::gateway
