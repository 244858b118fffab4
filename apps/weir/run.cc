#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/byte_size.h"
#include "weir/base/net_address.h"
#include "weir/experimental/config/load.h"
#include "weir/experimental/config/upstream_url.h"
#include "weir/experimental/gateway/gateway_budget.h"

#include "config_faults.h"
#include "inheritance.h"
#include "serve.h"
#include "subcommand.h"

namespace weir::app {
namespace {

struct RunOptions {
  std::string config_file;
  std::vector<std::string> to;
  std::vector<std::string> listen;
  std::vector<std::string> tls_listen;
  std::string tls_certificate;
  std::string tls_key;
  std::string admin;
  bool take_over = false;
};

/// "8080" means the loopback address: a first try must not be open to the network.
std::string with_host(const std::string& text) {
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  return digits && !text.empty() ? "127.0.0.1:" + text : text;
}

std::optional<NetAddress> address_in(const std::string& text, const char* option) {
  const auto address = parse_net_address(with_host(text));
  if (address) return *address;
  std::cerr << "weir run: " << option << " " << text << ": " << kNetAddressSyntax << "\n";
  return std::nullopt;
}

/// --to: one upstream, one route that sends everything there.
bool apply_to(config::Config& config, const std::vector<std::string>& to) {
  const auto upstream = config::upstream_from(to);
  if (!upstream) {
    std::cerr << "weir run: --to " << upstream.error() << "\n";
    return false;
  }
  gateway::RouteConfig route;
  route.upstream = upstream->name;
  config.upstreams = {*upstream};
  config.routes = {route};
  return true;
}

/// Replaces the addresses of the configuration, if the option was given.
bool apply_listen(std::vector<std::string>& listen, const std::vector<std::string>& given,
                  const char* option) {
  if (!given.empty()) listen.clear();
  for (const std::string& text : given) {
    if (!address_in(text, option)) return false;
    listen.push_back(with_host(text));
  }
  return true;
}

bool apply_addresses(config::Config& config, const RunOptions& options) {
  if (!apply_listen(config.server.listen, options.listen, "--listen")) return false;
  io::TlsConfig& tls = config.server.tls;
  if (!options.tls_certificate.empty()) {
    tls.certificate = tls.private_key = options.tls_certificate;
  }
  if (!options.tls_key.empty()) tls.private_key = options.tls_key;
  const bool wants_tls = !options.tls_key.empty() || !options.tls_listen.empty();
  if (wants_tls && !tls.enabled()) {
    std::cerr << "weir run: " << (options.tls_key.empty() ? "--tls-listen" : "--tls-key")
              << " needs --tls-cert\n";
    return false;
  }
  if (!apply_listen(tls.listen, options.tls_listen, "--tls-listen")) return false;
  if (options.admin == "none") {
    config.admin.listen.reset();
  } else if (!options.admin.empty()) {
    const auto address = address_in(options.admin, "--admin");
    if (!address) return false;
    config.admin.listen = *address;
  }
  return true;
}

std::optional<config::Config> configuration(const RunOptions& options) {
  if (options.config_file.empty() && options.to.empty()) {
    std::cerr << "weir run: say where requests go: --to HOST:PORT, or --config FILE\n";
    return std::nullopt;
  }
  const config::Environment environment = config::process_environment();
  config::LoadedConfig loaded = options.config_file.empty()
                                    ? load_config("", "the command line", environment)
                                    : load_config_file(options.config_file, environment);
  if (!good(loaded.errors)) return std::nullopt;
  // Without a file there is no reload, so nothing needs to be spare for one.
  if (options.config_file.empty()) loaded.config.reload.upstreams_spare = 0;
  if (!options.to.empty() && !apply_to(loaded.config, options.to)) return std::nullopt;
  if (!apply_addresses(loaded.config, options)) return std::nullopt;
  if (!good(loaded.config.validate())) return std::nullopt;
  if (loaded.config.upstreams.empty()) {
    std::cerr << options.config_file << ": no [[upstream]]: write\n  [[upstream]]\n  name = "
              << "\"app\"\n  endpoints = [\"127.0.0.1:3000\"]\nor give --to HOST:PORT\n";
    return std::nullopt;
  }
  warn(loaded.unknown_variables);
  warn(loaded.config.warnings());  // after the command line, which may have corrected something
  return loaded.config;
}

/// One line per fact, each with a key: for people and for scripts.
void announce(const gateway::Gateway& gateway, const config::Config& config) {
  for (const std::string& address : gateway.listening()) {
    std::cerr << "weir: listening on " << address << "\n";
  }
  for (const std::string& address : gateway.tls_listening()) {
    std::cerr << "weir: listening with TLS on " << address << "\n";
  }
  const std::string admin = gateway.admin_listening();
  std::cerr << "weir: admin on " << (admin.empty() ? "none" : admin) << "\n";
  if (config.admin.actions == gateway::ActionsMode::kSocket) {
    std::cerr << "weir: actions on unix:" << config.admin.actions_socket << "\n";
  } else if (config.admin.actions == gateway::ActionsMode::kToken) {
    std::cerr << "weir: actions with the token of " << config.admin.token_file << "\n";
  }
  for (const upstream::UpstreamConfig& upstream : config.upstreams) {
    std::cerr << "weir: upstream " << upstream.name << ":";
    for (const upstream::SourceSpec& source : upstream.endpoints) {
      std::cerr << " " << source.to_string();
    }
    if (upstream.tls_enabled) {
      std::cerr << (upstream.tls.insecure ? " (TLS, NOT verified)" : " (TLS)");
    }
    std::cerr << "\n";
  }
  std::cerr << "weir: memory ceiling "
            << to_human(ByteSize(gateway::gateway_budget(config).total_bytes())) << "\n";
  std::cerr << "weir: ready" << std::endl;
}

int run(const RunOptions& options) {
  const std::optional<config::Config> config = configuration(options);
  if (!config) return kUsageError;
  std::optional<Inheritance> inherited = inherit(*config, options.take_over);
  if (!inherited)
    return options.take_over && config->admin.take_over_socket.empty() ? kUsageError : kFailed;
  Serving serving;
  if (!options.config_file.empty()) {
    serving.read_again = [&] { return configuration(options); };
  }
  serving.on_started = [&](const gateway::Gateway& gateway) { announce(gateway, *config); };
  return serve(*config, serving, std::move(*inherited));
}

}  // namespace

void add_run(CLI::App& program, int& status) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* command = program.add_subcommand("run", "Run the gateway");
  command->add_option("-c,--config", options->config_file, "Configuration file (TOML)")
      ->type_name("FILE");
  command
      ->add_option("--to", options->to,
                   "Service to stand in front of: HOST:PORT, unix:/path, http://HOST, https://HOST "
                   "(TLS), h2c://HOST (HTTP/2 in cleartext), or a source (dns:HOST:PORT, "
                   "srv:_http._tcp.NAME, file:/path); several are replicas of one service")
      ->allow_extra_args(false);
  command
      ->add_option("--listen", options->listen,
                   "Where clients connect: PORT (on 127.0.0.1), ADDRESS:PORT, :PORT for all "
                   "addresses, unix:/path; 0 picks a free port [127.0.0.1:8080]")
      ->allow_extra_args(false);
  command
      ->add_option("--tls-listen", options->tls_listen,
                   "Where clients connect with TLS, in the same forms [127.0.0.1:8443]")
      ->allow_extra_args(false);
  command
      ->add_option("--tls-cert", options->tls_certificate,
                   "File with the certificate chain, PEM; TLS is spoken once there is one")
      ->type_name("FILE");
  command
      ->add_option("--tls-key", options->tls_key,
                   "File with its private key, PEM [the file of --tls-cert]")
      ->type_name("FILE");
  command->add_option("--admin", options->admin,
                      "Where the admin endpoint listens, or none [127.0.0.1:9901]");
  command->add_flag("--take-over", options->take_over,
                    "Receive the listening sockets of the running process (through "
                    "admin.take_over_socket), which then drains and ends; if there is none, start "
                    "as usual");
  command->footer(R"(Examples:
  weir run --to 127.0.0.1:3000
  weir run --to 10.0.0.1:80 --to 10.0.0.2:80 --listen :8080
  weir run --to https://api.example.org
  weir run --to 127.0.0.1:3000 --tls-cert chain.pem --tls-key key.pem --tls-listen :443
  weir run --config weir.toml
  weir run --config weir.toml --take-over
Every option of the file can also come from the environment: WEIR_ADMISSION_MAX_CONCURRENT=512.
Signals: SIGTERM drains and ends, SIGHUP reads the file again, SIGUSR1 reopens the access log.
Exit status: 0 ended in order, 1 could not start, 2 wrong option or configuration.)");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace weir::app
