#include "io/tls_context.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <system_error>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "weir/base/ascii.h"

#include "io/tls_stream.h"
#include "openssl_ptr.h"

namespace weir::inline v0::io {
namespace {

BioPtr open_pem(const std::string& file, const std::string& text) {
  if (!text.empty()) return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  return BioPtr(BIO_new_file(file.c_str(), "r"));
}

Result<void, TlsSetupError> fault(const std::string& where, const char* otherwise) {
  std::string why = take_tls_error();
  return unexpected(TlsSetupError{where.empty() ? "PEM text" : where,
                                  why.empty() ? std::string(otherwise) : why});
}

/// Loads a server's certificate, then the rest of its chain.
Result<void, TlsSetupError> load_chain(SSL_CTX* context, const TlsIdentity& identity) {
  const BioPtr bio = open_pem(identity.certificate_file, identity.certificate_pem);
  if (bio == nullptr) return fault(identity.certificate_file, "cannot be opened");
  const CertificatePtr leaf(PEM_read_bio_X509_AUX(bio.get(), nullptr, nullptr, nullptr));
  if (leaf == nullptr || SSL_CTX_use_certificate(context, leaf.get()) != 1)
    return fault(identity.certificate_file, "holds no certificate");
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, next) == 1) continue;
    X509_free(next);
    return fault(identity.certificate_file, "has a chain that cannot be used");
  }
  ERR_clear_error();  // the loop ends with a "no more" error
  return {};
}

Result<void, TlsSetupError> load_key(SSL_CTX* context, const TlsIdentity& identity) {
  const BioPtr bio = open_pem(identity.key_file, identity.key_pem);
  if (bio == nullptr) return fault(identity.key_file, "cannot be opened");
  const KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (key == nullptr) return fault(identity.key_file, "it holds no private key");
  if (X509_check_private_key(SSL_CTX_get0_certificate(context), key.get()) != 1) {
    ERR_clear_error();
    return unexpected(
        TlsSetupError{identity.key_file.empty() ? "PEM text" : identity.key_file,
                      "it does not hold the key of the certificate in " + identity.certificate_file,
                      "the private key of the certificate"});
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return fault(identity.key_file, "its key cannot be used");
  return {};
}

std::string to_string(const ASN1_TIME* time) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (out == nullptr || ASN1_TIME_print(out.get(), time) != 1) return "an unreadable date";
  return text_of(out.get());
}

/// The roots that the system's packages installed. (OpenSSL lets SSL_CERT_FILE and SSL_CERT_DIR
/// replace them.) Those of a folder are read when they are needed, and kept.
Result<void, TlsSetupError> trust_system(SSL_CTX* context) {
  const bool set = SSL_CTX_set_default_verify_paths(context) == 1;
  ERR_clear_error();
  std::error_code ignored;
  const char* folder = X509_get_default_cert_dir();
  const X509_STORE* store = SSL_CTX_get_cert_store(context);
  const bool found = std::filesystem::exists(folder, ignored) ||
                     sk_X509_OBJECT_num(X509_STORE_get0_objects(store)) > 0;
  if (set && found) return {};
  return unexpected(
      TlsSetupError{folder, "the system has no root certificates",
                    "the system's root certificates (package ca-certificates), or ca"});
}

Result<void, TlsSetupError> trust(SSL_CTX* context, const TlsSetup& setup) {
  if (setup.system_roots) return trust_system(context);
  if (setup.ca_file.empty() && setup.ca_pem.empty()) return {};
  const BioPtr bio = open_pem(setup.ca_file, setup.ca_pem);
  if (bio == nullptr) return fault(setup.ca_file, "cannot be opened");
  int found = 0;
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    const CertificatePtr owned(next);
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), next) != 1)
      return fault(setup.ca_file, "has a certificate that cannot be used");
    if (setup.role == TlsRole::kServer) SSL_CTX_add_client_CA(context, next);
    ++found;
  }
  if (found == 0) return fault(setup.ca_file, "holds no certificate");
  ERR_clear_error();
  return {};
}

constexpr unsigned char kBoth[] = "\x02h2\x08http/1.1";
constexpr std::size_t kH2Bytes = 3;

/// The largest chain that a server may send. Read into memory it takes about four times as much,
/// for as long as the connection and its sessions last.
constexpr long kCertificateListBytesMax = 32 * 1024;

