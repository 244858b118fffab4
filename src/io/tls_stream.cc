#include "io/tls_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <openssl/err.h>
#include <openssl/x509.h>

#include "weir/base/assert.h"
#include "weir/experimental/io/loop.h"

#include "tls_verification.h"

namespace weir::inline v0::io {

/// The BIO through which OpenSSL uses the socket.
struct TlsStream::Bio {
  static TlsStream& of(BIO* bio) noexcept { return *static_cast<TlsStream*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* into, std::size_t size, std::size_t* got) {
    TlsStream& self = of(bio);
    BIO_clear_retry_flags(bio);
    if (!self.staged_.empty()) {
      *got = std::min(size, self.staged_.size());
      std::memcpy(into, self.staged_.data(), *got);
      self.staged_ = self.staged_.subspan(*got);
      return 1;
    }
    if (self.too_many_key_updates_) return 0;  // end without reading the socket
    const IoResult result = self.socket_->read(std::as_writable_bytes(std::span(into, size)));
    if (result) {
      *got = *result;
      return 1;
    }
    if (result.error() == IoError::kAgain) {
      BIO_set_retry_read(bio);
    } else {
      self.saw_end_ = result.error() == IoError::kEof;
      self.io_error_ = result.error();
    }
    return 0;
  }

  static int write(BIO* bio, const char* from, std::size_t size, std::size_t* put) {
    TlsStream& self = of(bio);
    BIO_clear_retry_flags(bio);
    const IoResult result = self.socket_->write(std::as_bytes(std::span(from, size)));
    if (result) {
      *put = *result;
      return 1;
    }
    if (result.error() == IoError::kAgain) {
      BIO_set_retry_write(bio);
    } else {
      self.io_error_ = result.error();
    }
    return 0;
  }

  static long control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
    if (command == BIO_CTRL_FLUSH) return 1;
    if (command == BIO_CTRL_EOF) return of(bio).saw_end_ ? 1 : 0;
    return 0;
  }

  static void on_message(int write, int /*version*/, int type, const void* bytes, std::size_t size,
                         SSL* /*ssl*/, void* user) {
    const bool key_update = write == 0 && type == SSL3_RT_HANDSHAKE && size > 0 &&
                            *static_cast<const unsigned char*>(bytes) == SSL3_MT_KEY_UPDATE;
    if (key_update) static_cast<TlsStream*>(user)->count_key_update();
  }

  /// Created once; never freed.
  static const BIO_METHOD* method() noexcept {
    static const BIO_METHOD* const made = [] {
      BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weir socket");
      if (m == nullptr) return m;
      BIO_meth_set_read_ex(m, read);
      BIO_meth_set_write_ex(m, write);
      BIO_meth_set_ctrl(m, control);
      return m;
    }();
    return made;
  }
};

namespace {
constexpr std::size_t kRecordBytes = 16384;  // bytes that one record can carry

/// What is left of the pieces of a write, in parts for one record each.
class PieceReader {
 public:
  explicit PieceReader(std::span<const ConstBuffer> pieces) noexcept : pieces_(pieces) { skip(); }

  [[nodiscard]] bool done() const noexcept { return pieces_.empty(); }
  /// The next kRecordBytes bytes, or all: joined, if they are not in one piece.
  [[nodiscard]] ConstBuffer next(std::span<std::byte, kRecordBytes> joined) const noexcept {
    const std::size_t first = std::min(pieces_.front().size - offset_, kRecordBytes);
    if (pieces_.size() == 1 || first == kRecordBytes)
      return {pieces_.front().data + offset_, first};
    std::size_t size = 0;
    std::size_t from = offset_;
    for (const ConstBuffer& piece : pieces_) {
      const std::size_t part = std::min(piece.size - from, joined.size() - size);
      if (part > 0) std::memcpy(joined.data() + size, piece.data + from, part);
      size += part;
      from = 0;
      if (size == joined.size()) break;
    }
    return {joined.data(), size};
  }
  void consume(std::size_t bytes) noexcept {
    offset_ += bytes;
    skip();
  }

