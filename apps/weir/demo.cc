#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/byte_size.h"
#include "weir/base/net_address.h"
#include "weir/experimental/config/load.h"
#include "weir/experimental/gateway/gateway_budget.h"
#include "weir/experimental/io/self_signed.h"

#include "config_faults.h"
#include "dashboard/asset.h"
#include "demo_replica.h"
#include "serve.h"
#include "subcommand.h"

namespace weir::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct DemoOptions {
  std::uint16_t port = 8080;
  std::optional<std::uint16_t> tls_port;
  std::uint16_t admin_port = 9901;
};

constexpr int kReplicas = 3;

config::Config demo_config(config::Config config, const DemoOptions& options,
                           const std::vector<std::string>& replicas) {
  config.server.listen = {"127.0.0.1:" + std::to_string(options.port)};
  // The TLS port: as chosen, or 8443 beside the default port 8080, otherwise any free port.
  const std::uint16_t beside = options.port == 8080 ? 8443 : 0;
  config.server.tls.listen = {"127.0.0.1:" + std::to_string(options.tls_port.value_or(beside))};
  const io::MadeCertificate made = io::make_certificate(
      {.names = {"localhost", "127.0.0.1"}, .signer_pem = {}, .authority = false});
  config.server.tls.certificate_pem = made.certificate_pem;
  config.server.tls.private_key_pem = made.key_pem;
  config.admin.listen = *parse_net_address("127.0.0.1:" + std::to_string(options.admin_port));
  config.admin.access_log = gateway::AccessLog::kOff;
  // Everything on this machine is trusted, so that x-weir-priority can be tried.
  config.trust.peers = {*parse_ip_range("127.0.0.0/8")};
  config.admission.per_peer_limit = 4096;
  upstream::UpstreamConfig upstream;
  upstream.name = "replicas";
  for (const std::string& address : replicas) {
    upstream.endpoints.push_back(*upstream::parse_source(address));
  }
  gateway::RouteConfig route;
  route.upstream = upstream.name;
  config.upstreams = {upstream};
  config.routes = {route};
  return config;
}

void welcome(const gateway::Gateway& gateway, const config::Config& config) {
  const std::string at = gateway.listening().front();
  const std::string tls = gateway.tls_listening().front();
  const std::string admin = gateway.admin_listening();
  if (!dashboard::assets().empty()) std::cout << "dashboard  http://" << admin << "/\n";
  std::cout
      << "gateway    http://" << at << "\n"
      << "           https://" << tls << "  (a certificate made just now, for this run)\n"
      << "admin      http://" << admin << "\n"
      << "ceiling    " << to_human(ByteSize(gateway::gateway_budget(config).total_bytes()))
      << " of memory at most (weir budget shows what adds up)\n"
      << "service    three replicas, each serves 4 requests at once in 20 ms; the third is slow "
         "for 5 s out of every 20 s\n\n"
      << "Try, in another terminal:\n"
      << "  curl -i http://" << at << "/\n"
      << "  curl -k https://" << tls << "/\n"
      << "  wrk -t1 -c400 -d10s --latency http://" << at << "/ & sleep 2; "
      << "curl -i -H 'x-weir-priority: high' http://" << at << "/\n"
      << "  curl 'http://" << admin << "/explain?class=low'\n\n"
      << "Ctrl-C ends it.\n"
      << std::flush;
}

/// One line for each second with traffic. Earlier lines are not overwritten: the gateway's own
/// lines come between, and the history of the limit is of interest.
class StatusLines {
 public:
  void show(const gateway::Gateway& gateway) {
    const gateway::GatewayStatus now = gateway.status();
    char line[200];
    std::snprintf(line, sizeof line,
                  "%6llu/s answered  %6llu/s refused  in flight %u of limit %u  active %llu  "
                  "connections %llu  memory %.0f %%",
                  delta(now.answered, last_.answered), delta(now.refused, last_.refused),
                  now.in_flight, now.limit, static_cast<unsigned long long>(now.active),
                  static_cast<unsigned long long>(now.connections), now.memory_usage * 100);
    const bool quiet = now.answered == last_.answered && now.refused == last_.refused;
    last_ = now;
    if (!quiet) std::cout << line << std::endl;
  }

 private:
  static unsigned long long delta(std::uint64_t now, std::uint64_t before) { return now - before; }
  gateway::GatewayStatus last_;
};

int demo(const DemoOptions& options) {
  const config::LoadedConfig defaults = load_config("", "defaults", config::process_environment());
  if (!good(defaults.errors)) return kUsageError;
  warn(defaults.unknown_variables);
  std::vector<std::unique_ptr<DemoReplica>> replicas;
  std::vector<std::string> addresses;
  for (int i = 1; i <= kReplicas; ++i) {
    ReplicaManner manner;
    manner.name = std::to_string(i);
    if (i == kReplicas) {
      manner.slow_every = seconds(20);
      manner.slow_for = seconds(5);
    }
    replicas.push_back(std::make_unique<DemoReplica>(manner));
    if (!replicas.back()->start()) {
      std::cerr << "weir demo: no free port on 127.0.0.1 for a replica\n";
      return kFailed;
    }
    addresses.push_back(replicas.back()->address());
  }
  const config::Config config = demo_config(defaults.config, options, addresses);
  if (!good(config.validate())) return kUsageError;
  StatusLines lines;
  Serving serving;
  serving.listen_option = "--port and --tls-port";
  serving.admin_option = "--admin-port";
  serving.on_started = [&](const gateway::Gateway& gateway) { welcome(gateway, config); };
  serving.on_second = [&](const gateway::Gateway& gateway) { lines.show(gateway); };
  return serve(config, serving);
}

}  // namespace

void add_demo(CLI::App& program, int& status) {
  const auto options = std::make_shared<DemoOptions>();
  CLI::App* command =
      program.add_subcommand("demo", "Three replicas, one slow now and then, behind a gateway");
  command->add_option("--port", options->port, "Port of the gateway; 0 picks a free one [8080]");
  command->add_option("--tls-port", options->tls_port,
                      "Port where it speaks TLS; 0 picks a free one [8443 beside 8080]");
  command->add_option("--admin-port", options->admin_port,
                      "Port of the admin endpoint; 0 picks a free one [9901]");
  command->footer(R"(Examples:
  weir demo
  weir demo --port 0 --admin-port 0          beside whatever has the usual ports
Ctrl-C ends it.
Exit status: 0 ended in order, 1 could not start, 2 wrong option.)");
  command->callback([options, &status] { status = demo(*options); });
}

}  // namespace weir::app
