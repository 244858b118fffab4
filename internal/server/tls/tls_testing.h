#pragma once

// A blocking TLS client with all options that the tests need, and servers for it.

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include "weir/experimental/io/self_signed.h"

#include "io/tls_context.h"
#include "server/server_testing.h"

namespace weir::inline v0::inline server::testkit {

/// One certificate authority for all tests of a program, because making keys takes time.
inline const io::MadeCertificate& authority() {
  static const io::MadeCertificate made =
      io::make_certificate({.names = {"Weir Test CA"}, .signer_pem = {}, .authority = true});
  return made;
}
inline io::MadeCertificate signed_for(std::vector<std::string> names) {
  return io::make_certificate({.names = std::move(names), .signer_pem = authority().both()});
}
inline const io::MadeCertificate& localhost() {
  static const io::MadeCertificate made = signed_for({"localhost"});
  return made;
}

/// A small server that listens only for TLS, on port 0.
inline ServerConfig tls_config() {
  ServerConfig config = small_config();
  config.listen.clear();
  config.tls.listen = {"127.0.0.1:0"};
  config.tls.certificate_pem = localhost().certificate_pem;
  config.tls.private_key_pem = localhost().key_pem;
  config.handshake_slots = 8;
  config.reserved_handshakes = 0;
  return config;
}

/// The same server, asking clients for certificates of the tests' authority.
struct WithClientCa {
  explicit WithClientCa(io::ClientCertificate mode) {
    const std::string path = testing::TempDir() + "weir_tls_ca_" + std::to_string(::getpid());
    FILE* file = std::fopen(path.c_str(), "w");
    const std::string& pem = authority().certificate_pem;
    std::fwrite(pem.data(), 1, pem.size(), file);
    std::fclose(file);
    config.tls.client_ca = path;
    config.tls.client_certificate = mode;
  }
  ServerConfig config = tls_config();
};

struct TlsWish {
  std::string name = "localhost";
  std::vector<std::string> protocols{};  // ALPN
  int version_max = 0;                   // TLS1_2_VERSION …
  const io::MadeCertificate* own = nullptr;
  SSL_SESSION* session = nullptr;  // to resume
  int receive_buffer = 0;
};

class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port, const TlsWish& wish = {})
      : tcp_(port, wish.receive_buffer), context_(SSL_CTX_new(TLS_client_method())) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL may write to a closed connection
    trust();
    if (wish.version_max != 0) SSL_CTX_set_max_proto_version(context_.get(), wish.version_max);
    if (wish.own != nullptr) use(*wish.own);
    ssl_.reset(SSL_new(context_.get()));
    SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(wish.name.c_str()));
    SSL_set1_host(ssl_.get(), wish.name.c_str());
    SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
    std::string list;
    for (const std::string& protocol : wish.protocols) {
      list += static_cast<char>(protocol.size());
      list += protocol;
    }
    if (!list.empty()) {
      SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(list.data()),
                          static_cast<unsigned>(list.size()));
    }
    if (wish.session != nullptr) SSL_set_session(ssl_.get(), wish.session);
    SSL_set_fd(ssl_.get(), tcp_.fd());
  }

  /// True if the handshake succeeds; otherwise why() has the reason.
  bool shake() {
    ERR_clear_error();
    const bool done = SSL_connect(ssl_.get()) == 1;
    if (!done) why_ = io::take_tls_error();
    return done;
  }
  [[nodiscard]] const std::string& why() const { return why_; }

  bool send(std::string_view bytes) {
    ERR_clear_error();
    return bytes.empty() || SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  /// Reads `size` bytes, or fewer at the end.
  std::string take(std::size_t size) {
    while (input_.size() < size && more()) {
    }
    const std::size_t got = std::min(size, input_.size());
    std::string out = input_.substr(0, got);
    input_.erase(0, got);
    return out;
  }
  /// Reads one response with a content-length (or none).
  Answer read() {
    Answer answer;
    std::size_t end = std::string::npos;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return answer;
    }
    answer.head = take(end + 4);
    std::from_chars(answer.head.data() + 9, answer.head.data() + 12, answer.status);
    if (const std::size_t at = answer.head.find("content-length: "); at != std::string::npos) {
      std::size_t length = 0;
      const char* from = answer.head.data() + at + 16;
      std::from_chars(from, answer.head.data() + answer.head.size(), length);
      answer.body = take(length);
    }
    return answer;
  }
  Answer get(std::string_view path) {
    const bool sent = send("GET " + std::string(path) + " HTTP/1.1\r\nhost: t\r\n\r\n");
    return sent ? read() : Answer{};
  }
  /// True if the peer ended the connection; `clean`: with close_notify.
  bool at_end(bool* clean = nullptr) {
    if (!input_.empty() || more()) return false;
    if (clean != nullptr) *clean = ended_clean_;
    return true;
  }

  [[nodiscard]] std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }
  [[nodiscard]] std::string server_subject() const {
    X509* certificate = SSL_get0_peer_certificate(ssl_.get());
    if (certificate == nullptr) return {};
    char text[256];
    X509_NAME_oneline(X509_get_subject_name(certificate), text, sizeof text);
    return text;
  }
  SSL* ssl() { return ssl_.get(); }
  Client& tcp() { return tcp_; }

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  void trust() {
    BIO* bio = BIO_new_mem_buf(authority().certificate_pem.data(), -1);
    X509* ca = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), ca);
    X509_free(ca);
    BIO_free(bio);
  }
  void use(const io::MadeCertificate& own) {
    BIO* bio = BIO_new_mem_buf(own.certificate_pem.data(), -1);
    X509* leaf = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(context_.get(), leaf);
    X509_free(leaf);
    BIO_free(bio);
    bio = BIO_new_mem_buf(own.key_pem.data(), -1);
    EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
    SSL_CTX_use_PrivateKey(context_.get(), key);
    EVP_PKEY_free(key);
    BIO_free(bio);
  }
  bool more() {
    char block[16 * 1024];
    ERR_clear_error();
    const int got = SSL_read(ssl_.get(), block, sizeof block);
    if (got > 0) {
      input_.append(block, static_cast<std::size_t>(got));
      return true;
    }
    ended_clean_ = SSL_get_error(ssl_.get(), got) == SSL_ERROR_ZERO_RETURN;
    return false;
  }

  Client tcp_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
  std::string input_;
  std::string why_;
  bool ended_clean_ = false;
};

/// Answers every request with its path; /who with the client's certificate, /secure with yes or no.
inline RunningServer::Make answer_path() {
  return every_loop([](ScriptedHandler& handler) {
    handler.headers = [](ServerStream& stream, const ServerRequest& request) {
      std::string body(request.meta.path);
      if (body == "/who") body = std::string(request.peer_certificate);
      if (body == "/secure") body = request.secure ? "yes" : "no";
      EXPECT_EQ(reply(stream, 200, body), SendResult::kSent);
    };
  });
}

}  // namespace weir::inline v0::inline server::testkit