 private:
  void skip() noexcept {
    while (!pieces_.empty() && offset_ >= pieces_.front().size) {
      offset_ -= pieces_.front().size;
      pieces_ = pieces_.subspan(1);
    }
  }

  std::span<const ConstBuffer> pieces_;
  std::size_t offset_ = 0;  // into the first
};

constexpr std::size_t kServerNameMax = 253;
constexpr std::string_view kNoMemory = "no memory for a TLS connection";
constexpr std::string_view kNoServerName =
    "there is no name to verify the server by: set server_name";
constexpr std::string_view kLongServerName = "the server's name is longer than 253 bytes";
}  // namespace

bool TlsStream::begin(TlsContext::Ptr context, Socket& socket, TlsServer server) {
  WEIR_ASSERT(ssl_ == nullptr);
  ERR_clear_error();
  failure_ = kNoMemory;
  SSL* ssl = SSL_new(context->native());
  BIO* bio = Bio::method() == nullptr ? nullptr : BIO_new(Bio::method());
  if (ssl == nullptr || bio == nullptr) {
    SSL_free(ssl);
    BIO_free(bio);
    ERR_clear_error();
    return false;
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_msg_callback(ssl, Bio::on_message);
  SSL_set_msg_callback_arg(ssl, this);
  if (context->role() == TlsRole::kServer) {
    SSL_set_accept_state(ssl);
    SSL_set_options(ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);  // HTTP framing marks the end of requests
  } else {
    SSL_set_connect_state(ssl);
    SSL_set_app_data(ssl, this);
    if (!begin_client(ssl, *context, server)) {
      SSL_free(ssl);
      ERR_clear_error();
      return false;
    }
  }
  ssl_ = ssl;
  socket_ = &socket;
  context_ = std::move(context);
  io_error_ = IoError::kAgain;
  established_ = broken_ = saw_end_ = read_needs_write_ = write_needs_read_ = false;
  too_many_key_updates_ = certificate_refused_ = false;
  key_updates_ = 0;
  failure_ = {};
  return true;
}

constexpr std::array<unsigned char, 9> kHttp1Alpn = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

/// Sets which server is expected, and which session is to be resumed.
bool TlsStream::begin_client(SSL* ssl, const TlsContext& context, TlsServer server) {
  const TlsSetup& setup = context.setup();
  std::string_view name = setup.server_name.empty() ? server.name : setup.server_name;
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.size() > kServerNameMax || (name.empty() && setup.verify)) {
    failure_ = name.empty() ? kNoServerName : kLongServerName;
    return false;
  }
  if (!name.empty() && !expect_server(ssl, {.name = name, .verify = setup.verify})) return false;
  http1_only_ = server.http1_only;
  if (http1_only_ && SSL_set_alpn_protos(ssl, kHttp1Alpn.data(), kHttp1Alpn.size()) != 0) {
    return false;
  }
  sessions_ = server.sessions;
  if (sessions_ == nullptr) return true;
  claim_ = sessions_->claim({.context_id = context.id(), .server_name = name});
  if (SSL_SESSION* session = sessions_->take(); session != nullptr) {
    SSL_set_session(ssl, session);  // takes a reference; without it the handshake is a full one
    SSL_SESSION_free(session);
  }
  return true;
}

int TlsStream::on_new_session(SSL* ssl, SSL_SESSION* session) {
  const auto* self = static_cast<const TlsStream*>(SSL_get_app_data(ssl));
  const bool kept = self->sessions_ != nullptr && self->sessions_->keep(self->claim_, session);
  return kept ? 1 : 0;
}

