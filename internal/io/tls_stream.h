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

/// TLS on a Socket, in the same shape: read and write by readiness, nothing hidden but OpenSSL's
/// own record buffers, which are held only while they carry something.
///
/// OpenSSL receives straight from the socket into its record buffer, header and body of a record by
/// one call, decrypts in place and hands the plaintext out: two copies per byte, the kernel's and
/// that one. Bytes that were read before (stage()) come first.
///
/// Promises: kAgain means that interest() says what to wait for, which may be the other direction.
/// A write may be repeated from another address, with more bytes behind the old ones. Never
/// renegotiates; more key updates than allowed end it. OpenSSL's error queue is left empty.
/// Thread-safety: its loop's. Cost: one system call per record written, one or two per read.
/// Lifetime: the socket outlives it; it keeps its context alive.
class TlsStream {
 public:
  TlsStream() = default;
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;
  ~TlsStream() { end(); }

  /// Makes the TLS object. `server_name` is for clients: whom to ask for, and to expect. False when
  /// there is no memory.
  [[nodiscard]] bool begin(TlsContext::Ptr context, Socket& socket,
                           const std::string& server_name = {});
  /// Bytes from the socket that are already here; they must stay until staged_left() is 0.
  void stage(std::span<const std::byte> bytes) noexcept { staged_ = bytes; }
  [[nodiscard]] std::size_t staged_left() const noexcept { return staged_.size(); }
  /// Frees the TLS object.
  void end() noexcept;
  [[nodiscard]] bool active() const noexcept { return ssl_ != nullptr; }

  [[nodiscard]] TlsHandshake handshake() noexcept;
  [[nodiscard]] bool established() const noexcept { return established_; }

  [[nodiscard]] IoResult read(std::span<std::byte> into) noexcept;
  [[nodiscard]] IoResult write(std::span<const ConstBuffer> pieces) noexcept;
  /// Bytes wait that the socket will not announce.
  [[nodiscard]] bool has_pending() const noexcept;
  /// What the socket must be watched for, given what the owner wants to do.
  [[nodiscard]] Socket::Interest interest(Socket::Interest wanted) const noexcept;
  /// A read cannot go on before something was written.
  [[nodiscard]] bool read_needs_write() const noexcept { return read_needs_write_; }
  /// Says close_notify and ends our side.
  void shutdown_write() noexcept;

  [[nodiscard]] TlsProtocol protocol() const noexcept;
  [[nodiscard]] bool resumed() const noexcept;
  [[nodiscard]] std::string_view version() const noexcept;  // "TLSv1.3"
  /// The subject of the peer's verified certificate, "CN=…", written into `into`; empty without
  /// one.
  [[nodiscard]] std::string_view peer_subject(std::span<char> into) const noexcept;
  [[nodiscard]] bool too_many_key_updates() const noexcept { return too_many_key_updates_; }
  /// What ended a handshake that failed: kEof and kReset are the peer's doing.
  [[nodiscard]] IoError failed_by() const noexcept { return io_error_; }
  /// Why it failed, for a log; empty if it did not.
  [[nodiscard]] std::string_view failure() const noexcept { return failure_; }
  [[nodiscard]] SSL* native() const noexcept { return ssl_; }

 private:
  struct Bio;  // what OpenSSL calls
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
  IoError io_error_ = IoError::kAgain;  // the socket's last word but kAgain
  bool established_ = false;
  bool broken_ = false;
  bool saw_end_ = false;  // the socket's end
  bool read_needs_write_ = false;
  bool write_needs_read_ = false;
  bool too_many_key_updates_ = false;
};

}  // namespace weir::inline v0::io
