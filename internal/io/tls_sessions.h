#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

namespace weir::inline v0::io {

/// The TLS sessions of one server that a client may resume. The pool of connections to an endpoint
/// has one per loop, and passes it to TlsTransport::begin().
///
/// Promises: a session is resumed only with the context and for the server name that it was created
/// with: one that was not verified is never resumed by a context that verifies, and one of server A
/// never for server B. A TLS 1.3 ticket is used once (RFC 8446, C.4), a TLS 1.2 session until a
/// newer one replaces it. A session is not resumed after the server's certificate has expired:
/// resuming does not verify it again. At most kMax are kept, the newest ones.
/// Thread-safety: its loop's thread. Cost: no allocation of its own; a session holds
/// kTlsSessionBytes of OpenSSL's budget, most of it the server's chain.
/// Lifetime: must outlive the streams that use it.
class TlsSessions {
 public:
  static constexpr std::size_t kMax = 2;

  TlsSessions() = default;
  TlsSessions(const TlsSessions&) = delete;
  TlsSessions& operator=(const TlsSessions&) = delete;
  ~TlsSessions() { clear(); }

  /// Which sessions fit: those of the same context (a reload makes a new one) and server name.
  struct Owner {
    std::uint64_t context_id = 0;
    std::string_view server_name;
  };
  /// Says whose sessions are asked for from now on; those of another owner are dropped. The result
  /// is for keep(): a late ticket of a connection of an earlier owner is not kept.
  [[nodiscard]] std::uint64_t claim(Owner owner);

  /// A session to resume, with a reference for the caller; nullptr if there is none.
  [[nodiscard]] SSL_SESSION* take() noexcept;
  /// Takes over one reference to `session` if the claim still holds; false: it does not.
  [[nodiscard]] bool keep(std::uint64_t claim, SSL_SESSION* session) noexcept;
  void clear() noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  std::array<SSL_SESSION*, kMax> newest_first_{};
  std::size_t count_ = 0;
  std::uint64_t claim_ = 0;  // increases with each change of the owner
  std::uint64_t context_id_ = 0;
  std::string server_name_;
};

}  // namespace weir::inline v0::io
