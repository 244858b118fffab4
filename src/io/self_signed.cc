#include "weir/experimental/io/self_signed.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "openssl_ptr.h"

namespace weir::inline v0::io {
namespace {

bool is_address(const std::string& name) {
  return name.find(':') != std::string::npos ||
         name.find_first_not_of("0123456789.") == std::string::npos;
}

bool extend(X509* certificate, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool describe(X509* certificate, EVP_PKEY* key, const CertificateWish& wish) {
  std::uint64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1) return false;
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1U);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), wish.valid_seconds);
  X509_set_pubkey(certificate, key);
  const std::string subject = wish.names.empty() ? "weir" : wish.names.front();
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(subject.c_str()), -1, -1, 0);
  std::string names;
  for (const std::string& name : wish.names) {
    if (!names.empty()) names += ',';
    names += (is_address(name) ? "IP:" : "DNS:") + name;
  }
  if (!names.empty() && !extend(certificate, NID_subject_alt_name, names)) return false;
  return !wish.authority || extend(certificate, NID_basic_constraints, "critical,CA:TRUE");
}

}  // namespace

MadeCertificate make_certificate(const CertificateWish& wish) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  const CertificatePtr certificate(X509_new());
  if (key == nullptr || certificate == nullptr || !describe(certificate.get(), key.get(), wish))
    return {};
  X509_NAME* issuer = X509_get_subject_name(certificate.get());
  EVP_PKEY* signing = key.get();
  CertificatePtr signer;
  KeyPtr signer_key;
  if (!wish.signer_pem.empty()) {
    signer.reset(PEM_read_bio_X509(reading(wish.signer_pem).get(), nullptr, nullptr, nullptr));
    signer_key.reset(
        PEM_read_bio_PrivateKey(reading(wish.signer_pem).get(), nullptr, nullptr, nullptr));
    if (signer == nullptr || signer_key == nullptr) return {};
    issuer = X509_get_subject_name(signer.get());
    signing = signer_key.get();
  }
  X509_set_issuer_name(certificate.get(), issuer);
  if (X509_sign(certificate.get(), signing, EVP_sha256()) == 0) return {};

  const BioPtr out(BIO_new(BIO_s_mem()));
  const BioPtr key_out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate.get());
  PEM_write_bio_PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {.certificate_pem = text_of(out.get()), .key_pem = text_of(key_out.get())};
}

}  // namespace weir::inline v0::io
