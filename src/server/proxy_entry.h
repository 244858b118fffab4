#pragma once

#include <string_view>

#include "weir/base/time.h"
#include "weir/experimental/server/proxy_result.h"

#include "http/proxy_header.h"
#include "session.h"

namespace weir::inline v0::inline server {

class Connection;

/// The first session of a connection to a listener that requires a PROXY header: from its first
/// byte to the end of the header. Then TLS begins (TlsEntry), or HTTP.
///
/// Meanwhile a connection holds its place, and a stage buffer while it has sent a part of the
/// header; it is counted for no source, because all clients of a proxy have one address until here.
/// The deadline is counted from the accept: header_timeout, or tls.handshake_timeout with TLS. A
/// missing, malformed or late header closes the connection without an answer.
class ProxyEntry final : public Session {
 public:
  explicit ProxyEntry(Connection& connection) noexcept : connection_(connection) {}
  ProxyEntry(const ProxyEntry&) = delete;
  ProxyEntry& operator=(const ProxyEntry&) = delete;

  bool advance(TimePoint now) override;
  bool on_flushed(TimePoint) override { return false; }
  void on_end_of_input(TimePoint now) override;
  void on_disconnected(TimePoint now) override { on_end_of_input(now); }
  void end_streams(CloseReason reason) override;
  bool wants_input() const noexcept override { return !over_; }
  /// It counts as idle under pressure, like an incomplete ClientHello.
  bool idle() const noexcept override { return !over_; }
  bool unused() const noexcept override { return true; }
  bool critical() const noexcept override { return false; }
  bool wants_room() const noexcept override { return false; }
  TimePoint deadline() const noexcept override;
  void on_deadline(TimePoint now) override;
  void on_drain() override;

 private:
  void take(const http::ProxyHeader& header);
  void refuse_source(const io::Address& source);
  void refuse(ProxyResult result, std::string_view why);
  void over(ProxyResult result) noexcept;

  Connection& connection_;
  bool over_ = false;
};

}  // namespace weir::inline v0::inline server