/// By our order of preference; a client that offers only others is refused (RFC 7301).
int select_protocol(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* in, unsigned in_size, void* user) {
  const TlsSetup& setup = *static_cast<const TlsSetup*>(user);
  const unsigned char* ours = setup.http2 ? kBoth : kBoth + kH2Bytes;
  const std::size_t all = sizeof kBoth - 1;
  const std::size_t size = setup.http2 ? (setup.http1 ? all : kH2Bytes) : all - kH2Bytes;
  unsigned char* chosen = nullptr;
  const int found =
      SSL_select_next_proto(&chosen, out_size, ours, static_cast<unsigned>(size), in, in_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

int select_identity(SSL* ssl, int* /*alert*/, void* user) {
  const auto& self = *static_cast<const TlsContext*>(user);
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name != nullptr) SSL_set_SSL_CTX(ssl, self.choose(name));
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

std::string take_tls_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return {};
  const char* reason = ERR_reason_error_string(code);
  if (ERR_SYSTEM_ERROR(code)) return std::generic_category().message(ERR_GET_REASON(code));
  return reason == nullptr ? "unknown TLS error" : reason;
}

TlsSetup TlsSetup::server(const TlsConfig& config) {
  TlsSetup setup;
  setup.identities.push_back(
      {.certificate_file = config.certificate, .key_file = config.private_key});
  for (const std::string& file : config.more_certificates) {
    setup.identities.push_back({.certificate_file = file, .key_file = file});
  }
  setup.ca_file = config.client_ca;
  setup.client_certificate = config.client_certificate;
  setup.http2 = config.http2;
  setup.key_updates_per_second = config.key_updates_per_second;
  return setup;
}

TlsSetup TlsSetup::client(const TlsClientConfig& config, Offer offer) {
  TlsSetup setup;
  setup.role = TlsRole::kClient;
  if (!config.certificate.empty() || !config.certificate_pem.empty()) {
    setup.identities.push_back({.certificate_file = config.certificate,
                                .key_file = config.private_key,
                                .certificate_pem = config.certificate_pem,
                                .key_pem = config.private_key_pem});
  }
  setup.ca_file = config.ca;
  setup.ca_pem = config.ca_pem;
  setup.min_version = config.min_version;
  setup.http1 = offer.http1;
  setup.http2 = offer.http2;
  setup.server_name = config.server_name;
  setup.verify = !config.insecure;
  setup.system_roots = setup.verify && config.ca.empty() && config.ca_pem.empty();
  return setup;
}

Result<TlsContext::Ptr, TlsSetupError> TlsContext::make(const TlsSetup& setup,
                                                        const TlsContext* before) {
  const std::shared_ptr<TlsContext> made(new TlsContext);
  made->setup_ = setup;
  static std::atomic<std::uint64_t> contexts_made{0};
  made->id_ = contexts_made.fetch_add(1, std::memory_order_relaxed) + 1;
  if (before != nullptr) {
    made->ticket_keys_ = before->ticket_keys_;
  } else if (setup.ticket_keys.size() == kTicketKeyBytes) {
    std::copy(setup.ticket_keys.begin(), setup.ticket_keys.end(), made->ticket_keys_.begin());
  } else if (RAND_bytes(made->ticket_keys_.data(), static_cast<int>(kTicketKeyBytes)) != 1) {
    return unexpected(TlsSetupError{"random numbers", take_tls_error()});
  }
  std::vector<TlsIdentity> identities = setup.identities;
  if (identities.empty()) identities.emplace_back();  // a client without a certificate
  for (const TlsIdentity& identity : identities) {
    if (const auto added = made->add(identity); !added) return unexpected(added.error());
  }
  return Ptr(made);
}

TlsContext::~TlsContext() {
  for (SSL_CTX* context : contexts_) SSL_CTX_free(context);
}

Result<void, TlsSetupError> TlsContext::add(const TlsIdentity& identity) {
  SSL_CTX* context =
      SSL_CTX_new(setup_.role == TlsRole::kServer ? TLS_server_method() : TLS_client_method());
  if (context == nullptr) return fault("TLS", "no memory");
  contexts_.push_back(context);
  if (const auto configured = configure(context); !configured) return configured;
  const bool given = !identity.certificate_file.empty() || !identity.certificate_pem.empty();
  if (given) {
    if (const auto chain = load_chain(context, identity); !chain) return chain;
    if (const auto key = load_key(context, identity); !key) return key;
    learn_names(context);
  } else if (setup_.role == TlsRole::kServer) {
    return fault("certificate", "a server needs one");
  }
  return trust(context, setup_);
}

Result<void, TlsSetupError> TlsContext::configure(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(
      context, setup_.min_version == TlsVersion::k13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  // Buffers are held only while they have content; a write may be repeated from another address.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);  // reads header and body of a record with one system call
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
    return fault("ciphers", "not known");
  if (setup_.role == TlsRole::kClient) {
    configure_client(context);
  } else {
    configure_server(context);
  }
  return {};
}

void TlsContext::configure_client(SSL_CTX* context) {
  SSL_CTX_set_verify(context, setup_.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_max_cert_list(context, kCertificateListBytesMax);
  // TlsSessions keeps them, because OpenSSL does not know which server a session belongs to.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, TlsStream::on_new_session);
  const unsigned char* ours = setup_.http2 ? kBoth : kBoth + kH2Bytes;
  const std::size_t size = setup_.http1 ? sizeof kBoth - 1 : kH2Bytes;
  const auto offered = static_cast<unsigned>(setup_.http2 ? size : size - kH2Bytes);
  SSL_CTX_set_alpn_protos(context, ours, offered);
}

void TlsContext::configure_server(SSL_CTX* context) {
  SSL_CTX_set_tlsext_ticket_keys(context, ticket_keys_.data(), kTicketKeyBytes);
  SSL_CTX_set_num_tickets(context, 1);
  static constexpr unsigned char kSessionName[] = "weir";
  SSL_CTX_set_session_id_context(context, kSessionName, sizeof kSessionName - 1);
  SSL_CTX_set_alpn_select_cb(context, select_protocol, &setup_);
  // The same as OpenSSL's macro, but with an explicit cast.
  SSL_CTX_callback_ctrl(context, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB,
                        reinterpret_cast<void (*)()>(select_identity));
  SSL_CTX_set_tlsext_servername_arg(context, this);
  int verify = SSL_VERIFY_NONE;
  if (setup_.client_certificate != ClientCertificate::kOff) verify = SSL_VERIFY_PEER;
  if (setup_.client_certificate == ClientCertificate::kRequired)
    verify |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  SSL_CTX_set_verify(context, verify, nullptr);
}

void TlsContext::learn_names(SSL_CTX* context) {
  X509* leaf = SSL_CTX_get0_certificate(context);
  auto* names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(leaf, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_DNS) continue;
    const auto* text = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName));
    const auto size = static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName));
    names_.push_back({to_lower(std::string_view(text, size)), context});
  }
  GENERAL_NAMES_free(names);
}

