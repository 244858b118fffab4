#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/ssl.h>

#include "weir/base/result.h"
#include "weir/experimental/io/tls_config.h"

namespace weir::inline v0::io {

enum class TlsRole : std::uint8_t { kServer, kClient };

/// A chain and its key, as files or as PEM text.
struct TlsIdentity {
  std::string certificate_file;
  std::string key_file;  // may be the same file
  std::string certificate_pem;
  std::string key_pem;
};

/// What a TlsContext is made of.
struct TlsSetup {
  TlsRole role = TlsRole::kServer;
  std::vector<TlsIdentity> identities;  // the first is the default; the others by name (SNI)
  std::string ca_file;                  // whom to trust: clients' signers, or servers'
  std::string ca_pem;
  ClientCertificate client_certificate = ClientCertificate::kOff;
  bool http2 = true;
  bool http1 = true;
  std::uint32_t key_updates_per_second = 100;

  [[nodiscard]] static TlsSetup server(const TlsConfig& config);
};

/// What is wrong with a setup, in the operator's words: which file, and why.
struct TlsSetupError {
  std::string where;
  std::string why;
  std::string wanted = "a PEM file that can be used";
};

/// Certificates and rules for many connections: TLS 1.2 and newer, ephemeral keys and AEAD only, no
/// renegotiation, no compression, sessions resumed by stateless tickets.
///
/// Promises: immutable once made; a reload makes a new one, which connections begun later use, and
/// takes over the old one's ticket keys, so that sessions resume across it.
/// Thread-safety: any. Lifetime: shared; each TlsStream keeps what it uses alive.
class TlsContext {
 public:
  using Ptr = std::shared_ptr<const TlsContext>;

  [[nodiscard]] static Result<Ptr, TlsSetupError> make(const TlsSetup& setup,
                                                       const TlsContext* before = nullptr);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  /// Of the default identity, or of another one.
  [[nodiscard]] SSL_CTX* native(std::size_t identity = 0) const noexcept {
    return contexts_[identity];
  }
  [[nodiscard]] TlsRole role() const noexcept { return setup_.role; }
  [[nodiscard]] const TlsSetup& setup() const noexcept { return setup_; }
  /// A certificate whose time is over or has not come, by the clock of this machine: clients refuse
  /// it, though servers can be started with it.
  [[nodiscard]] std::optional<TlsSetupError> out_of_date() const;
  /// The identity for a given name (exact, then one wildcard label), or the default.
  [[nodiscard]] SSL_CTX* choose(std::string_view given) const noexcept;

 private:
  static constexpr std::size_t kTicketKeyBytes = 80;
  struct Name {
    std::string pattern;  // lower case; "*.example.org" for a wildcard
    SSL_CTX* context = nullptr;
  };

  TlsContext() = default;
  [[nodiscard]] Result<void, TlsSetupError> add(const TlsIdentity& identity);
  [[nodiscard]] Result<void, TlsSetupError> configure(SSL_CTX* context);
  void learn_names(SSL_CTX* context);

  TlsSetup setup_;
  std::vector<SSL_CTX*> contexts_;
  std::vector<Name> names_;
  std::array<unsigned char, kTicketKeyBytes> ticket_keys_{};
};

/// The oldest error in OpenSSL's queue as text; empties the queue.
[[nodiscard]] std::string take_tls_error();

}  // namespace weir::inline v0::io
