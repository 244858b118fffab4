#include "admin_target.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "weir/base/net_address.h"
#include "weir/experimental/config/load.h"

namespace weir::app {
namespace {

constexpr const char* kUsualConfig = "/etc/weir/weir.toml";
constexpr const char* kUsualAdmin = "127.0.0.1:9901";

/// What to ask, and with which token.
struct Found {
  std::string socket;  // for actions; empty: there is none
  std::string admin;   // empty: there is none
  std::string token;
  std::string no_token;  // why the token that the configuration names is not there
};

Result<std::string, std::string> token_in(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (!file || !(file >> token)) return unexpected("cannot read the token in " + path);
  return token;
}

/// An address that a client on this machine can use.
std::string reachable(const NetAddress& address) {
  if (address.kind == NetAddressKind::kAny) return "127.0.0.1:" + std::to_string(address.port);
  return to_string(address);
}

Result<Found, std::string> found_by_config(const AdminTarget& target) {
  const bool usual = target.config_file.empty() && std::filesystem::exists(kUsualConfig);
  const std::string path = usual ? kUsualConfig : target.config_file;
  const config::Environment environment = config::process_environment();
  const config::LoadedConfig loaded = path.empty()
                                          ? load_config("", "the command line", environment)
                                          : load_config_file(path, environment);
  if (!loaded.errors.empty()) return unexpected(config::to_text(loaded.errors.front()));
  const gateway::AdminConfig& admin = loaded.config.admin;
  Found found;
  if (admin.actions == gateway::ActionsMode::kSocket) found.socket = "unix:" + admin.actions_socket;
  if (admin.listen) found.admin = reachable(*admin.listen);
  if (admin.actions == gateway::ActionsMode::kToken && target.token_file.empty()) {
    auto token = token_in(admin.token_file);
    if (token) {
      found.token = std::move(*token);
    } else {
      found.no_token = token.error();
    }
  }
  return found;
}

Result<Found, std::string> find(const AdminTarget& target) {
  Found found;
  if (target.admin.empty()) {
    auto by_config = found_by_config(target);
    if (!by_config) return by_config;
    found = std::move(*by_config);
  } else {
    found.admin = target.admin;
  }
  if (!target.token_file.empty()) {
    auto token = token_in(target.token_file);
    if (!token) return unexpected(token.error());
    found.token = std::move(*token);
  }
  return found;
}

}  // namespace

void add_admin_target(CLI::App& command, AdminTarget& target) {
  auto* config = command.add_option("-c,--config", target.config_file,
                                    "Configuration of the gateway, which says where it is asked "
                                    "[/etc/weir/weir.toml, if it is there]");
  command
      .add_option("--admin", target.admin,
                  "Where the gateway is asked: HOST:PORT, http://HOST:PORT, PORT or unix:/path")
      ->excludes(config);
  command.add_option("--token-file", target.token_file,
                     "File with the token for actions [admin.token_file of the configuration]");
}

Result<AdminClient, std::string> client_for(const AdminTarget& target) {
  auto found = find(target);
  if (!found) return unexpected(found.error());
  if (!found->no_token.empty()) return unexpected(found->no_token);
  const std::string& where = found->socket.empty() ? found->admin : found->socket;
  if (where.empty()) return unexpected(std::string("the configuration has no admin endpoint"));
  auto client = AdminClient::at(where);
  if (client) client->set_token(std::move(found->token));
  return client;
}

Result<WatchTarget, std::string> watch_target_for(const AdminTarget& target) {
  auto found = find(target);
  const bool named =
      !target.admin.empty() || !target.config_file.empty() || !target.token_file.empty();
  if (!found && named) return unexpected(found.error());
  if (!found) found = Found{};
  if (found->admin.empty() && found->socket.empty()) found->admin = kUsualAdmin;
  const std::string& view = found->admin.empty() ? found->socket : found->admin;
  const std::string& act = found->socket.empty() ? found->admin : found->socket;
  auto looks = AdminClient::at(view);
  if (!looks) return unexpected(looks.error());
  auto acts = AdminClient::at(act);
  if (!acts) return unexpected(acts.error());
  const bool has_token = !found->token.empty();
  acts->set_token(std::move(found->token));
  return WatchTarget{.view = std::move(*looks),
                     .act = std::move(*acts),
                     .has_token = has_token,
                     .has_socket = act.starts_with("unix:")};
}

Result<std::string, std::string> dashboard_for(const AdminTarget& target) {
  const auto found = find(target);
  if (!found) return unexpected(found.error());
  if (!found->no_token.empty()) return unexpected(found->no_token);
  if (found->admin.empty() || found->admin.starts_with("unix:")) {
    return unexpected(
        std::string("a browser needs an admin endpoint with a TCP address: set "
                    "admin.listen"));
  }
  const auto client = AdminClient::at(found->admin);
  if (!client) return unexpected(client.error());
  // What stands behind # is not sent to any server.
  return "http://" + client->name() + "/" + (found->token.empty() ? "" : "#token=" + found->token);
}

}  // namespace weir::app
