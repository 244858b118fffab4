#include "io/tls_certificate.h"

#include <array>
#include <ctime>

#include <openssl/err.h>
#include <openssl/x509.h>

#include "openssl_ptr.h"

namespace weir::inline v0::io {
namespace {

std::string subject_of(const X509* certificate) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (out == nullptr) return {};
  X509_NAME_print_ex(out.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  return text_of(out.get());
}

std::string expiry_of(const X509* certificate) {
  std::tm when{};
  std::array<char, 32> text{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &when) != 1) return {};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &when)};
}

std::string digest_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), bytes.data(), &size) != 1) return {};
  return {bytes.begin(), bytes.begin() + size};
}

}  // namespace

std::vector<TlsCertificate> certificates_of(const TlsContext& context) {
  std::vector<TlsCertificate> found;
  for (std::size_t i = 0; i < context.setup().identities.size(); ++i) {
    const X509* certificate = SSL_CTX_get0_certificate(context.native(i));
    if (certificate == nullptr) continue;
    found.push_back({.file = context.setup().identities[i].certificate_file,
                     .subject = subject_of(certificate),
                     .expires = expiry_of(certificate),
                     .digest = digest_of(certificate)});
  }
  ERR_clear_error();
  return found;
}

}  // namespace weir::inline v0::io
