#include "tls/tls_setup.h"

#include <algorithm>
#include <string>

#include "weir/experimental/server/tls_check.h"

namespace weir::inline v0::inline server {

io::TlsSetup tls_setup(const io::TlsConfig& config, bool http2_spoken) {
  io::TlsSetup setup = io::TlsSetup::server(config);
  setup.http2 = config.http2 && http2_spoken;
  if (!config.certificate_pem.empty()) {
    setup.identities.front().certificate_pem = config.certificate_pem;
    setup.identities.front().key_pem = config.private_key_pem;
  }
  return setup;
}

ConfigError tls_fault(const io::TlsConfig& config, const io::TlsSetupError& error) {
  const auto& more = config.more_certificates;
  std::string key = "tls";
  if (error.where == config.certificate) {
    key = "tls.certificate";
  } else if (error.where == config.private_key) {
    key = "tls.private_key";
  } else if (error.where == config.client_ca) {
    key = "tls.client_ca";
  } else if (std::find(more.begin(), more.end(), error.where) != more.end()) {
    key = "tls.more_certificates";
  }
  return {.key = key,
          .value = "\"" + error.where + "\"",
          .allowed = error.wanted + " (" + error.why + ")"};
}

ConfigErrors check_tls_files(const io::TlsConfig& config) {
  if (!config.enabled()) return {};
  const auto made = io::TlsContext::make(tls_setup(config, true));
  if (!made) return {tls_fault(config, made.error())};
  if (const auto late = (*made)->out_of_date()) return {tls_fault(config, *late)};
  return {};
}

}  // namespace weir::inline v0::inline server
