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

namespace weir::inline v0::io {

enum class TlsHandshake : std::uint8_t { kDone, kAgain, kFailed };
enum class TlsProtocol : std::uint8_t { kHttp1, kHttp2 };

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
/// Thread-safety: its loop's thread. Cost: one system call per record written, one or two per read.
/// Lifetime: the socket must outlive it; it keeps its context alive.
class TlsStream {
 public:
  TlsStream() = default;
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;
  ~TlsStream() { end(); }

  /// Creates the TLS object. `server_name` is for clients: the name to send and to verify. False if
  /// there is no memory.
  [[nodiscard]] bool begin(TlsContext::Ptr context, Socket& socket,
                           const std::string& server_name = {});
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
  /// The reason of a failure, for a log; empty if there was none.
  [[nodiscard]] std::string_view failure() const noexcept { return failure_; }
  [[nodiscard]] SSL* native() const noexcept { return ssl_; }

 private:
  struct Bio;  // OpenSSL's callbacks
  friend struct Bio;

  [[nodiscard]] IoError failed(int result, bool writing) noexcept;
  [[nodiscard]] IoError classify() noexcept;
  void count_key_update() noexcept;

  SSL* ssl_ = nullptr;
  Socket* socket_ = nullptr;
  TlsContext::Ptr context_;
  std::span<const std::byte> staged_;
  std::string_view failure_;
  TimePoint key_updates_since_{};
  std::uint32_t key_updates_ = 0;
  IoError io_error_ = IoError::kAgain;  // the socket's last error except kAgain
  bool established_ = false;
  bool broken_ = false;
  bool saw_end_ = false;  // the socket returned kEof
  bool read_needs_write_ = false;
  bool write_needs_read_ = false;
  bool too_many_key_updates_ = false;
};

}  // namespace weir::inline v0::io