void TlsStream::end() noexcept {
  if (ssl_ == nullptr) return;
  // Otherwise OpenSSL takes the end for a failure and forbids to resume the session. (A connection
  // that was cut off may be resumed since TLS 1.1.)
  if (context_->role() == TlsRole::kClient && established_ && !broken_) {
    SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  }
  SSL_free(std::exchange(ssl_, nullptr));
  ERR_clear_error();
  context_.reset();
  sessions_ = nullptr;
  staged_ = {};
}

TlsHandshake TlsStream::handshake() noexcept {
  if (broken_ || ssl_ == nullptr) return TlsHandshake::kFailed;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) {
    read_needs_write_ = write_needs_read_ = false;
    if (!accepts_result()) {
      broken_ = true;
      io_error_ = IoError::kTls;
      return TlsHandshake::kFailed;
    }
    established_ = true;
    return TlsHandshake::kDone;
  }
  const IoError error = failed(result, false);
  if (error == IoError::kAgain) {
    write_needs_read_ = !read_needs_write_;
    return TlsHandshake::kAgain;
  }
  if (io_error_ == IoError::kAgain) io_error_ = error;
  return TlsHandshake::kFailed;
}

/// What OpenSSL does not check: that the protocol was offered, and that there is one if HTTP/1.1
/// was not offered. The certificate was checked by the handshake; it is looked at once more because
/// a resumed session brings the result of an earlier one.
bool TlsStream::accepts_result() noexcept {
  const TlsSetup& setup = context_->setup();
  if (setup.role == TlsRole::kServer) return true;
  const long verified = SSL_get_verify_result(ssl_);
  if (setup.verify && verified != X509_V_OK) {
    certificate_refused_ = true;
    failure_ = text_of_verification(verified);
    return false;
  }
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_, &name, &size);
  const std::string_view agreed(reinterpret_cast<const char*>(name), size);
  if ((agreed == "h2" && setup.http2 && !http1_only_) || (agreed == "http/1.1" && setup.http1))
    return true;
  if (agreed.empty() && setup.http1) return true;
  failure_ = agreed.empty() ? "the server did not agree to HTTP/2"
                            : "the server chose a protocol that was not offered";
  return false;
}

/// The error of a failed call; for kAgain it records which direction is needed.
IoError TlsStream::failed(int result, bool writing) noexcept {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      if (writing) write_needs_read_ = true;
      return IoError::kAgain;
    case SSL_ERROR_WANT_WRITE:
      if (!writing) read_needs_write_ = true;
      return IoError::kAgain;
    case SSL_ERROR_ZERO_RETURN:
      return IoError::kEof;
    default:
      break;
  }
  broken_ = true;
  const IoError error = classify();
  ERR_clear_error();
  return error;
}

/// The first error is the reason; any of them may report missing memory.
IoError TlsStream::classify() noexcept {
  bool no_memory = false;
  bool first = true;
  while (const unsigned long code = ERR_get_error()) {
    no_memory = no_memory || ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE;
    if (!std::exchange(first, false)) continue;
    const char* reason = ERR_reason_error_string(code);
    failure_ = reason != nullptr ? reason : "unknown TLS error";
    if (ERR_GET_LIB(code) == ERR_LIB_SSL &&
        ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
      certificate_refused_ = true;
      failure_ = text_of_verification(SSL_get_verify_result(ssl_));
    }
  }
  if (saw_end_) {
    failure_ = "the peer ended without saying so";
    return context_->role() == TlsRole::kServer ? IoError::kEof : IoError::kReset;
  }
  if (io_error_ != IoError::kAgain) return io_error_;
  return no_memory ? IoError::kNoMemory : IoError::kTls;
}

void TlsStream::count_key_update() noexcept {
  const TimePoint now = socket_->loop().now();
  if (now - key_updates_since_ >= std::chrono::seconds(1)) {
    key_updates_since_ = now;
    key_updates_ = 0;
  }
  if (++key_updates_ > context_->setup().key_updates_per_second) too_many_key_updates_ = true;
}

