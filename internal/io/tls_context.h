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
#include "weir/experimental/io/tls_client_config.h"
#include "weir/experimental/io/tls_config.h"

namespace weir::inline v0::io {

enum class TlsRole : std::uint8_t { kServer, kClient };

/// A certificate chain and its key, as files or as PEM text.
struct TlsIdentity {
  std::string certificate_file;
  std::string key_file;  // may be the same file
  std::string certificate_pem{};
  std::string key_pem{};
};

/// The settings of a TlsContext.
struct TlsSetup {
  TlsRole role = TlsRole::kServer;
  std::vector<TlsIdentity> identities;  // the first is the default; others by name (SNI)
  std::string ca_file;                  // trusted signers: of clients, or of servers
  std::string ca_pem;
  ClientCertificate client_certificate = ClientCertificate::kOff;
  TlsVersion min_version = TlsVersion::k12;
  bool http2 = true;  // a client with http2 only fails if the server does not agree to it
  bool http1 = true;
  std::uint32_t key_updates_per_second = 100;
  std::string ticket_keys{};  // of a process before this one: its sessions resume; empty: new ones

  // Of clients:
  std::string server_name;    // overrides the name given to begin()
  bool verify = true;         // the chain and the name; false: insecure
  bool system_roots = false;  // trusts the roots of the system; for setups without ca

  [[nodiscard]] static TlsSetup server(const TlsConfig& config);
  /// `http1` and `http2` are what is offered by ALPN: protocol = "auto" offers both.
  struct Offer {
    bool http1 = true;
    bool http2 = true;
  };
  [[nodiscard]] static TlsSetup client(const TlsClientConfig& config, Offer offer);
};

/// An error of a setup, for the operator: which file, and why.
struct TlsSetupError {
  std::string where;
  std::string why;
  std::string wanted = "a PEM file that can be used";
};

/// Certificates and settings for many connections: TLS 1.2 and newer, ephemeral keys and AEAD only,
/// no renegotiation, no compression, sessions resumed by stateless tickets. A client verifies the
/// server's chain and name unless its setup says otherwise; sessions to resume are in TlsSessions.
///
/// Promises: immutable. A reload creates a new context for later connections; it takes over the old
/// one's ticket keys, so that sessions resume across a reload.
/// Thread-safety: any. Lifetime: shared; each TlsStream keeps its context alive.
class TlsContext {
 public:
  using Ptr = std::shared_ptr<const TlsContext>;

  [[nodiscard]] static Result<Ptr, TlsSetupError> make(const TlsSetup& setup,
                                                       const TlsContext* before = nullptr);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  /// The native context of the default identity, or of another one.
  [[nodiscard]] SSL_CTX* native(std::size_t identity = 0) const noexcept {
    return contexts_[identity];
  }
  [[nodiscard]] TlsRole role() const noexcept { return setup_.role; }
  /// Different for each context of this process.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] const TlsSetup& setup() const noexcept { return setup_; }
  /// What encrypts session tickets: a secret, for a process that takes over.
  [[nodiscard]] std::string ticket_keys() const {
    return {reinterpret_cast<const char*>(ticket_keys_.data()), ticket_keys_.size()};
  }
  /// A certificate that has expired or is not valid yet, by this machine's clock: clients refuse
  /// it, but a server can be started with it.
  [[nodiscard]] std::optional<TlsSetupError> out_of_date() const;
  /// The identity for a server name (exact, then one wildcard label), or the default.
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
  void configure_client(SSL_CTX* context);
  void configure_server(SSL_CTX* context);
  void learn_names(SSL_CTX* context);

  TlsSetup setup_;
  std::uint64_t id_ = 0;
  std::vector<SSL_CTX*> contexts_;
  std::vector<Name> names_;
  std::array<unsigned char, kTicketKeyBytes> ticket_keys_{};
};

/// The oldest error in OpenSSL's queue as text; empties the queue.
[[nodiscard]] std::string take_tls_error();

}  // namespace weir::inline v0::io
