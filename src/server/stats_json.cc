#include "weir/experimental/server/stats_json.h"

#include <string_view>

#include "weir/experimental/server/memory_budget.h"

namespace weir::inline v0::server {
namespace {

/// Names here are our own and need no escaping.
class JsonObject {
 public:
  explicit JsonObject(std::string& out) : out_(out) { out_ += '{'; }
  ~JsonObject() { out_ += '}'; }
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;

  void number(std::string_view name, std::uint64_t value) {
    key(name);
    out_ += std::to_string(value);
  }
  void text(std::string_view name, std::string_view value) {
    key(name);
    out_ += '"';
    out_ += value;
    out_ += '"';
  }
  void pool(std::string_view name, const PoolStats& stats) {
    key(name);
    JsonObject inner(out_);
    inner.number("used", stats.used);
    inner.number("peak", stats.peak);
    inner.number("capacity", stats.capacity);
    inner.number("exhausted", stats.exhausted);
  }
  void key(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }

 private:
  std::string& out_;
  bool first_ = true;
};

}  // namespace

std::string stats_json(const ServerStats& stats, const ServerConfig& config) {
  std::string out;
  {
    JsonObject all(out);
    all.pool("connections", stats.connections);
    all.pool("read_regions", stats.read_regions);
    all.pool("write_buffers", stats.write_buffers);
    all.pool("arenas", stats.arenas);
    all.pool("pending_streams", stats.pending_streams);
    all.pool("backpressure", stats.backpressure);
    all.pool("http2_sessions", stats.h2_sessions);
    all.pool("streams", stats.streams);
    all.pool("body_leases", stats.body_leases);
    all.pool("handshake_slots", stats.tls.handshake_slots);
    all.number("idle_connections", stats.idle_connections);
    all.number("accepted", stats.accepted);
    all.number("requests", stats.requests);
    all.number("responses_1xx", stats.responses_1xx);
    all.number("responses_2xx", stats.responses_2xx);
    all.number("responses_3xx", stats.responses_3xx);
    all.number("responses_4xx", stats.responses_4xx);
    all.number("responses_5xx", stats.responses_5xx);
    all.number("bytes_received", stats.bytes_received);
    all.number("bytes_sent", stats.bytes_sent);
    all.number("bytes_copied_in", stats.bytes_copied_in);
    all.number("tunnels", stats.tunnels);
    all.number("critical_shed", stats.critical_shed);
    all.number("write_slab_exhaustion_count", stats.write_slab_exhaustion_count);
    all.number("pending_write_queue_len", stats.pending_write_queue_len);
    all.number("handshakes_waiting", stats.tls.handshakes_waiting);
    all.number("key_updates_exceeded", stats.tls.key_updates_exceeded);
    all.number("tls_memory_bytes", stats.tls.memory_bytes);
    all.number("tls_memory_peak_bytes", stats.tls.memory_peak_bytes);
    all.number("tls_memory_budget_bytes", stats.tls.memory_budget_bytes);
    all.number("tls_memory_refused", stats.tls.memory_refused);
    all.text("pressure", name_of(stats.pressure));
    all.number("ceiling_bytes", worst_case_bytes(config));
    all.number("http2_connections", stats.h2_connections);
    all.number("http2_requests", stats.h2_requests);
    all.number("http2_goaways", stats.h2_goaways);
    all.number("http2_outbound_frames_peak", stats.h2_outbound_frames_peak);
    const auto each = [&](std::string_view key, const auto& names, const auto& counts) {
      all.key(key);
      JsonObject object(out);
      for (std::size_t i = 0; i < counts.size(); ++i) {
        if (names[i] != "none") object.number(names[i], counts[i]);
      }
    };
    each("handshakes", kHandshakeResultNames, stats.tls.handshakes);
    each("closed", kCloseReasonNames, stats.closed);
    each("http2_glitches", http::kH2GlitchNames, stats.h2_glitches);
    each("http2_ended", http::h2::kSessionEndNames, stats.h2_ended);
    each("http2_aborted", kCloseReasonNames, stats.h2_aborted);
    each("refused", kRefuseReasonNames, stats.refused);
  }
  out += '\n';
  return out;
}

}  // namespace weir::inline v0::server
