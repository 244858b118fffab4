#include "io/tls_transport.h"

#include <array>
#include <utility>

#include <openssl/crypto.h>

namespace weir::inline v0::io {
constexpr std::size_t kSubjectMax = 512;  // a longer subject is ignored

bool TlsTransport::begin(io::TlsContext::Ptr context, io::Socket& socket,
                         std::span<const std::byte> staged) {
  if (!stream_.begin(std::move(context), socket)) return false;
  stream_.stage(staged);
  return true;
}

bool TlsTransport::begin(io::TlsContext::Ptr context, io::Socket& socket, io::TlsServer server) {
  return stream_.begin(std::move(context), socket, server);
}

io::TlsHandshake TlsTransport::handshake() noexcept {
  const io::TlsHandshake step = stream_.handshake();
  if (step != io::TlsHandshake::kDone) return step;
  std::array<char, kSubjectMax> buffer;
  const std::string_view subject = stream_.peer_subject(buffer);
  // Without memory for its name, the client is treated as one without a certificate.
  if (!subject.empty()) subject_ = OPENSSL_strndup(subject.data(), subject.size());
  return step;
}

void TlsTransport::end() noexcept {
  stream_.end();
  OPENSSL_free(std::exchange(subject_, nullptr));
}

io::IoResult TlsTransport::read(std::span<std::byte> into) noexcept {
  retry_read_ = false;
  if (!stream_.established()) return unexpected(io::IoError::kAgain);
  return stream_.read(into);
}

bool TlsTransport::has_pending() const noexcept {
  if (retry_read_) return true;
  // A read that needs a write first depends on the socket, not on another turn.
  return !stream_.read_needs_write() && stream_.has_pending();
}

void TlsTransport::shutdown_write() noexcept {
  said_goodbye_ = true;
  stream_.shutdown_write();
}

void TlsTransport::close(bool orderly) noexcept {
  // Not after a response that was cut off: close_notify would mark it as complete.
  if (orderly && !std::exchange(said_goodbye_, true)) stream_.shutdown_write();
  end();
}

}  // namespace weir::inline v0::io
