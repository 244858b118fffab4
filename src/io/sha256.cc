#include "io/sha256.h"

#include <memory>

#include <openssl/evp.h>

#include "weir/base/assert.h"

#include "openssl_ptr.h"

namespace weir::inline v0::io {

Sha256Digest sha256(std::string_view text) noexcept {
  thread_local const std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  static const EVP_MD* const kind = EVP_sha256();
  Sha256Digest digest{};
  unsigned size = 0;
  const bool done = context != nullptr && EVP_DigestInit_ex(context.get(), kind, nullptr) == 1 &&
                    EVP_DigestUpdate(context.get(), text.data(), text.size()) == 1 &&
                    EVP_DigestFinal_ex(context.get(), digest.data(), &size) == 1;
  WEIR_ASSERT(done && size == digest.size());
  return digest;
}

}  // namespace weir::inline v0::io
