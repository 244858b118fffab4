#include "tls_verification.h"

#include <algorithm>
#include <array>

#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "weir/base/ip_range.h"

namespace weir::inline v0::io {

bool expect_server(SSL* ssl, ExpectedServer server) noexcept {
  std::array<char, 256> name{};  // OpenSSL wants it to end with NUL
  if (server.name.size() >= name.size()) return false;
  std::copy(server.name.begin(), server.name.end(), name.begin());
  X509_VERIFY_PARAM* expected = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(
      expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (parse_ip(server.name)) {  // RFC 6066: an address is not sent
    return !server.verify || X509_VERIFY_PARAM_set1_ip_asc(expected, name.data()) == 1;
  }
  if (server.verify &&
      X509_VERIFY_PARAM_set1_host(expected, name.data(), server.name.size()) != 1) {
    return false;
  }
  return SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) == 1;
}

std::string_view text_of_verification(long result) noexcept {
  switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "the peer's certificate, or one that signed it, has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the peer's certificate, or one that signed it, is not valid yet";
    case X509_V_ERR_HOSTNAME_MISMATCH:
      return "the peer's certificate is for another host";
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "the peer's certificate is not for this IP address";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return "the peer's certificate is self-signed and not trusted";
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return "the peer's certificate ends at a root that is not trusted";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return "the peer's certificate was issued by an authority that is not trusted";
    case X509_V_ERR_CERT_REVOKED:
      return "the peer's certificate was revoked";
    case X509_V_ERR_INVALID_PURPOSE:
      return "the peer's certificate is not made for this purpose";
    default:
      return X509_verify_cert_error_string(result);
  }
}

}  // namespace weir::inline v0::io
