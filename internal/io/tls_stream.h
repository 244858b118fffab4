#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "weir/base/time.h"
#include "weir/experimental/io/socket.h"

#include "io/tls_context.h"
#include "io/tls_sessions.h"

namespace weir::inline v0::io {

enum class TlsHandshake : std::uint8_t { kDone, kAgain, kFailed };
enum class TlsProtocol : std::uint8_t { kHttp1, kHttp2 };

/// The server that a client connects to.
struct TlsServer {
  /// The host name or the IP address ("192.0.2.1", "2001:db8::1") as the operator wrote it, never
  /// one that came from DNS. A name is sent (SNI) and verified; an address is only verified. The
  /// setup's server_name overrides it.
  std::string_view name;
  TlsSessions* sessions = nullptr;  // to resume; nullptr: every handshake is a full one
  bool http1_only = false;          // HTTP/2 is not offered, whatever the setup says
};

/// TLS on a Socket, with the same interface: reads and writes by readiness. It buffers nothing
/// except OpenSSL's own record buffers, which are held only while they have content.
///
/// OpenSSL receives directly from the socket into its record buffer, header and body of a record
/// with one call, decrypts in place and copies the plaintext out: two copies per byte, the kernel's
/// and that one. Bytes that were read before (stage()) come first.
///
/// Promises: after kAgain, interest() returns what to watch for, which may be the other direction.
/// A write may be repeated from another address, with more bytes after the old ones. Never
/// renegotiates; too many key updates end the connection. OpenSSL's error queue is left empty.
/// A client's handshake is done only if the server's certificate was verified for the server's name
/// (unless the setup says otherwise) and the agreed protocol is one that was offered. In TLS 1.3 a
/// server that refuses our certificate says so after our handshake is done: the first read fails.
/// Thread-safety: its loop's thread. Cost: one system call per record written, one or two per read.
/// Lifetime: the socket must outlive it; it keeps its context alive.
class TlsStream {
 public:
  TlsStream() = default;
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;
  ~TlsStream() { end(); }

  /// Creates the TLS object; `server` is for clients. False if there is no memory, or if a client
  /// that verifies has no name to verify: failure() tells.
  [[nodiscard]] bool begin(TlsContext::Ptr context, Socket& socket, TlsServer server = {});
  /// Bytes already received from the socket; they must stay valid until staged_left() is 0.
  void stage(std::span<const std::byte> bytes) noexcept { staged_ = bytes; }
  [[nodiscard]] std::size_t staged_left() const noexcept { return staged_.size(); }
  /// Frees the TLS object.
  void end() noexcept;
  [[nodiscard]] bool active() const noexcept { return ssl_ != nullptr; }

  [[nodiscard]] TlsHandshake handshake() noexcept;
  [[nodiscard]] bool established() const noexcept { return established_; }

  [[nodiscard]] IoResult read(std::span<std::byte> into) noexcept;
  [[nodiscard]] IoResult write(std::span<const ConstBuffer> pieces) noexcept;
  /// Whether bytes can be read for which the socket reports no further event.
  [[nodiscard]] bool has_pending() const noexcept;
  /// The socket events to watch for, given what the owner wants to do.
  [[nodiscard]] Socket::Interest interest(Socket::Interest wanted) const noexcept;
  /// A read cannot continue before something is written.
  [[nodiscard]] bool read_needs_write() const noexcept { return read_needs_write_; }
  /// Sends close_notify and ends the sending side.
  void shutdown_write() noexcept;

  /// The protocol agreed on by ALPN; HTTP/1.1 if the server did not answer it.
  [[nodiscard]] TlsProtocol protocol() const noexcept;
  [[nodiscard]] bool resumed() const noexcept {
    return ssl_ != nullptr && SSL_session_reused(ssl_) == 1;
  }
  [[nodiscard]] std::string_view version() const noexcept {
    return ssl_ == nullptr ? std::string_view{} : SSL_get_version(ssl_);
  }  // "TLSv1.3"
  /// The subject of the peer's verified certificate, "CN=…", written into `into`; empty without
  /// one.
  [[nodiscard]] std::string_view peer_subject(std::span<char> into) const noexcept;
  [[nodiscard]] bool too_many_key_updates() const noexcept { return too_many_key_updates_; }
  /// The error that ended a failed handshake: kEof and kReset are caused by the peer.
  [[nodiscard]] IoError failed_by() const noexcept { return io_error_; }
  /// The handshake failed because the peer's certificate was not accepted.
  [[nodiscard]] bool certificate_refused() const noexcept { return certificate_refused_; }
  /// The reason of a failure, for a log; empty if there was none. Of a certificate: "the peer's
  /// certificate is for another host", "… is self-signed and not trusted" and so on.
  [[nodiscard]] std::string_view failure() const noexcept { return failure_; }
  [[nodiscard]] SSL* native() const noexcept { return ssl_; }
  /// OpenSSL's callback of client contexts: keeps the session in the stream's TlsSessions.
  static int on_new_session(SSL* ssl, SSL_SESSION* session);

 private:
  struct Bio;  // OpenSSL's callbacks
  friend struct Bio;

  [[nodiscard]] bool begin_client(SSL* ssl, const TlsContext& context, TlsServer server);
  [[nodiscard]] bool accepts_result() noexcept;
  [[nodiscard]] IoError failed(int result, bool writing) noexcept;
  [[nodiscard]] IoError classify() noexcept;
  void count_key_update() noexcept;

  SSL* ssl_ = nullptr;
  Socket* socket_ = nullptr;
  TlsContext::Ptr context_;
  std::span<const std::byte> staged_;
  std::string_view failure_;
  TlsSessions* sessions_ = nullptr;
  bool http1_only_ = false;
  std::uint64_t claim_ = 0;  // on sessions_
  TimePoint key_updates_since_{};
  std::uint32_t key_updates_ = 0;
  IoError io_error_ = IoError::kAgain;  // the socket's last error except kAgain
  bool established_ = false;
  bool broken_ = false;
  bool saw_end_ = false;  // the socket returned kEof
  bool read_needs_write_ = false;
  bool end_unread_ = false;  // read() met the end or an error behind bytes that it returned
  bool write_needs_read_ = false;
  bool too_many_key_updates_ = false;
  bool certificate_refused_ = false;
};

}  // namespace weir::inline v0::io