IoResult TlsStream::read(std::span<std::byte> into) noexcept {
  if (broken_ || ssl_ == nullptr) return unexpected(IoError::kReset);
  read_needs_write_ = false;
  end_unread_ = false;
  ERR_clear_error();
  std::size_t filled = 0;
  // One SSL_read_ex call returns at most one record.
  while (filled < into.size()) {
    std::size_t got = 0;
    const int result = SSL_read_ex(ssl_, into.data() + filled, into.size() - filled, &got);
    if (too_many_key_updates_) {
      broken_ = true;
      failure_ = "too many key updates";
      return unexpected(IoError::kTls);
    }
    if (result != 1) {
      if (filled > 0) {  // the next call returns the error again
        const int why = SSL_get_error(ssl_, result);
        end_unread_ = why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE;
        break;
      }
      return unexpected(failed(result, false));
    }
    filled += got;
    if (SSL_has_pending(ssl_) == 0 && staged_.empty()) break;
  }
  return filled;
}

// Pieces are joined: each SSL_write makes a record and a system call. A write that must be tried
// again has to begin with the same bytes and be as long at least; so how many bytes a call offers
// depends on their number alone, not on how they are divided.
IoResult TlsStream::write(std::span<const ConstBuffer> pieces) noexcept {
  if (broken_ || ssl_ == nullptr) return unexpected(IoError::kReset);
  write_needs_read_ = false;
  ERR_clear_error();
  std::array<std::byte, kRecordBytes> joined;
  std::size_t written = 0;
  for (PieceReader reader(pieces); !reader.done();) {
    const ConstBuffer next = reader.next(joined);
    std::size_t put = 0;
    const int result = SSL_write_ex(ssl_, next.data, next.size, &put);
    if (result != 1) {
      const IoError error = failed(result, true);
      if (written > 0 && error == IoError::kAgain) return written;
      return unexpected(error);
    }
    reader.consume(put);
    written += put;
  }
  return written;
}

bool TlsStream::has_pending() const noexcept {
  return ssl_ != nullptr && !broken_ && established_ &&
         (!staged_.empty() || end_unread_ || SSL_has_pending(ssl_) != 0);
}

Socket::Interest TlsStream::interest(Socket::Interest wanted) const noexcept {
  Socket::Interest out = wanted;
  if (wanted.read && read_needs_write_) out.write = true;
  if (wanted.write && write_needs_read_) {
    out.read = true;
    out.write = false;
  }
  return out;
}

void TlsStream::shutdown_write() noexcept {
  if (ssl_ != nullptr && !broken_ && established_) {
    ERR_clear_error();
    SSL_shutdown(ssl_);  // called once: the peer's answer is not awaited
    ERR_clear_error();
  }
  socket_->shutdown_write();
}

TlsProtocol TlsStream::protocol() const noexcept {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  if (ssl_ != nullptr) SSL_get0_alpn_selected(ssl_, &name, &size);
  return size == 2 && std::memcmp(name, "h2", 2) == 0 ? TlsProtocol::kHttp2 : TlsProtocol::kHttp1;
}

std::string_view TlsStream::peer_subject(std::span<char> into) const noexcept {
  if (ssl_ == nullptr || into.empty() || SSL_get_verify_result(ssl_) != X509_V_OK) return {};
  X509* certificate = SSL_get0_peer_certificate(ssl_);
  if (certificate == nullptr) return {};
  BIO* out = BIO_new(BIO_s_mem());
  if (out == nullptr) return {};
  std::size_t size = 0;
  if (X509_NAME_print_ex(out, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0) {
    const int got = BIO_read(out, into.data(), static_cast<int>(into.size()));
    // A truncated name could equal another client's name, so it is dropped.
    if (got > 0 && BIO_pending(out) == 0) size = static_cast<std::size_t>(got);
  }
  BIO_free(out);
  ERR_clear_error();
  return {into.data(), size};
}

}  // namespace weir::inline v0::io
