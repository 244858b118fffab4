#pragma once

#include <memory>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

namespace weir::inline v0::io {

/// Owners of OpenSSL objects.
template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Freed<X509_free>>;
using BioPtr = std::unique_ptr<BIO, Freed<BIO_free>>;

}  // namespace weir::inline v0::io
