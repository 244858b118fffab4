#include "io/tls_sessions.h"

#include <algorithm>
#include <utility>

#include <openssl/x509.h>

namespace weir::inline v0::io {
namespace {

/// Resuming does not verify the certificate again, so its end is looked at here.
bool has_expired(SSL_SESSION* session) noexcept {
  const X509* leaf = SSL_SESSION_get0_peer(session);
  return leaf != nullptr && X509_cmp_current_time(X509_get0_notAfter(leaf)) <= 0;
}

}  // namespace

std::uint64_t TlsSessions::claim(Owner owner) {
  if (owner.context_id != context_id_ || owner.server_name != server_name_) {
    clear();
    context_id_ = owner.context_id;
    server_name_ = owner.server_name;
    ++claim_;
  }
  return claim_;
}

SSL_SESSION* TlsSessions::take() noexcept {
  while (count_ > 0) {
    SSL_SESSION* session = newest_first_[0];
    const bool usable = SSL_SESSION_is_resumable(session) == 1 && !has_expired(session);
    const bool once = SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION;
    if (usable && !once && SSL_SESSION_up_ref(session) == 1) return session;
    std::move(newest_first_.begin() + 1, newest_first_.end(), newest_first_.begin());
    newest_first_[--count_] = nullptr;
    if (usable && once) return session;
    SSL_SESSION_free(session);
  }
  return nullptr;
}

bool TlsSessions::keep(std::uint64_t claim, SSL_SESSION* session) noexcept {
  if (claim != claim_) return false;
  if (count_ == kMax) {
    SSL_SESSION_free(newest_first_[--count_]);
  }
  std::move_backward(newest_first_.begin(), newest_first_.end() - 1, newest_first_.end());
  newest_first_[0] = session;
  ++count_;
  return true;
}

void TlsSessions::clear() noexcept {
  while (count_ > 0) SSL_SESSION_free(std::exchange(newest_first_[--count_], nullptr));
}

}  // namespace weir::inline v0::io
