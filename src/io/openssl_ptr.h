#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

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

/// A BIO that reads `text`, which must outlive it.
[[nodiscard]] inline BioPtr reading(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// What was written to a memory BIO.
[[nodiscard]] inline std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size <= 0 ? std::string() : std::string(data, static_cast<std::size_t>(size));
}

}  // namespace weir::inline v0::io