std::optional<TlsSetupError> TlsContext::out_of_date() const {
  constexpr const char* kWanted = "a certificate that is valid now";
  for (std::size_t i = 0; i < contexts_.size() && i < setup_.identities.size(); ++i) {
    const X509* leaf = SSL_CTX_get0_certificate(contexts_[i]);
    if (leaf == nullptr) continue;
    const std::string& file = setup_.identities[i].certificate_file;
    const ASN1_TIME* last = X509_get0_notAfter(leaf);
    if (X509_cmp_current_time(last) < 0)
      return TlsSetupError{file, "it expired on " + to_string(last) + "; renew it", kWanted};
    const ASN1_TIME* first = X509_get0_notBefore(leaf);
    if (X509_cmp_current_time(first) > 0) {
      return TlsSetupError{
          file, "it begins to be valid on " + to_string(first) + "; is the clock right?", kWanted};
    }
  }
  return std::nullopt;
}

SSL_CTX* TlsContext::choose(std::string_view given) const noexcept {
  std::array<char, 256> buffer{};
  if (given.size() > buffer.size()) return native();
  std::transform(given.begin(), given.end(), buffer.begin(), [](char c) { return to_lower(c); });
  const std::string_view name(buffer.data(), given.size());
  const std::size_t dot = name.find('.');
  const std::string_view parent = dot == std::string_view::npos ? "" : name.substr(dot);
  SSL_CTX* wildcard = nullptr;
  for (const Name& known : names_) {
    if (known.pattern == name) return known.context;
    const std::string_view pattern = known.pattern;
    if (wildcard == nullptr && pattern.size() > 2 && pattern.starts_with("*.") &&
        pattern.substr(1) == parent) {
      wildcard = known.context;
    }
  }
  return wildcard != nullptr ? wildcard : native();
}

}  // namespace weir::inline v0::io
